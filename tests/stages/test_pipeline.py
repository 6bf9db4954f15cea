"""`dvc repro` computes what changed and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stages.project import Project, make_pdf

OFFLINE = ("render", "layout", "embed", "summarize", "schema")
TOPICS = ["heron", "turbine", "orchard"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, prefect_url: str) -> Project:
    """Three documents, run once and committed; copied for each test."""
    folder = tmp_path_factory.mktemp("finished") / "project"
    folder.mkdir()
    made = Project(folder, TOPICS, {"PREFECT_API_URL": prefect_url})
    made.repro()
    made.commit("first run")
    return made


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project."""
    return finished.copy(tmp_path)


def test_only_what_changed_is_computed(project: Project) -> None:
    """One story, since each run of the pipeline takes seconds."""
    first = project.repro()
    assert first.ran == [], "nothing changed"
    assert project.git("status", "--porcelain") == "", "a run with nothing changed leaves git clean"

    make_pdf(project.folder / "dataset" / "lantern.pdf", "lantern")
    added = project.repro()
    for step in OFFLINE:
        assert added.counts(step) == (1, 3), f"{step}: one document came"
    assert "answer: 0 to answer, 3 already answered" in added.output

    (project.folder / "dataset" / "lantern.pdf").unlink()
    removed = project.repro()
    for step in OFFLINE:
        assert removed.counts(step)[0] == 0, f"{step}: nothing is computed when a document leaves"
    left = [
        path.name
        for folder in ("pages", "layout", "embeddings", "summaries", "schema")
        for path in (project.folder / "data" / folder).iterdir()
    ]
    assert not [name for name in left if "lantern" in name], "its artifacts are gone"
    assert project.git("status", "--porcelain") == "", "and the committed state is back"

    path = project.folder / "docmemo" / "documents" / "render.py"
    source = path.read_text()
    path.write_text(source + "\n# a comment\n")
    commented = project.repro()
    assert commented.ran[0] == "render"
    assert commented.counts("render") == (0, 3), "a comment recomputes no document"
    path.write_text(source)

    project.set({"schema.max_sections": 7})
    one = project.repro()
    assert one.ran[0] == "schema"
    assert not {"ingest", "render", "layout", "embed", "summarize"} & set(one.ran)
    assert one.counts("schema") == (3, 0)
    project.set({"schema.max_sections": 120})
    back = project.repro()
    assert all(back.counts(step)[0] == 0 for step in OFFLINE), "going back computes nothing"
    assert "0 to answer" in back.output or "answer" not in back.ran

    lock = json.loads((project.folder / "models.lock.json").read_text())
    changed = {**lock, "summarizer": {**lock["summarizer"], "revision": "other"}}
    (project.folder / "models.lock.json").write_text(json.dumps(changed))
    status = project.run("dvc", "status")
    stale = [line.rstrip(":") for line in status.splitlines() if line and not line.startswith(("\t", " "))]
    assert stale == ["summarize", "report"], "a model key concerns its stage, and the report that names it"


def test_changing_what_answers_runs_only_the_stages_after_it_and_metrics_diff_shows_it(project: Project) -> None:
    project.set({"retrieval.bigram_weight": 2.5, "loop.evidence": 1})
    run = project.repro()
    assert run.ran == ["answer", "judge", "report"] or run.ran == ["answer", "report"]
    project.commit("other retrieval")
    difference = json.loads(project.run("dvc", "metrics", "diff", "HEAD~1", "--json"))
    assert "page_reads.mean" in json.dumps(difference)
    assert project.git("status", "--porcelain") == ""


def test_going_without_the_cache_a_fresh_clone_reproduces_the_same_files(project: Project) -> None:
    lock = (project.folder / "dvc.lock").read_text()
    for folder in ("data", ".dvc/cache", ".dvc/tmp"):
        project.run("rm", "-rf", folder)
    (project.folder / "data").mkdir()
    again = project.repro()
    assert again.counts("render") == (0, 3), "the store still has it all"
    assert (project.folder / "dvc.lock").read_text() == lock
    assert project.git("status", "--porcelain") == ""


def test_a_wrong_key_ends_with_one_clear_error_before_any_work(project: Project) -> None:
    text = (project.folder / "params.yaml").read_text()
    (project.folder / "params.yaml").write_text(text.replace("bigram_weight", "bigram_wieght"))
    output = project.run("dvc", "repro", expect=-1)
    assert "retrieval.bigram_wieght: unknown key. Did you mean 'bigram_weight'?" in output
    assert "Traceback" not in output


def test_a_bad_document_is_recorded_and_the_rest_goes_on(checkout) -> None:
    project = checkout(["heron", "turbine"])
    (project.folder / "dataset" / "turbine.pdf").write_bytes(b"%PDF-1.7 truncated")
    project.repro()
    documents = {d["doc_id"]: d for d in project.lines("data/corpus/documents.jsonl")}
    assert (documents["turbine.pdf"]["status"], documents["heron.pdf"]["status"]) == ("failed", "ok")
    assert documents["turbine.pdf"]["reason"]
    answers = {a["question_id"]: a for a in project.lines("data/answers/answers.jsonl")}
    assert answers["q-turbine"]["outcome"] == "failed"
    assert answers["q-heron"]["outcome"] == "answer"
    scores = json.loads((project.folder / "metrics" / "scores.json").read_text())
    assert (scores["n_questions"], scores["n_failed"], scores["n_documents_failed"]) == (2, 1, 1)
    assert "turbine.pdf" in (project.folder / "metrics" / "report.html").read_text()
