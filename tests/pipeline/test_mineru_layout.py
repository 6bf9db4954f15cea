"""MinerU as layout backend: its boxes land on our pages, and what can go wrong with it is told apart."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from docmemo.artifacts import read_layout, read_member
from docmemo.config import LayoutParams, Params, RenderParams
from docmemo.documents import mineru as worker
from docmemo.documents.mineru_output import read_output
from docmemo.documents.pdf import Kind, digest_source, mupdf, open_source
from docmemo.errors import ConfigError, DocumentError, ModelLockError, PageTimeoutError, WorkerDiedError
from docmemo.models.lock import resolve_role
from docmemo.models.mineru_command import find_mineru
from docmemo.pipeline.layout import LayoutStep
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.step import Job, StepResult
from docmemo.types import Document, LayoutSet
from tests.documents import pdfs
from tests.pipeline.mineru_output import IMAGE, TABLE, TURNED, UPRIGHT, block, command, middle, visual

POOL = WorkPool(0, page_timeout=60)


def job(path: Path, kind: Kind = "pdf") -> Job:
    document = Document(doc_id=path.name, path=path.name, kind=kind, sha256=digest_source(path, kind))
    pages = path.parent / f"{path.name}.pages.zip"
    RenderStep(RenderParams(dpi=72)).compute(Job(document, path, {}), pages, POOL)
    return Job(document, path, {"render": pages})


def layout(
    path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind = "pdf", pool: WorkPool = POOL
) -> tuple[LayoutSet, StepResult, Path]:
    monkeypatch.setenv("DOCMEMO_MINERU", str(program))
    target = path.parent / "out.layout.zip"
    result = LayoutStep(LayoutParams(backend="mineru")).compute(job(path, kind), target, pool)
    return read_layout(target), result, target


def test_tables_figures_captions_and_headings_become_regions_with_our_own_crops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = command(tmp_path / "bin", middle(UPRIGHT))
    found, result, target = layout(pdfs.report(tmp_path / "a.pdf"), program, monkeypatch)
    assert not result.failures
    by_kind = {region.kind: region for region in found.regions}
    assert by_kind["table"].bbox == pytest.approx(TABLE)
    assert by_kind["table"].text == "Table 1: Landings by harbour and year"
    assert by_kind["figure"].bbox == pytest.approx(IMAGE)
    assert by_kind["figure"].text == "Figure 1: The harbour seen from the north"
    assert (by_kind["heading"].text, by_kind["heading"].level) == ("2. Results of the survey", 1)
    assert [r.kind for r in found.regions] == ["heading", "caption", "table", "figure", "caption"]
    assert read_member(target, by_kind["table"].crop)[:3] == b"\xff\xd8\xff"
    assert "--tier flash --ocr-mode txt" in (tmp_path / "bin" / "calls").read_text()


def test_on_a_rotated_page_boxes_are_those_of_the_page_as_displayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdfs.report(tmp_path / "a.pdf", rotation=90)
    found, result, _ = layout(path, command(tmp_path, middle(TURNED, size=(842.0, 595.0))), monkeypatch)
    assert not result.failures
    figure = next(r for r in found.regions if r.kind == "figure")
    assert figure.bbox == pytest.approx((0.216, 0.252, 0.43, 0.756))
    assert figure.text == "Figure 1: The harbour seen from the north"  # MinerU took it for text


def test_a_page_seen_in_another_shape_fails_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = middle(UPRIGHT, UPRIGHT)
    output["extensions"]["docvortex_layout"]["pages"][1].update(width_pt=842.0, height_pt=595.0)
    document = mupdf().open(str(pdfs.report(tmp_path / "one.pdf")))
    document.insert_pdf(mupdf().open(str(tmp_path / "one.pdf")))
    document.save(str(tmp_path / "a.pdf"))
    found, result, _ = layout(tmp_path / "a.pdf", command(tmp_path, output), monkeypatch)
    assert list(result.failures) == [2]
    assert "842 x 595" in result.failures[2]
    assert {r.page for r in found.regions} == {1}


def test_a_page_that_mineru_leaves_out_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pdfs.simple(tmp_path / "a.pdf", ["one", "two"])
    _, result, _ = layout(path, command(tmp_path, middle([])), monkeypatch)
    assert list(result.failures) == [2]
    assert "lacks this page" in result.failures[2]


def test_text_taken_for_a_picture_and_small_or_page_filling_figures_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading = [0.101, 0.084, 0.478, 0.112]
    wrong = [{"type": "image", "bbox": box} for box in (heading, [0.0, 0.0, 1.0, 1.0], [0.5, 0.9, 0.52, 0.92])]
    program = command(tmp_path, middle([*wrong, *UPRIGHT]))
    found, _, _ = layout(pdfs.report(tmp_path / "a.pdf"), program, monkeypatch)
    assert [r.bbox for r in found.regions if r.kind == "figure"] == [pytest.approx(IMAGE)]


def test_of_two_captions_each_table_keeps_the_one_that_mineru_joins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n" * 8 + "Table 1: Above\n\nTable 2: Below"
    path = pdfs.simple(tmp_path / "a.pdf", [text])
    with open_source(path, "pdf") as source:
        lines = source.page(1).search_for("Table")
        boxes = [[0.1, line.y0 / 842, 0.3, line.y1 / 842] for line in lines]
    near_first = visual("table", [0.1, 0.02, 0.9, 0.2], "Table 2: Below", boxes[1], "x")
    other = visual("table", [0.1, 0.5, 0.9, 0.7], "Table 1: Above", boxes[0], "x")
    found, _, _ = layout(path, command(tmp_path, middle([near_first, other])), monkeypatch)
    assert [r.text for r in found.regions if r.kind == "table"] == ["Table 2: Below", "Table 1: Above"]


def test_a_scan_in_which_mineru_sees_only_a_picture_is_analysed_by_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    pdfs.picture_of_text(["A slide about the harbour and its fees"]).save(folder / "1.png")
    pdfs.picture_of_text(["Another slide"]).save(folder / "2.png")
    whole = [{"type": "image", "bbox": [0.0, 0.0, 1.0, 1.0]}]
    program = command(tmp_path / "bin", middle(whole, whole, size=(315.0, 225.0)))
    found, result, _ = layout(folder, program, monkeypatch, "images")
    assert not result.failures
    assert [(r.page, r.bbox) for r in found.regions if r.kind == "figure"] == [
        (1, (0.0, 0.0, 1.0, 1.0)),
        (2, (0.0, 0.0, 1.0, 1.0)),
    ]


def test_page_images_are_given_to_mineru_as_one_pdf_of_pages_of_their_size(tmp_path: Path) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    picture = pdfs.picture_of_text(["A slide"])
    picture.save(folder / "1.png")
    (folder / "2.png").write_bytes(b"no picture")
    worker.as_pdf(str(folder), "images", str(tmp_path / "deck.pdf"))
    with open_source(tmp_path / "deck.pdf", "pdf") as source:
        assert source.n_pages == 2
        page = source.page(1)
        assert page.rect.width / page.rect.height == pytest.approx(picture.width / picture.height, rel=0.01)
        assert page.get_image_info()[0]["width"] == pytest.approx(picture.width, abs=2)


def test_a_crop_we_cannot_render_is_taken_from_mineru(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> bytes:
        raise RuntimeError("broken page")

    path = pdfs.report(tmp_path / "a.pdf")
    program = command(tmp_path / "bin", middle(UPRIGHT[:3]))
    monkeypatch.setattr(worker, "render_crop", fails)
    found, _, target = layout(path, program, monkeypatch)
    crop = next(r.crop for r in found.regions if r.kind == "table")
    assert read_member(target, crop) == b"cut by MinerU"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema_version": "3.0"}, "schema_version"),
        ({"schema": "other"}, "schema: "),
        ({"pages": [{"page_idx": 0, "blocks": [block("text", [0.1, 0.1, 120, 0.2])]}]}, r"pages.0.blocks.0.bbox"),
        ({"pages": [{"page_idx": 0, "blocks": [block("hologram", [0.1, 0.1, 0.2, 0.2])]}]}, r"pages.0.blocks.0.type"),
        ({"pages": [{"blocks": []}]}, "pages.0.page_idx"),
        ({"extensions": {}}, "extensions.docvortex_layout"),
    ],
)
def test_output_of_another_form_is_refused_by_the_name_of_the_field(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    command(tmp_path, {**middle([]), **change})
    with pytest.raises(DocumentError, match=named):
        read_output(tmp_path / "made.zip")


@pytest.mark.parametrize(
    ("before", "error", "words"),
    [
        ("print('Error: Failed to parse: Incorrect password'); sys.exit(1)", DocumentError, "Incorrect password"),
        ("print('Error: [E1020] Connection failed: no host'); sys.exit(1)", ConfigError, "model weights"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", WorkerDiedError, "SIGKILL"),
        ("sys.exit(0)", DocumentError, "exit status 0"),
    ],
)
def test_failures_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, error: type[Exception], words: str
) -> None:
    path = pdfs.simple(tmp_path / "a.pdf", ["one"])
    with pytest.raises(error) as caught:
        layout(path, command(tmp_path, middle([]), before=before), monkeypatch)
    assert type(caught.value) is error
    assert words in str(caught.value)


def test_a_mineru_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "child"
    hang = "import subprocess; child = subprocess.Popen(['sleep', '600'])\n"
    hang += f"open({str(note)!r}, 'w').write(str(child.pid)); child.wait()"
    path = pdfs.simple(tmp_path / "a.pdf", ["one"])
    with pytest.raises(PageTimeoutError, match="DOCMEMO_PAGE_TIMEOUT"):
        layout(path, command(tmp_path, middle([]), before=hang), monkeypatch, pool=WorkPool(0, page_timeout=3))
    end = time.monotonic() + 10
    while psutil.pid_exists(int(note.read_text())) and time.monotonic() < end:
        time.sleep(0.05)
    assert not psutil.pid_exists(int(note.read_text()))


def test_its_absence_and_another_version_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelLockError, match=r"pip install mineru==4\.0\.12"):
        find_mineru(str(tmp_path / "nowhere"))
    other = command(tmp_path, middle([]), version="MinerU version: 3.1.0")
    with pytest.raises(ModelLockError, match=r"3\.1\.0.*pip install mineru==4\.0\.12"):
        find_mineru(str(other))
    path = pdfs.simple(tmp_path / "a.pdf", ["one"])
    with pytest.raises(ModelLockError):
        layout(path, tmp_path / "nowhere", monkeypatch)


def test_lock_and_key_name_version_and_tier_of_the_backend_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_MINERU", str(command(tmp_path, middle([]))))
    params = Params(layout=LayoutParams(backend="mineru", mineru_tier="basic"))
    assert resolve_role(params, "layout") == {
        "provider": "mineru",
        "id": "mineru-basic",
        "package_version": "mineru 4.0.12",
    }
    made = job(pdfs.simple(tmp_path / "a.pdf", ["one"]))

    def key(**changes: Any) -> Any:
        return LayoutStep(LayoutParams(**changes)).key(made)

    assert key(backend="mineru") != key(backend="mineru", mineru_tier="basic")
    assert key() == key(mineru_tier="basic")
    assert "docmemo.documents.mineru" in LayoutStep(LayoutParams(backend="mineru")).modules
    assert "docmemo.documents.mineru" not in LayoutStep(LayoutParams()).modules
