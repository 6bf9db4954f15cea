"""From page images to ranked pages with a real (tiny, random) model: the step, the processes, the commands, dvc."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from docmemo.artifacts import read_pages
from docmemo.cli import app
from docmemo.config import EmbedParams, Params, RetrievalParams
from docmemo.errors import ModelLoadError
from docmemo.models import colqwen
from docmemo.models.colqwen_files import find_weights
from docmemo.models.colqwen_queries import StoredQueries
from docmemo.models.lock import resolve_role
from docmemo.pipeline import page_vectors
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.page_vectors import PageEncoders
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.runner import run_step
from docmemo.pipeline.step import Job
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.retrieval.late_interaction import PageVectors, maxsim
from docmemo.settings import load_settings
from docmemo.store import Store
from docmemo.types import Document
from tests.documents.pdfs import simple
from tests.stages.project import Project

VISUAL_ONLY = {"page_weight": 0, "window_weight": 0, "bigram_weight": 0, "reference_weight": 0}
TEXTS = ["The heron measured 41 units.", "Turbines turn in the wind.", "An orchard of pears."]


@pytest.fixture
def params(tiny_folder: Path) -> Params:
    return Params.model_validate(
        {"embed": {"backend": "colqwen", "model": str(tiny_folder), "batch_size": 2}, "retrieval": VISUAL_ONLY}
    )


@pytest.fixture
def models(params: Params) -> dict[str, Any]:
    return {"embedder": resolve_role(params, "embedder")}


def rendered(folder: Path, params: Params, names: list[str]) -> list[Job]:
    """Jobs on rendered PDFs, each of other texts."""
    models = {role: resolve_role(params, role) for role in ("renderer", "ocr")}
    jobs = []
    with WorkPool(0, 60) as pool:
        for number, name in enumerate(names):
            source = simple(folder / name, [f"{text} File {number}." for text in TEXTS])
            digest = hashlib.sha256(source.read_bytes()).hexdigest()
            document = Document(doc_id=name, path=name, sha256=digest, n_pages=len(TEXTS))
            archive = folder / f"{name}.zip"
            RenderStep(params.render, models).compute(Job(document, source, {}), archive, pool)
            jobs.append(Job(document, source, {"render": archive}))
    return jobs


def embed(params: Params, models: dict[str, Any], jobs: list[Job], out: Path, parallel: int = 1) -> Any:
    """Run the step as the stage does: lexical work in one process, the model in others."""
    settings = load_settings()
    with PageEncoders(params.embed, models["embedder"], settings) as encoders, WorkPool(1, 60) as pool:
        step = EmbedStep(params.embed, models, encoders)
        return run_step(step, jobs, out, store=Store(settings.store_dir), pool=pool, parallel=parallel)


def view(job: Job, embedding: Path, params: Params, models: dict[str, Any]) -> DocumentView:
    artifacts = Artifacts(job.inputs["render"], embedding, embedding, embedding)
    encoder = StoredQueries(params.embed, models["embedder"], load_settings())
    return DocumentView(job.document.doc_id, artifacts, params.retrieval, encoder)


def test_pages_are_embedded_in_a_process_of_the_models_own_and_ranked_by_maxsim(
    params: Params, models: dict[str, Any], tmp_path: Path
) -> None:
    (job,) = rendered(tmp_path, params, ["a.pdf"])
    summary = embed(params, models, [job], tmp_path / "out")
    assert (summary.computed, summary.failed) == (["a.pdf"], {})
    found = tmp_path / "out" / "a.pdf.safetensors"
    vectors = PageVectors.load(found)
    assert vectors.n_pages == 3
    assert vectors.made_with["revision"] == models["embedder"]["revision"]
    model = colqwen.shared(find_weights(params.embed), "cpu")
    query = model.embed_query("How many units did the heron measure?")
    expected = maxsim(query, vectors.vectors.astype(np.float32), vectors.offsets)
    scores = view(job, found, params, models).retriever.score("How many units did the heron measure?", [1, 2, 3])
    assert np.argsort(scores).tolist() == np.argsort(expected).tolist()


async def test_a_query_is_embedded_in_a_thread_once_and_later_runs_need_no_model(
    params: Params, models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = rendered(tmp_path, params, ["a.pdf"])
    embed(params, models, [job], tmp_path / "out")
    found = tmp_path / "out" / "a.pdf.safetensors"
    first = view(job, found, params, models)
    await first.prepare(["heron", "turbine"])
    scores = first.retriever.score("heron", [1, 2, 3])

    def no_model(*_: object) -> None:
        raise AssertionError("a stored query asks no model")

    monkeypatch.setattr(colqwen, "shared", no_model)
    again = view(job, found, params, models)
    await again.prepare(["heron"])
    np.testing.assert_array_equal(again.retriever.score("heron", [1, 2, 3]), scores)


def test_several_devices_hold_a_model_each_and_share_the_documents(
    params: Params, models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes on the CPU stand in for two GPUs."""
    monkeypatch.setattr(page_vectors, "parse_devices", lambda _: ["cpu", "cpu"])
    jobs = rendered(tmp_path, params, ["a.pdf", "b.pdf"])
    together = embed(params, models, jobs, tmp_path / "two", parallel=2)
    assert sorted(together.computed) == ["a.pdf", "b.pdf"]
    monkeypatch.undo()
    monkeypatch.setenv("DOCMEMO_HOME", str(tmp_path / "other-home"))
    here = PageEncoders(params.embed, models["embedder"], load_settings(), in_process=True)
    for job in jobs:
        alone = here.embed(job.inputs["render"], read_pages(job.inputs["render"])).vectors
        found = PageVectors.load(tmp_path / "two" / f"{job.document.doc_id}.safetensors")
        assert alone.offsets.tolist() == found.offsets.tolist()
        np.testing.assert_allclose(alone.vectors.astype(np.float32), found.vectors.astype(np.float32), atol=2e-3)


