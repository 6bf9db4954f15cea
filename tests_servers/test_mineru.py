"""MinerU's tier `flash` for real: what it writes is what is read, and its boxes lie where things are."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from docmemo.artifacts import read_layout
from docmemo.config import LayoutParams, RenderParams
from docmemo.documents.mineru import run_mineru
from docmemo.documents.mineru_output import MEMBER, read_output
from docmemo.documents.pdf import Kind, digest_source
from docmemo.errors import DocumentError
from docmemo.models.mineru_command import DOCVORTEX, VERSION, MinerU
from docmemo.pipeline.layout import LayoutStep
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.step import Job
from docmemo.types import Document, LayoutSet
from tests.conftest import ROOT
from tests.documents import pdfs
from tests.pipeline.mineru_output import IMAGE, TABLE, UPRIGHT, middle

SAMPLE = ROOT / "data" / "sample" / "documents"


def layout(path: Path, target: Path, mineru: MinerU, kind: Kind = "pdf") -> LayoutSet:
    document = Document(doc_id=path.name, path=path.name, kind=kind, sha256=digest_source(path, kind))
    target.mkdir(exist_ok=True)
    pages = target / f"{path.name}.pages.zip"
    with WorkPool(2, page_timeout=120) as pool:
        RenderStep(RenderParams(dpi=72)).compute(Job(document, path, {}), pages, pool)
        out = target / f"{path.name}.layout.zip"
        result = LayoutStep(LayoutParams(backend="mineru"), {"layout": mineru.packages}).compute(
            Job(document, path, {"render": pages}), out, pool
        )
    assert not result.failures
    return read_layout(out)


@pytest.fixture(autouse=True)
def command(mineru: MinerU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_MINERU", str(mineru.path))


def test_it_is_the_version_whose_output_is_read(mineru: MinerU) -> None:
    assert mineru.packages == f"mineru {VERSION}, docvortex {DOCVORTEX}"


def test_the_stand_in_of_the_other_tests_writes_what_mineru_writes(mineru: MinerU, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made = run_mineru(mineru.path, pdfs.report(tmp_path / "a.pdf"), tmp_path / "out", "flash", 300)
    read_output(made)
    with zipfile.ZipFile(made) as archive:
        real = json.loads(archive.read(MEMBER))
    stand_in = middle(UPRIGHT)
    assert {key: real[key] for key in ("schema", "schema_version")} == {
        key: stand_in[key] for key in ("schema", "schema_version")
    }
    assert [block["type"] for block in real["pages"][0]["blocks"]] == [block["type"] for block in UPRIGHT]
    for block, ours in zip(real["pages"][0]["blocks"], UPRIGHT, strict=True):
        assert block["bbox"] == pytest.approx(ours["bbox"], abs=0.01)


@pytest.mark.parametrize("rotation", [90, 270])
def test_boxes_lie_where_table_and_figure_are_displayed(mineru: MinerU, tmp_path: Path, rotation: int) -> None:
    path = pdfs.landscape_report(tmp_path / "a.pdf", rotation=rotation)
    by_kind = {region.kind: region for region in layout(path, tmp_path / "o", mineru).regions}
    assert by_kind["table"].bbox == pytest.approx(TABLE, abs=0.02)
    assert by_kind["figure"].bbox == pytest.approx(IMAGE, abs=0.02)
    assert by_kind["table"].text.startswith("Table 1: Landings")
    assert by_kind["figure"].text.startswith("Figure 1: The harbour")


def test_page_images_are_analysed_without_weights(mineru: MinerU, tmp_path: Path) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    for number in (1, 2):
        pdfs.picture_of_text([f"Slide {number} about the harbour and its fees"]).save(folder / f"{number}.png")
    found = layout(folder, tmp_path / "o", mineru, "images")
    assert {region.page for region in found.regions} == {1, 2}


def test_documents_of_the_sample_are_analysed_whole(mineru: MinerU, tmp_path: Path) -> None:
    for name in ("research_article.pdf", "slide_deck.pdf"):
        found = layout(SAMPLE / name, tmp_path / "o", mineru)
        kinds = {kind: sum(r.kind == kind for r in found.regions) for kind in ("table", "figure", "heading")}
        assert kinds["heading"] >= 3, (name, kinds)
        assert kinds["table"] + kinds["figure"] >= 2, (name, kinds)


def test_a_document_with_a_password_is_a_document_that_failed(mineru: MinerU, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = pdfs.encrypted(tmp_path / "a.pdf", user="secret")
    with pytest.raises(DocumentError, match="password"):
        run_mineru(mineru.path, path, tmp_path / "out", "flash", 300)
