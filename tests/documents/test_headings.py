from __future__ import annotations

from docmemo.documents.captions import caption_of
from docmemo.documents.headings import find_headings, running_texts
from docmemo.types import Line, Page
from tests.retrieval.build import document


def line(text: str, y: float, *, size: float = 10.0, bold: bool = False, block: int = 0) -> Line:
    return Line(text=text, bbox=(0.1, y, 0.9, y + 0.015), block=block, size=size, bold=bold)


def body(start: float) -> list[Line]:
    return [line("plain words of the body that go on and on", start + 0.02 * i, block=99) for i in range(8)]


def made(number: int, *lines: Line) -> Page:
    return Page(page=number, width=600, height=800, text_source="text_layer", lines=list(lines))


def test_larger_lines_are_headings_and_their_size_gives_the_level() -> None:
    doc = document(made(1, line("The Title", 0.15, size=24), line("A Part", 0.2, size=14, block=1), *body(0.3)))
    assert [(h.text, h.level) for h in find_headings(doc)] == [("The Title", 1), ("A Part", 2)]


def test_a_title_of_two_lines_is_one_heading() -> None:
    doc = document(made(1, line("A Long", 0.15, size=20), line("Title", 0.17, size=20), *body(0.3)))
    assert [h.text for h in find_headings(doc)] == ["A Long Title"]


def test_bold_lines_are_headings_when_numbered_or_alone() -> None:
    doc = document(
        made(
            1,
            line("2.1 Data", 0.15, bold=True, block=1),
            line("Item 1. Business", 0.2, bold=True, block=2),
            line("Note", 0.25, bold=True, block=3),
            line("bold start of a paragraph", 0.3, bold=True, block=4),
            line("that goes on", 0.32, block=4),
            *body(0.4),
        )
    )
    assert [h.text for h in find_headings(doc)] == ["2.1 Data", "Item 1. Business", "Note"]


def test_running_headers_are_no_headings() -> None:
    pages = [made(i, line(f"ACME Report {i}", 0.02, size=16), *body(0.3)) for i in range(1, 6)]
    doc = document(*pages)
    assert "acmereport" in running_texts(doc)
    assert find_headings(doc) == []


def test_contents_lines_are_no_headings() -> None:
    doc = document(made(1, line("Growth ............ 12", 0.2, size=14), *body(0.3)))
    assert find_headings(doc) == []


def test_captions_are_told_from_sentences_about_figures() -> None:
    assert caption_of("Figure 4: Growth") == ("figure", "4")
    assert caption_of("Tabelle 2. Umsatz") == ("table", "2")
    assert caption_of("表3 收入") == ("table", "3")
    assert caption_of("Figure 4 shows growth") is None
    assert caption_of("Figure 4: Growth ......... 12") is None
    assert caption_of("Section 4 Growth") is None
    assert caption_of("We see Figure 4") is None
