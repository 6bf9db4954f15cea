"""The layout stage: regions where they stand, captions with what they describe, crops of enough pixels."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from docmemo.artifacts import read_layout, read_member
from docmemo.config import LayoutParams, RenderParams
from docmemo.documents import regions as worker
from docmemo.documents.layout import merge_boxes
from docmemo.documents.pdf import Kind, digest_source, mupdf
from docmemo.documents.regions import (
    WHOLE_PAGE,
    Found,
    assign_captions,
    find_captions,
    set_levels,
    tables_from_lines,
)
from docmemo.errors import DocumentChangedError
from docmemo.pipeline.layout import LayoutStep, map_layout
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.step import Job
from docmemo.types import Document, LayoutSet, Line, Region
from tests.documents import pdfs


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkPool]:
    with WorkPool(1, page_timeout=120) as shared:
        yield shared


def job(path: Path, tmp_path: Path, pool: WorkPool, kind: Kind = "pdf", dpi: int = 72) -> Job:
    """A layout job, with its page archive made."""
    document = Document(doc_id=path.name, path=path.name, kind=kind, sha256=digest_source(path, kind))
    pages = tmp_path / f"{path.name}.{dpi}.pages.zip"
    RenderStep(RenderParams(dpi=dpi)).compute(Job(document, path, {}), pages, pool)
    return Job(document, path, {"render": pages})


def layout(path: Path, tmp_path: Path, pool: WorkPool, kind: Kind = "pdf", **params: Any) -> tuple[LayoutSet, Path]:
    target = tmp_path / "out.layout.zip"
    result = LayoutStep(LayoutParams(**params)).compute(job(path, tmp_path, pool, kind), target, pool)
    assert result.storable
    assert not result.failures
    return read_layout(target), target


def crop(target: Path, region: Region) -> Image.Image:
    return Image.open(io.BytesIO(read_member(target, region.crop)))


def turned(box: tuple[float, float, float, float], rotation: int) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = box
    return {
        0: (x0, y0, x1, y1),
        90: (1 - y1, x0, 1 - y0, x1),
        180: (1 - x1, 1 - y1, 1 - x0, 1 - y0),
        270: (y0, 1 - x1, y1, 1 - x0),
    }[rotation]


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_table_figure_captions_and_heading_are_found_where_they_are_displayed(
    tmp_path: Path, pool: WorkPool, rotation: int
) -> None:
    found, target = layout(pdfs.report(tmp_path / "a.pdf", rotation=rotation), tmp_path, pool)
    by_kind = {kind: [r for r in found.regions if r.kind == kind] for kind in ("table", "figure", "heading")}
    table = by_kind["table"][0]
    assert table.text.startswith("Table 1: Landings")
    assert table.bbox == pytest.approx(turned((60 / 595, 245 / 842, 455 / 595, 399 / 842), rotation), abs=0.08)
    figure = by_kind["figure"][0]
    assert figure.text.startswith("Figure 1: The harbour")
    assert figure.bbox == pytest.approx(turned((150 / 595, 480 / 842, 450 / 595, 660 / 842), rotation), abs=0.01)
    assert [(h.text, h.level) for h in by_kind["heading"]] == [("2. Results of the survey", 1)]
    picture = np.asarray(crop(target, figure)).astype(int)
    corner = {0: (0, 0), 90: (0, -1), 180: (-1, -1), 270: (-1, 0)}[rotation]
    shape = picture.shape
    inner = (int(shape[0] * (0.1 if corner[0] == 0 else 0.9)), int(shape[1] * (0.1 if corner[1] == 0 else 0.9)))
    dark = picture[inner][:2].sum()  # the gradient is darkest in red and green at its upper left
    far = picture[shape[0] - 1 - inner[0], shape[1] - 1 - inner[1]][:2].sum()
    assert dark < far


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_page_turned_upright_by_its_rotation_is_analysed_upright(
    tmp_path: Path, pool: WorkPool, rotation: int
) -> None:
    found, _ = layout(pdfs.landscape_report(tmp_path / "a.pdf", rotation=rotation), tmp_path, pool)
    kinds = {r.kind: r for r in found.regions if r.kind != "caption"}
    assert kinds["table"].bbox == pytest.approx((60 / 595, 245 / 842, 455 / 595, 399 / 842), abs=0.08)
    assert kinds["figure"].bbox == pytest.approx((150 / 595, 480 / 842, 450 / 595, 660 / 842), abs=0.01)
    assert kinds["heading"].bbox[3] == pytest.approx(92 / 842, abs=0.02)
    assert kinds["table"].text.startswith("Table 1")


def test_crops_have_the_long_side_asked_for_unless_that_takes_too_many_dpi(tmp_path: Path, pool: WorkPool) -> None:
    path = pdfs.report(tmp_path / "a.pdf")
    found, target = layout(path, tmp_path, pool, crop_max_dpi=600)
    assert all(abs(max(crop(target, r).size) - 1500) <= 2 for r in found.regions if r.crop)
    found, target = layout(path, tmp_path, pool, crop_max_dpi=72, crop_padding=0)
    figure = next(r for r in found.regions if r.kind == "figure")
    assert max(crop(target, figure).size) == pytest.approx(300, abs=2)


def test_a_crop_is_padded(tmp_path: Path, pool: WorkPool) -> None:
    path = pdfs.report(tmp_path / "a.pdf")
    sizes = []
    for padding in (0.0, 10.0):
        found, target = layout(path, tmp_path, pool, crop_max_dpi=72, crop_padding=padding)
        sizes.append(crop(target, next(r for r in found.regions if r.kind == "figure")).size)
    assert sizes[1][0] - sizes[0][0] == pytest.approx(20, abs=2)


def test_a_vector_chart_is_a_figure(tmp_path: Path, pool: WorkPool) -> None:
    document = mupdf().open()
    page = document.new_page()
    page.insert_textbox(mupdf().Rect(60, 80, 535, 200), pdfs.LOREM * 3, fontsize=11)
    page.draw_line((150, 300), (150, 500))
    page.draw_line((150, 500), (450, 500))
    for i in range(10):
        page.draw_rect(mupdf().Rect(160 + 28 * i, 490 - 15 * i, 180 + 28 * i, 500), fill=(0.2, 0.4, 0.8))
    document.save(str(tmp_path / "a.pdf"))
    found, _ = layout(tmp_path / "a.pdf", tmp_path, pool)
    figures = [r for r in found.regions if r.kind == "figure"]
    assert len(figures) == 1
    assert figures[0].bbox == pytest.approx((150 / 595, 300 / 842, 450 / 595, 500 / 842), abs=0.05)


def test_a_scan_is_one_figure_over_the_page_and_a_blank_page_is_none(tmp_path: Path, pool: WorkPool) -> None:
    document = mupdf().open(str(pdfs.scanned(tmp_path / "scan.pdf", ["North Quay earned 4,512 crowns"])))
    document.new_page()
    document.save(str(tmp_path / "a.pdf"))
    found, target = layout(tmp_path / "a.pdf", tmp_path, pool)
    figures = [r for r in found.regions if r.kind == "figure"]
    assert [(r.page, r.bbox) for r in figures] == [(1, WHOLE_PAGE)]
    assert max(crop(target, figures[0]).size) <= 1500


def test_page_images_are_cropped_without_being_enlarged(tmp_path: Path, pool: WorkPool) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    image = pdfs.picture_of_text(["A slide about the harbour and its fees"])
    image.save(folder / "1.png")
    found, target = layout(folder, tmp_path, pool, "images")
    assert crop(target, next(r for r in found.regions if r.kind == "figure")).size == image.size


def test_the_key_stays_when_only_the_page_images_change(tmp_path: Path, pool: WorkPool) -> None:
    path = pdfs.report(tmp_path / "a.pdf")
    step = LayoutStep(LayoutParams(), {"layout": {"v": 1}, "ocr": {"v": 1}})
    coarse, fine = (job(path, tmp_path, pool, dpi=dpi) for dpi in (72, 100))
    assert coarse.inputs["render"].read_bytes() != fine.inputs["render"].read_bytes()
    assert step.key(coarse) == step.key(fine)
    assert LayoutStep(LayoutParams(), {"layout": {"v": 2}}).key(coarse) != step.key(coarse)
    assert LayoutStep(LayoutParams(crop_padding=1), step.models).key(coarse) != step.key(coarse)


def test_a_handful_of_pages_can_be_analysed_alone(tmp_path: Path, pool: WorkPool) -> None:
    path = pdfs.simple(tmp_path / "a.pdf", [pdfs.LOREM] * 5)
    made = job(path, tmp_path, pool)
    results = map_layout(path, "pdf", made.inputs["render"], LayoutParams(), tmp_path, pool, pages=[2, 4])
    assert sorted(results) == [2, 4]


def test_a_changed_document_and_a_failing_page_are_noticed(
    tmp_path: Path, pool: WorkPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdfs.simple(tmp_path / "a.pdf", ["one", "two"])
    made = job(path, tmp_path, pool)

    def fails(*_: Any) -> Any:
        raise RuntimeError("model says no")

    monkeypatch.setattr(worker, "page_regions", fails)
    result = LayoutStep(LayoutParams()).compute(made, tmp_path / "out", WorkPool(0, page_timeout=60))
    assert set(result.failures) == {1, 2}
    assert read_layout(tmp_path / "out").failures[1] == "RuntimeError: model says no"
    pdfs.simple(path, ["other"])
    with pytest.raises(DocumentChangedError):
        LayoutStep(LayoutParams()).compute(made, tmp_path / "out", pool)


def line(text: str, y: float, *, x: float = 0.1, width: float = 0.5, block: int = 0) -> Line:
    return Line(text=text, bbox=(x, y, x + width, y + 0.015), block=block)


def test_a_caption_is_told_from_a_sentence_that_mentions_a_table() -> None:
    lines = [
        line("The figures are summarised in", 0.1, block=0),
        line("Table 3 and in the appendix", 0.12, block=0),
        line("TABLE IV", 0.3, block=1),
        line("Landings by harbour", 0.32, block=2),
        line("Abbildung 2: Der Hafen von Norden", 0.5, block=3),
    ]
    texts = [c.text for c in find_captions(1, (), lines, ())]
    assert texts == ["TABLE IV Landings by harbour", "Abbildung 2: Der Hafen von Norden"]


def test_each_region_takes_the_nearest_caption_of_its_kind() -> None:
    table = Region(page=1, kind="table", bbox=(0.1, 0.2, 0.9, 0.4))
    figure = Region(page=1, kind="figure", bbox=(0.1, 0.5, 0.9, 0.7))
    above = Region(page=1, kind="caption", bbox=(0.1, 0.17, 0.9, 0.19), text="Table 1: Landings")
    below = Region(page=1, kind="caption", bbox=(0.1, 0.71, 0.9, 0.73), text="Figure 1: Harbour")
    far = Region(page=1, kind="caption", bbox=(0.1, 0.97, 0.9, 0.99), text="Table 2: Elsewhere")
    assign_captions([table, figure], [above, below, far])
    assert (table.text, figure.text) == ("Table 1: Landings", "Figure 1: Harbour")


def test_heading_levels_follow_numbers_and_type_size() -> None:
    def heading(text: str, size: float) -> Found:
        return Found(Region(page=1, kind="heading", bbox=(0, 0, 1, 0.1), text=text), size)

    found = [heading("Annual report", 30), heading("Summary", 18), heading("Outlook", 17.6), heading("2.3 Fees", 30)]
    found += [heading("Notes", 11), heading("IV. Method", 11), heading("B. Data", 11)]
    set_levels(found)
    assert [f.region.level for f in found] == [1, 2, 2, 2, 3, 1, 2]


def test_aligned_pieces_on_a_scan_are_a_table() -> None:
    rows = [line(f"{r}{c},5", 0.3 + 0.02 * r, x=0.1 + 0.2 * c, width=0.1) for r in range(5) for c in range(4)]
    prose = [line("A sentence above the table that is long", 0.1), line("Another one below", 0.8)]
    assert tables_from_lines([*prose, *rows]) == [pytest.approx((0.1, 0.3, 0.8, 0.395))]
    assert tables_from_lines(prose) == []


def test_tiles_of_one_picture_become_one_box() -> None:
    tiles = [(0.1, 0.1 + 0.1 * i, 0.5, 0.2 + 0.1 * i) for i in range(4)]
    assert merge_boxes(tiles, (0.005, 0.005)) == [pytest.approx((0.1, 0.1, 0.5, 0.5))]
    assert len(merge_boxes([(0.1, 0.1, 0.2, 0.2), (0.5, 0.5, 0.9, 0.9)])) == 2
