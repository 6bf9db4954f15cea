"""Printed page numbers are found by consistency."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docmemo.documents.numbering import printed_numbers, roman_value, to_roman
from docmemo.types import Line, Page


def page(index: int, *, top: str = "", bottom: str = "", body: str = "Some text of the page.") -> Page:
    lines = [Line(text=body, bbox=(0.1, 0.4, 0.9, 0.6), block=1)]
    if top:
        lines.insert(0, Line(text=top, bbox=(0.1, 0.04, 0.9, 0.06), block=0))
    if bottom:
        lines.append(Line(text=bottom, bbox=(0.4, 0.94, 0.6, 0.96), block=2))
    return Page(page=index, lines=lines)


def numbers(bottoms: list[str]) -> list[str]:
    return printed_numbers([page(i, bottom=b) for i, b in enumerate(bottoms, 1)])


def test_plain_and_decorated_numbers_are_read() -> None:
    for form in (
        "{}",
        "- {} -",
        "Page {} of 40",
        "{} | Annual report",
        "Annual report 2020 | {}",
        "Seite {}",
        "第{}页",
    ):
        assert numbers([form.format(n) for n in range(5, 10)]) == ["5", "6", "7", "8", "9"], form


def test_roman_front_matter_is_followed_by_arabic_and_prefixed_numbers() -> None:
    printed = ["", "ii", "iii", "iv", "1", "2", "3", "4", "A-1", "A-2", "A-3", "F-1", "F-2", "F-3"]
    assert numbers(printed) == printed


def test_a_page_without_its_number_gets_it_from_its_neighbours() -> None:
    assert numbers(["1", "2", "", "4", "", "", "7"]) == ["1", "2", "3", "4", "5", "6", "7"]
    assert numbers(["", "", "1", "2", "3"]) == ["", "", "1", "2", "3"]


def test_years_and_section_numbers_in_headers_are_not_page_numbers() -> None:
    pages = [page(i, top="Annual Report 2020", bottom="3 Results") for i in range(1, 9)]
    assert printed_numbers(pages) == [""] * 8
    pages = [page(i, top=f"Table {i % 3}", bottom="2021") for i in range(1, 9)]
    assert printed_numbers(pages) == [""] * 8


def test_a_single_number_proves_nothing_but_page_1_of_1_does() -> None:
    assert numbers(["7"]) == [""]
    assert numbers(["Page 1 of 1"]) == ["1"]


def test_a_number_below_a_page_that_is_not_full_counts() -> None:
    pages = [
        Page(
            page=i,
            lines=[
                Line(text="Short page.", bbox=(0.1, 0.2, 0.9, 0.3), block=0),
                Line(text=str(i + 10), bbox=(0.5, 0.6, 0.52, 0.62), block=1),
            ],
        )
        for i in range(1, 5)
    ]
    assert printed_numbers(pages) == ["11", "12", "13", "14"]


def test_two_printed_pages_on_one_are_both_named() -> None:
    pages = []
    for i in range(1, 6):
        spread = page(i, bottom=str(2 * i))
        spread.lines.append(Line(text=str(2 * i + 1), bbox=(0.9, 0.94, 0.95, 0.96), block=9))
        pages.append(spread)
    assert printed_numbers(pages) == ["2-3", "4-5", "6-7", "8-9", "10-11"]


def test_malformed_roman_numerals_have_no_value() -> None:
    assert [roman_value(t) for t in ("iv", "XII", "iiii", "vx", "", "mix")] == [4, 12, 0, 0, 0, 1009]


@given(st.integers(1, 3999))
def test_roman_numerals_read_back(value: int) -> None:
    assert roman_value(to_roman(value)) == value


@given(st.lists(st.sampled_from(["", "1", "2", "x", "iv", "2020", "A-1", "Page 3"]), max_size=12))
def test_there_is_one_answer_a_page_whatever_stands_there(bottoms: list[str]) -> None:
    assert len(numbers(bottoms)) == len(bottoms)
