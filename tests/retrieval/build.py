"""Small page sets for tests."""

from __future__ import annotations

from docmemo.types import Line, Outline, Page, PageSet


def page(number: int, *lines: str, source: str = "text_layer", **fields: object) -> Page:
    """A page whose lines stand under each other; an empty string starts a new paragraph."""
    made, block = [], 0
    for i, text in enumerate(lines):
        if not text:
            block += 1
            continue
        y = 0.15 + i * 0.02
        size = 0.0 if source == "ocr" else 10.0
        made.append(Line(text=text, bbox=(0.1, y, 0.9, y + 0.015), block=block, size=size))
    values = {"page": number, "width": 600.0, "height": 800.0, "text_source": source, "lines": made} | fields
    return Page.model_validate(values)


def document(
    *pages: Page, language: str = "en", doc_id: str = "d.pdf", outline: list[Outline] | None = None
) -> PageSet:
    """A page set of the given pages."""
    return PageSet(doc_id=doc_id, sha256="0" * 64, language=language, pages=list(pages), outline=outline or [])


def table_page(number: int, rows: list[list[str]], *, source: str = "text_layer", above: str = "") -> Page:
    """A page with a table: every cell a line of its own, as PyMuPDF and OCR give them."""
    lines = []
    if above:
        lines.append(Line(text=above, bbox=(0.1, 0.1, 0.8, 0.115), block=0, size=10.0))
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            x, y = 0.1 + 0.25 * c, 0.2 + 0.02 * r
            lines.append(Line(text=cell, bbox=(x, y, x + 0.2, y + 0.015), block=r * 10 + c + 1, size=10.0))
    return Page.model_validate(
        {"page": number, "width": 600.0, "height": 800.0, "text_source": source, "lines": lines}
    )
