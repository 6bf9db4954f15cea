"""Vectors of page images around a model that is a fake here; tests_models has the real one."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docmemo.artifacts import PAGES_MEMBER, write_archive
from docmemo.config import EmbedParams
from docmemo.errors import ModelLoadError, WorkerDiedError
from docmemo.models import colqwen
from docmemo.models.colqwen_batches import DeviceMemoryError
from docmemo.pipeline import page_vectors
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.page_vectors import PageEncoders
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.runner import artifact_key, ensure
from docmemo.pipeline.step import Job
from docmemo.retrieval.late_interaction import PageVectors
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.settings import load_settings
from docmemo.store import Store
from docmemo.types import Document, PageSet
from tests.retrieval.build import document, page

ENTRY = {"provider": "colpali-engine", "id": "m", "revision": "r", "package_version": "torch 2, bm25s 0.3"}
MODELS = {"embedder": ENTRY}


class FakeModel:
    """A page's only vector is its shade; counts pages, and fits `fits` of them at once."""

    precision, check = "float32", "a fake"

    def __init__(self) -> None:
        self.fits, self.pages, self.lock = 99, 0, threading.Lock()

    def embed_images(self, images: Sequence[Image.Image]) -> list[np.ndarray]:
        if len(images) > self.fits:
            raise DeviceMemoryError("full")
        self.pages += len(images)
        return [np.full((1, 4), image.getpixel((0, 0))[0], np.float32) for image in images]

    def free_memory(self) -> None:
        """Nothing to free."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeModel:
    made = FakeModel()
    monkeypatch.setattr(colqwen, "shared", lambda weights, device: made)
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"w")
    monkeypatch.setenv("DOCMEMO_WORKERS", "0")
    return made


def params(tmp_path: Path, **other: object) -> EmbedParams:
    return EmbedParams.model_validate({"backend": "colqwen", "model": str(tmp_path / "m"), **other})


def pages_archive(path: Path, shades: Sequence[int | None], texts: Sequence[str] = ()) -> tuple[Path, PageSet]:
    """An archive of grey pages; None for a page that was not rendered."""
    texts = texts or ["Some words."] * len(shades)
    pages, members = [], []
    for number, (shade, text) in enumerate(zip(shades, texts, strict=True), 1):
        name = "" if shade is None else f"{number}.png"
        pages.append(page(number, text, image=name, failure="it hung" if shade is None else ""))
        if shade is not None:
            data = io.BytesIO()
            Image.new("RGB", (4, 4), (shade,) * 3).save(data, "PNG")
            members.append((name, data.getvalue()))
    made = document(*pages)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_archive(path, PAGES_MEMBER, made, members)
    return path, made


def job(archive: Path, name: str = "d.pdf") -> Job:
    return Job(Document(doc_id=name, path=name, n_pages=3), Path(name), {"render": archive})


def encoders(tmp_path: Path, **other: object) -> PageEncoders:
    return PageEncoders(params(tmp_path, **other), ENTRY, load_settings())


def test_the_artifact_holds_words_and_vectors_and_how_they_were_made(model: FakeModel, tmp_path: Path) -> None:
    archive, _ = pages_archive(tmp_path / "a.zip", [10, None, 30])
    with WorkPool(0, 10) as pool:
        result = EmbedStep(params(tmp_path), MODELS).compute(job(archive), tmp_path / "out", pool)
    vectors = PageVectors.load(tmp_path / "out")
    assert vectors.offsets.tolist() == [0, 1, 1, 2]
    assert vectors.vectors[:, 0].tolist() == [10.0, 30.0]
    made_with = dict(vectors.made_with)
    assert (made_with["model"], made_with["batch_size"], made_with["precision"]) == ("m", 4, "float32")
    assert LexicalIndex.load(tmp_path / "out").n_pages == 3
    assert (result.failures, result.storable, result.used) == ({2: "it hung"}, True, {})


def test_other_words_or_lexical_parameters_embed_no_page_again(model: FakeModel, tmp_path: Path) -> None:
    first, _ = pages_archive(tmp_path / "a" / "p.zip", [1, 2, 3])
    other, _ = pages_archive(tmp_path / "b" / "p.zip", [1, 2, 3], ["Other", "words", "here"])
    with WorkPool(0, 10) as pool:
        EmbedStep(params(tmp_path), MODELS).compute(job(first), tmp_path / "one", pool)
        EmbedStep(params(tmp_path, window_tokens=50), MODELS).compute(job(other), tmp_path / "two", pool)
    assert model.pages == 3
    assert (PageVectors.load(tmp_path / "one").vectors == PageVectors.load(tmp_path / "two").vectors).all()


def test_another_picture_model_or_batch_size_is_embedded_anew(model: FakeModel, tmp_path: Path) -> None:
    archive, pages = pages_archive(tmp_path / "a.zip", [1, 2, 3])
    other, others = pages_archive(tmp_path / "b.zip", [1, 2, 4])
    encoders(tmp_path).embed(archive, pages)
    encoders(tmp_path).embed(other, others)
    encoders(tmp_path, batch_size=8).embed(archive, pages)
    PageEncoders(params(tmp_path), {**ENTRY, "revision": "r2"}, load_settings()).embed(archive, pages)
    assert model.pages == 12
    PageEncoders(params(tmp_path), {**ENTRY, "package_version": "torch 2, bm25s 0.4"}, load_settings()).embed(
        archive, pages
    )
    assert model.pages == 12


def test_a_batch_that_had_to_be_smaller_is_filed_under_the_size_used_and_found_again(
    model: FakeModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model.fits = 2
    archive, pages = pages_archive(tmp_path / "a.zip", [1, 2, 3])
    store = Store(tmp_path / "store")
    step = EmbedStep(params(tmp_path), MODELS)
    with WorkPool(0, 10) as pool, caplog.at_level("WARNING"):
        ensured = ensure(step, job(archive), tmp_path / "out.safetensors", store, pool)
    smaller = EmbedStep(params(tmp_path, batch_size=2), MODELS)
    assert ensured.entry.key == artifact_key(smaller, job(archive)) != artifact_key(step, job(archive))
    assert "pages are now embedded 2 at a time" in caplog.text
    assert PageVectors.load(tmp_path / "out.safetensors").made_with["batch_size"] == 2
    model.fits, before = 99, model.pages
    assert encoders(tmp_path).embed(archive, pages).batch_size == 2
    assert model.pages == before


def test_later_documents_begin_with_the_size_that_fitted(model: FakeModel, tmp_path: Path) -> None:
    model.fits = 2
    made = encoders(tmp_path)
    made.embed(*pages_archive(tmp_path / "a.zip", [1, 2, 3]))
    before = model.pages
    made.embed(*pages_archive(tmp_path / "b.zip", [4, 5, 6]))
    assert model.pages == before + 3


def test_a_page_that_failed_for_a_passing_reason_is_not_stored(model: FakeModel, tmp_path: Path) -> None:
    archive, pages = pages_archive(tmp_path / "a.zip", [1, 2, 3])
    model.fits = 0
    found = encoders(tmp_path).embed(archive, pages)
    assert (found.storable, sorted(found.failures)) == (False, [1, 2, 3])
    model.fits = 99
    assert encoders(tmp_path).embed(archive, pages).failures == {}


def test_a_damaged_picture_is_remembered_with_the_vectors_of_the_others(model: FakeModel, tmp_path: Path) -> None:
    archive, pages = pages_archive(tmp_path / "a.zip", [1, 2])
    write_archive(archive, PAGES_MEMBER, pages, [("1.png", b"broken"), ("2.png", b"broken too")])
    first = encoders(tmp_path).embed(archive, pages)
    again = encoders(tmp_path).embed(archive, pages)
    assert first.failures == again.failures
    assert sorted(first.failures) == [1, 2]
    assert again.storable


def test_the_key_of_words_alone_knows_nothing_of_the_visual_model(tmp_path: Path) -> None:
    archive, _ = pages_archive(tmp_path / "a.zip", [1, 2, 3])
    lexical = {"embedder": {"id": "lexical"}}
    plain = artifact_key(EmbedStep(EmbedParams(), lexical), job(archive))
    other = EmbedParams(model="org/other", revision="x", batch_size=9)
    assert artifact_key(EmbedStep(other, lexical), job(archive)) == plain


def test_the_key_with_images_changes_with_them(tmp_path: Path) -> None:
    step = EmbedStep(params(tmp_path), MODELS)
    keys = [
        step.key(job(pages_archive(tmp_path / n, s)[0])) for n, s in (("a", [1, 2]), ("b", [1, 3]), ("c", [2, 1]))
    ]
    assert all(a != b for i, a in enumerate(keys) for b in keys[:i])


def test_closing_a_steps_pool_ends_the_models_processes(model: FakeModel, tmp_path: Path) -> None:
    archive, _ = pages_archive(tmp_path / "a.zip", [1])
    made = encoders(tmp_path)
    closed: list[bool] = []
    made.close = lambda: closed.append(True)  # type: ignore[method-assign]
    with WorkPool(0, 10) as pool:
        step = EmbedStep(params(tmp_path), MODELS, made)
        step.compute(job(archive), tmp_path / "out", pool)
        step.compute(job(archive), tmp_path / "out", pool)
        assert not closed
    assert closed == [True]


def test_a_process_that_dies_while_loading_stops_the_stage_and_says_so(
    model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise WorkerDiedError("the worker process died (SIGKILL)")

    monkeypatch.setattr(page_vectors, "_warm_up", dies)
    with pytest.raises(ModelLoadError, match=r"loads m died.*SIGKILL.*free memory"):
        encoders(tmp_path).embed(*pages_archive(tmp_path / "a.zip", [1]))
