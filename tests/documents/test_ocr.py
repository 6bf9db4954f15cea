"""Pages without a text layer are read by OCR, in reading order."""

from __future__ import annotations

import numpy as np
import pytest

from docmemo.documents.ocr import Word, read_lines, reading_blocks, shrink
from docmemo.types import Line
from tests.documents import pdfs

LINES = ["Mooring fees by harbour", "North Quay earned 4,512 crowns", "South Quay earned 3,907 crowns"]


def read(**how: object) -> list[Line]:
    image = np.asarray(pdfs.picture_of_text(LINES, **how))  # type: ignore[arg-type]
    return read_lines(image, max_side=1280, min_confidence=0.5)


def flat(text: str) -> str:
    return "".join(text.lower().split())


@pytest.mark.parametrize("how", [{}, {"skew": 2.0}, {"turn": 90}, {"turn": 180}, {"turn": 270}])
def test_printed_text_is_read_also_when_skewed_or_turned(how: dict[str, object]) -> None:
    lines = read(**how)
    assert flat(" ".join(li.text for li in lines)) == flat(" ".join(LINES))
    assert all(li.size == 0.0 for li in lines)


def test_boxes_lie_where_the_text_stands() -> None:
    first = read()[0].bbox
    assert first[0] == pytest.approx(40 / 420, abs=0.03)
    assert first[3] == pytest.approx(60 / 300, abs=0.04)
    turned = read(turn=180)[0].bbox
    assert turned[2] == pytest.approx(1 - 40 / 420, abs=0.03)
    assert turned[1] == pytest.approx(1 - 60 / 300, abs=0.04)


def test_an_empty_picture_has_no_lines() -> None:
    assert read_lines(np.full((300, 400, 3), 255, np.uint8), 1280, 0.5) == []


def test_pictures_are_shrunk_and_never_enlarged() -> None:
    assert shrink(np.zeros((400, 2000, 3), np.uint8), 1000).shape == (200, 1000, 3)
    assert shrink(np.zeros((40, 20, 3), np.uint8), 1000).shape == (40, 20, 3)


def words(*places: tuple[str, float, float, float]) -> list[Word]:
    """(text, x0, x1, y0), each 20 pixels high."""
    return [Word(text, x0, y0, x1, y0 + 20, 0.9) for text, x0, x1, y0 in places]


def order(found: list[Word]) -> list[str]:
    return [w.text for block in reading_blocks(found) for w in block]


def test_columns_of_prose_are_read_one_after_the_other() -> None:
    left = [(f"left column sentence {i}", 50.0, 450.0, 100.0 + 25 * i) for i in range(4)]
    right = [(f"right column sentence {i}", 520.0, 950.0, 100.0 + 25 * i) for i in range(4)]
    title = [("A title over both of the columns", 50.0, 950.0, 20.0)]
    mixed = [p for pair in zip(right, left, strict=True) for p in pair]
    assert order(words(*mixed, *title)) == [t[0] for t in (*title, *left, *right)]


def test_rows_of_a_table_are_read_across() -> None:
    cells = [(f"r{r}c{c}", 50.0 + 200 * c, 120.0 + 200 * c, 100.0 + 25 * r) for c in range(3) for r in range(4)]
    assert order(words(*cells)) == [f"r{r}c{c}" for r in range(4) for c in range(3)]


def test_a_wide_gap_starts_another_block() -> None:
    found = words(("one", 50, 100, 100), ("two", 50, 100, 125), ("three", 50, 100, 250))
    assert [len(block) for block in reading_blocks(found)] == [2, 1]
