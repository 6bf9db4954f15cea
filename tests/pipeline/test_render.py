"""The render stage: what is in a page archive, and what happens to documents and pages that are bad."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from docmemo.artifacts import read_member, read_pages
from docmemo.config import OcrParams, RenderParams
from docmemo.documents import render as worker
from docmemo.documents.pdf import Kind, digest_source, mupdf
from docmemo.errors import DocumentChangedError, DocumentError, EmptyDocumentError, PasswordProtectedError
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.step import Job, StepResult
from docmemo.types import Document, PageSet
from tests.documents import pdfs

HARD = Path(__file__).parents[2].parent / "shared" / "datasets" / "hard-pdfs"
INLINE = WorkPool(0, page_timeout=60)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkPool]:
    with WorkPool(2, page_timeout=60) as shared:
        yield shared


def job(path: Path, kind: Kind = "pdf") -> Job:
    document = Document(doc_id=path.name, path=path.name, kind=kind, sha256=digest_source(path, kind))
    return Job(document, path, {})


def render(
    path: Path, tmp_path: Path, kind: Kind = "pdf", pool: WorkPool = INLINE, **params: Any
) -> tuple[PageSet, Path, StepResult]:
    target = tmp_path / "out.pages.zip"
    result = RenderStep(RenderParams(**params)).compute(job(path, kind), target, pool)
    return read_pages(target), target, result


def picture(target: Path, page_set: PageSet, number: int = 1) -> Image.Image:
    return Image.open(io.BytesIO(read_member(target, page_set.pages[number - 1].image)))


def test_an_archive_holds_text_images_and_what_the_document_says_of_itself(tmp_path: Path, pool: WorkPool) -> None:
    path = pdfs.simple(tmp_path / "a.pdf", [f"{pdfs.LOREM}\n\n\nPage {n} of 3" for n in (1, 2, 3)])
    page_set, target, result = render(path, tmp_path, pool=pool)
    assert result.storable
    assert not result.failures
    assert (page_set.doc_id, page_set.language) == ("a.pdf", "en")
    assert [p.page for p in page_set.pages] == [1, 2, 3]
    assert [p.printed for p in page_set.pages] == ["1", "2", "3"]
    assert all(p.text_source == "text_layer" and "harbour" in p.text for p in page_set.pages)
    image = picture(target, page_set, 2)
    assert image.size == (page_set.pages[1].image_width, page_set.pages[1].image_height) == (1190, 1684)


def test_rendering_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    path = pdfs.report(tmp_path / "a.pdf")
    first = render(path, tmp_path)[1].read_bytes()
    assert render(path, tmp_path)[1].read_bytes() == first


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_images_and_boxes_agree_on_rotated_pages(tmp_path: Path, rotation: int) -> None:
    page_set, target, _ = render(pdfs.report(tmp_path / "a.pdf", rotation=rotation), tmp_path)
    page = page_set.pages[0]
    assert page.rotation == rotation
    assert (page.width > page.height) == (rotation in (90, 270))
    image = np.asarray(picture(target, page_set).convert("L"))
    heading = next(li for li in page.lines if li.text.startswith("2. Results"))
    x0, y0, x1, y1 = heading.bbox
    cut = image[
        int(y0 * page.image_height) : int(y1 * page.image_height),
        int(x0 * page.image_width) : int(x1 * page.image_width),
    ]
    assert (cut < 128).mean() > 0.1


def test_a_cropped_page_shows_only_its_crop_box(tmp_path: Path) -> None:
    document = mupdf().open()
    page = document.new_page(width=400, height=600)
    page.draw_rect(mupdf().Rect(0, 0, 90, 600), fill=(0, 0, 0))
    page.insert_text((150, 300), "inside")
    page.set_cropbox(mupdf().Rect(100, 200, 400, 500))
    document.save(str(tmp_path / "a.pdf"))
    page_set, target, _ = render(tmp_path / "a.pdf", tmp_path, ocr=OcrParams(backend="none"))
    assert (page_set.pages[0].width, page_set.pages[0].height) == (300, 300)
    assert np.asarray(picture(target, page_set).convert("L"))[:, :100].mean() > 250


@pytest.mark.parametrize("size", [(14400.0, 14400.0), (14400.0, 20.0), (3.0, 3.0), (1.0, 2000.0)])
def test_pages_of_any_size_get_a_picture_of_a_sane_size(tmp_path: Path, size: tuple[float, float]) -> None:
    document = mupdf().open()
    document.new_page(width=size[0], height=size[1])
    document.save(str(tmp_path / "a.pdf"))
    page_set, _, result = render(tmp_path / "a.pdf", tmp_path, ocr=OcrParams(backend="none"))
    page = page_set.pages[0]
    assert not result.failures
    assert min(page.image_width, page.image_height) >= 1
    assert max(page.image_width, page.image_height) <= 2801


def test_a_scan_is_read_by_ocr_and_a_blank_page_is_not(tmp_path: Path) -> None:
    document = mupdf().open(str(pdfs.scanned(tmp_path / "scan.pdf", ["North Quay earned 4,512 crowns"])))
    document.new_page()
    document.save(str(tmp_path / "a.pdf"))
    page_set, _, _ = render(tmp_path / "a.pdf", tmp_path)
    assert [p.text_source for p in page_set.pages] == ["ocr", "none"]
    assert "4,512" in page_set.pages[0].text
    assert page_set.is_scanned
    without, _, _ = render(tmp_path / "a.pdf", tmp_path, ocr=OcrParams(backend="none"))
    assert without.pages[0].text_source == "none"


def test_a_stamp_on_a_scan_does_not_pass_for_its_text(tmp_path: Path) -> None:
    lines = [f"Line {i} says that the quay earned {i}00 crowns" for i in range(7)]
    document = mupdf().open(str(pdfs.scanned(tmp_path / "scan.pdf", lines)))
    document[0].insert_text((20, 15), "Downloaded from an archive on 3 May 2021", fontsize=8)
    document.save(str(tmp_path / "a.pdf"))
    page_set, _, _ = render(tmp_path / "a.pdf", tmp_path)
    assert page_set.pages[0].text_source == "ocr"
    assert "quay earned 600" in page_set.pages[0].text


def test_little_but_good_text_is_kept_where_ocr_finds_no_more(tmp_path: Path) -> None:
    page_set, _, _ = render(pdfs.simple(tmp_path / "a.pdf", ["Thank you"]), tmp_path)
    assert page_set.pages[0].text_source == "text_layer"
    assert page_set.pages[0].text == "Thank you"


def test_a_folder_of_images_and_an_image_named_pdf_are_documents(tmp_path: Path) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    for n in (1, 2, 10):
        pdfs.picture_of_text([f"This is slide number {n} of the deck"]).save(folder / f"slide{n}.png")
    page_set, target, _ = render(folder, tmp_path, "images")
    assert [p.text.split()[4] for p in page_set.pages] == ["1", "2", "10"]
    original = Image.open(folder / "slide1.png").size
    assert picture(target, page_set).size == original  # a picture is not enlarged
    lie = tmp_path / "lie.pdf"
    pdfs.picture_of_text(["A picture in disguise"]).save(lie, "PNG")
    assert "disguise" in render(lie, tmp_path)[0].pages[0].text


def test_documents_that_cannot_be_opened_are_refused(tmp_path: Path, pool: WorkPool) -> None:
    for path, kind in (
        (pdfs.encrypted(tmp_path / "locked.pdf", user="secret"), PasswordProtectedError),
        (pdfs.zero_pages(tmp_path / "zero.pdf"), EmptyDocumentError),
        (pdfs.truncated(tmp_path / "cut.pdf"), DocumentError),
    ):
        with pytest.raises(kind) as caught:
            render(path, tmp_path, pool=pool)
        assert caught.value.remedy


def test_a_file_that_changed_since_it_was_taken_in_is_refused(tmp_path: Path) -> None:
    path = pdfs.simple(tmp_path / "a.pdf")
    old = job(path)
    pdfs.simple(path, ["other text"])
    with pytest.raises(DocumentChangedError):
        RenderStep(RenderParams()).compute(old, tmp_path / "out", INLINE)


def test_one_bad_page_is_recorded_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = worker.render_page

    def fails_on_two(source: Any, number: int, *rest: Any) -> Any:
        if number == 2:
            raise RuntimeError("cannot find object in xref")
        return original(source, number, *rest)

    monkeypatch.setattr(worker, "render_page", fails_on_two)
    path = pdfs.simple(tmp_path / "a.pdf", ["1", "2", "3"])
    page_set, _, result = render(path, tmp_path, ocr=OcrParams(backend="none"))
    assert list(result.failures) == [2]
    assert result.storable  # the page is broken; trying again would not help
    assert "xref" in page_set.pages[1].failure
    assert [bool(p.image) for p in page_set.pages] == [True, False, True]


def test_a_full_disk_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker, "jpeg", full)
    _, _, result = render(pdfs.simple(tmp_path / "a.pdf"), tmp_path)
    assert list(result.failures) == [1]
    assert not result.storable


def test_the_key_follows_document_parameters_and_models(tmp_path: Path) -> None:
    path = pdfs.simple(tmp_path / "a.pdf")
    step = RenderStep(RenderParams(), {"renderer": {"v": 1}, "ocr": {"v": 1}, "reasoner": {"v": 1}})
    key = step.key(job(path))
    assert RenderStep(RenderParams(), {**step.models, "reasoner": {"v": 2}}).key(job(path)) == key
    assert RenderStep(RenderParams(), {**step.models, "ocr": {"v": 2}}).key(job(path)) != key
    assert RenderStep(RenderParams(dpi=100), step.models).key(job(path)) != key
    pdfs.simple(path, ["changed"])
    assert step.key(job(path)) != key


@pytest.mark.skipif(not HARD.is_dir(), reason=f"{HARD} is not here")
def test_all_hard_pdfs_are_rendered_or_refused(tmp_path: Path, pool: WorkPool) -> None:
    sets = {}
    refused = []
    for path in sorted(HARD.glob("*.pdf")):
        try:
            sets[path.name], target, result = render(path, tmp_path, pool=pool)
        except DocumentError:
            refused.append(path.name)
            continue
        assert not result.failures, path.name
        for page in sets[path.name].pages:
            assert picture(target, sets[path.name], page.page).size == (page.image_width, page.image_height)
    assert refused == ["libreoffice-writer-password.pdf"]
    assert len(sets) == 27
    rotated = sets["habibi-rotated.pdf"].pages
    assert {p.rotation for p in rotated} >= {90, 180, 270}
    assert all("habibi" in p.text for p in rotated)
    assert "crazy ones" in sets["crazyones-pdfa.pdf"].pages[0].text.lower()
    assert [p.printed for p in sets["pdflatex-4-pages.pdf"].pages] == ["1", "2", "3", "4"]
    assert len(sets["pdflatex-outline.pdf"].outline) == 9
