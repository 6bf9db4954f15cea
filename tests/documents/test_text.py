"""Text layer: lines, rows, ligatures, rotation; and whether it is usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmemo.documents.pdf import mupdf, open_source
from docmemo.documents.text import clean_text, text_layer, usable
from docmemo.types import Line, Page
from tests.documents import pdfs

HARD = Path(__file__).parents[2].parent / "shared" / "datasets" / "hard-pdfs"


def read(path: Path, number: int = 1) -> Page:
    with open_source(path, "pdf") as source:
        return Page(page=number, lines=text_layer(source.page(number))[0])


def test_ligatures_marks_and_unreadable_characters_are_cleaned() -> None:
    assert clean_text("e\ufb03cient  \ufb01ne\u00a0print\x00\ufffd") == "efficient fine print"
    assert clean_text("hyphen\u00ad") == "hyphen-"
    assert clean_text("co\u00adoperate") == "cooperate"
    assert clean_text("\u200fשלום\u200e") == "שלום"


def test_a_text_layer_needs_enough_readable_characters() -> None:
    assert usable("x" * 30, 30)
    assert not usable("x" * 29 + " " * 50, 30)
    assert not usable("x" * 40 + "\ufffd" * 30, 30)
    assert not usable("\ue001" * 500, 30)
    assert usable("x" * 400 + "\ue001" * 20, 30)
    assert not usable("", 0)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_lines_keep_their_order_whatever_the_rotation(tmp_path: Path, rotation: int) -> None:
    page = read(pdfs.report(tmp_path / "a.pdf", rotation=rotation))
    text = page.text
    assert text.index("2. Results") < text.index("committee") < text.index("Table 1") < text.index("Figure 1")
    heading = next(li for li in page.lines if li.text.startswith("2. Results"))
    assert heading.bold
    assert heading.size == pytest.approx(20)
    x, y = (heading.bbox[0] + heading.bbox[2]) / 2, (heading.bbox[1] + heading.bbox[3]) / 2
    edge = {0: y, 90: 1 - x, 180: 1 - y, 270: x}[rotation]
    assert edge < 0.15


def test_a_row_of_a_table_is_one_line(tmp_path: Path) -> None:
    lines = [li.text for li in read(pdfs.report(tmp_path / "a.pdf")).lines]
    assert "Harbour 2019 2020 2021" in lines
    assert "Port C 120 133 147" in lines


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    document = mupdf().open()
    page = document.new_page()
    for i in range(12):
        page.insert_text((50, 100 + 14 * i), f"left column line {i} of the first", fontsize=11)
    for i in range(12):
        page.insert_text((310, 100 + 14 * i), f"right column line {i} of the second", fontsize=11)
    document.save(str(tmp_path / "a.pdf"))
    text = read(tmp_path / "a.pdf").text
    assert text.index("left column line 11") < text.index("right column line 0")


def test_text_outside_of_the_crop_box_is_left_out(tmp_path: Path) -> None:
    document = mupdf().open()
    page = document.new_page(width=400, height=600)
    page.insert_text((50, 50), "trimmed away")
    page.insert_text((150, 300), "inside the box")
    page.set_cropbox(mupdf().Rect(100, 200, 400, 500))
    document.save(str(tmp_path / "a.pdf"))
    lines = read(tmp_path / "a.pdf").lines
    assert [li.text for li in lines] == ["inside the box"]
    assert lines[0].bbox[0] == pytest.approx(50 / 300, abs=0.01)


def test_letters_stacked_down_an_axis_become_a_word(tmp_path: Path) -> None:
    document = mupdf().open()
    page = document.new_page(width=300, height=300)
    for i, letter in enumerate("SPEED"):
        page.insert_text((50, 100 + 12 * i), letter, fontsize=11)
    document.save(str(tmp_path / "a.pdf"))
    assert "SPEED" in read(tmp_path / "a.pdf").text


@pytest.mark.skipif(not HARD.is_dir(), reason=f"{HARD} is not here")
def test_arabic_comes_in_logical_order() -> None:
    for number in (1, 2, 3, 4):
        page = read(HARD / "habibi-rotated.pdf", number)
        assert page.lines[0].text.startswith("حَبيبي habibi")
    assert "\ufffd" not in page.text


def lines_of(*rows: tuple[str, float, float, float]) -> list[Line]:
    """Lines from (text, x0, y0, x1), each a block of its own."""
    return [
        Line(text=text, bbox=(x0, y0, x1, y0 + 0.02), block=i, size=12.0) for i, (text, x0, y0, x1) in enumerate(rows)
    ]


def blocks_after(*rows: tuple[str, float, float, float]) -> list[int]:
    from docmemo.documents.text import _join_blocks

    return [line.block for line in _join_blocks(lines_of(*rows))]


def test_lines_placed_one_by_one_become_a_paragraph() -> None:
    assert blocks_after(
        ("This paragraph was placed line by line and goes", 0.12, 0.100, 0.88),
        ("on here until it stops. The next one begins after", 0.10, 0.127, 0.88),
        ("a gap.", 0.10, 0.154, 0.2),
        ("A new paragraph stands further below this one", 0.10, 0.22, 0.88),
    ) == [0, 0, 0, 1]


def test_a_sentence_end_a_short_line_a_table_row_or_another_column_do_not_join() -> None:
    assert blocks_after(
        ("The first paragraph of them ends at the margin.", 0.1, 0.10, 0.88),
        ("The second one begins right below with its line", 0.1, 0.127, 0.88),
    ) == [0, 1]
    assert blocks_after(
        ("Water sold in litres 412", 0.1, 0.10, 0.5), ("Water bought in million litres 1 212", 0.1, 0.127, 0.7)
    ) == [
        0,
        1,
    ]
    assert blocks_after(
        ("The left column ends with a full line of words", 0.1, 0.10, 0.48),
        ("the right column begins with a line of its own", 0.52, 0.127, 0.9),
    ) == [0, 1]
