"""Text layer: lines, rows, ligatures, rotation; and whether it is usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmemo.documents.pdf import mupdf, open_source
from docmemo.documents.text import clean_text, text_layer, usable
from docmemo.types import Page
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