def test_a_model_that_cannot_be_loaded_stops_the_step_with_one_error(
    params: Params, models: dict[str, Any], tmp_path: Path, tiny_folder: Path
) -> None:
    jobs = rendered(tmp_path, params, ["a.pdf"])
    broken = tmp_path / "broken"
    shutil.copytree(tiny_folder, broken)
    (broken / "model.safetensors").write_bytes(b"cut")
    wrong = params.model_copy(update={"embed": params.embed.model_copy(update={"model": str(broken)})})
    with pytest.raises(ModelLoadError, match="cannot be loaded"):
        embed(wrong, models, jobs, tmp_path / "out")


def ask(folder: Path, params: Params, *arguments: str) -> Any:
    """`docmemo ask`, everything in this process."""
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(params.model_dump(mode="json", by_alias=True)))
    return CliRunner().invoke(app, ["ask", *arguments, "--json", "--params", str(path)])


def test_ask_works_with_page_images_on_one_file_and_on_several(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_WORKERS", "0")
    params = params.model_copy(update={"retrieval": RetrievalParams()})
    one = simple(tmp_path / "one.pdf", TEXTS)
    two = simple(tmp_path / "two.pdf", ["A page about lanterns.", "The lantern weighs 17 grams."])
    done = ask(tmp_path, params, str(one), "How many units did the heron measure?")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["outcome"] == "answer"
    done = ask(tmp_path, params, str(one), str(two), "How much does the lantern weigh?")
    assert {"file": str(two), "page": 2} in json.loads(done.stdout)["pages"]


def test_without_the_model_on_this_machine_ask_says_what_to_download(params: Params, tmp_path: Path) -> None:
    missing = params.model_copy(update={"embed": EmbedParams(backend="colqwen", model="nobody/nothing")})
    done = ask(tmp_path, missing, str(simple(tmp_path / "one.pdf", TEXTS)), "What?")
    assert done.exit_code == 2
    assert "hf download nobody/nothing" in done.stderr


def test_dvc_repro_embeds_and_answers_and_other_lexical_parameters_embed_no_page_again(
    tiny_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, ["heron", "turbine"])
    project.set({"embed.backend": "colqwen", "embed.model": str(tiny_folder), "embed.batch_size": 2})
    project.run("docmemo", "models", "lock")
    first = project.repro("answer")
    assert first.counts("embed") == (2, 0)
    assert project.stored("page_vectors") == 2
    assert project.stored("query_vectors") >= 2
    records = project.lines("data/answers/answers.jsonl")
    assert [record["outcome"] for record in records] == ["answer", "answer"]
    project.set({"embed.window_tokens": 60})
    assert project.repro("embed").counts("embed") == (2, 0)
    assert project.stored("page_vectors") == 2
