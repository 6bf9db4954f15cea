"""`python -m flows.ablations` on a small project, as `make ablations` and `make reproduce-small` run it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from docmemo.evaluation.ablation_record import read_ablations
from tests.stages.project import Project

TOPICS = ["heron", "turbine"]
COMMAND = ("python", "-m", "flows.ablations")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, prefect_url: str) -> Project:
    """A project whose offline stages have run, with a reader that notes what it is asked."""
    folder = tmp_path_factory.mktemp("prepared") / "project"
    folder.mkdir()
    made = Project(folder, TOPICS, {"PREFECT_API_URL": prefect_url})
    made.use_test_reader()
    made.repro("embed", "schema")
    made.commit("offline stages")
    return made


@pytest.fixture
def project(prepared: Project, tmp_path: Path) -> Project:
    """A copy of the prepared project."""
    return prepared.copy(tmp_path)


def rows(project: Project) -> dict[tuple[str, str], dict[str, str]]:
    """metrics/ablations.csv by configuration and metric."""
    with (project.folder / "metrics" / "ablations.csv").open() as handle:
        return {(row["configuration"], row["metric"]): row for row in csv.DictReader(handle)}


def test_every_configuration_is_answered_once_and_finished_answers_are_used_again(project: Project) -> None:
    output = project.run(*COMMAND, "--names", "static", "full", "fixed_rounds")
    assert "3 configurations, 6 to answer, 0 already" in output
    # The test reader answers at once; fixed_rounds asks it three times a question.
    assert Counter(project.reads()) == {f"q-{topic}": 5 for topic in TOPICS}
    table = rows(project)
    assert [name for name, metric in table if metric == "recall"] == ["questions", "full", "static", "fixed_rounds"]
    assert (table["full", "recall"]["rounds"], table["fixed_rounds", "recall"]["rounds"]) == ("1", "3")
    kept = read_ablations(project.folder / "metrics")
    dataset = json.loads((project.folder / "data" / "corpus" / "dataset.json").read_text())
    assert kept is not None
    assert (kept.record.dataset, kept.configurations) == (dataset["digest"], ["full", "static", "fixed_rounds"])
    text = (project.folder / "metrics" / "ablations.md").read_text()
    for name in ("full", "static", "fixed_rounds"):
        traces = project.folder / "data" / "ablations" / name / "traces"
        assert len(project.lines(f"data/ablations/{name}/answers.jsonl")) == len(list(traces.iterdir())) == 2
    assert "data/ablations" not in project.git("status", "--porcelain", "--untracked-files=all")

    again = project.run(*COMMAND, "--names", "full", "static", "fixed_rounds")
    assert "0 to answer, 6 already" in again
    assert (project.folder / "metrics" / "ablations.md").read_text() == text, "and the table is the same"
    assert "not up to date" not in again
    assert "answer: 0 to answer, 2 already answered" in project.run("python", "-m", "stages.answer")
    project.set({"schema.max_sections": 7})
    stale = project.run(*COMMAND, "--names", "static")
    assert "the offline stages are not up to date; `dvc repro embed schema` brings them so" in stale


def test_failed_questions_are_counted_and_the_next_run_asks_only_them(project: Project) -> None:
    (project.folder / "failing").write_text("q-turbine")
    output = project.run(*COMMAND, "--names", "full", "static", expect=-1)
    assert "q-turbine (full): the server refused q-turbine" in output
    assert rows(project)["static", "accuracy"]["n_failed"] == "1"
    (project.folder / "failing").unlink()
    asked = len(project.reads())
    assert "2 to answer, 2 already" in project.run(*COMMAND, "--names", "full", "static")
    assert project.reads()[asked:] == ["q-turbine"] * 2
    assert rows(project)["static", "accuracy"]["n_failed"] == "0"


def test_what_is_missing_or_wrong_is_said_in_one_sentence(project: Project) -> None:
    output = project.run(*COMMAND, "--names", "fully", expect=-1)
    assert "Unknown configurations fully. Known: full, no_schema" in output
    assert "Traceback" not in output
    project.run("rm", "-rf", "data/schema")
    assert "There is no data/schema. Run `dvc repro embed schema` first." in project.run(*COMMAND, expect=-1)


def test_reproduce_small_leaves_the_project_as_it_was(project: Project) -> None:
    dataset = project.folder.parent / "mmlongbench"
    (dataset / "documents").mkdir(parents=True)
    row = {"doc_id": "heron.pdf", "doc_type": "Report", "question": "How many units did the heron measure?"}
    gold = {"answer": "103", "evidence_pages": "[1]", "evidence_sources": "['Pure-text (Plain-text)']"}
    (dataset / "samples-smoke.json").write_text(json.dumps([{**row, **gold, "answer_format": "Int"}]))
    (dataset / "documents" / "heron.pdf").write_bytes((project.folder / "dataset" / "heron.pdf").read_bytes())
    before = project.git("status", "--porcelain")
    tables = sorted((project.folder / "metrics").glob("ablations.*"))
    own = [path.read_bytes() for path in tables]
    module = ("python", "-m", "scripts.reproduce_small")
    output = project.run(*module, "--names", "full", "static", "--dataset", str(dataset), PYTHONPATH=".")
    place = project.folder / ".docmemo" / "reproduce-small" / "metrics" / "ablations.md"
    assert output.splitlines()[-1] == str(place)
    assert place.read_text().startswith("# DocMemo, baselines and key ablations on a small part of mmlongbench\n")
    assert "embed: 0 computed, 1 reused" in output, "the shared store knows the document's text"
    assert project.git("status", "--porcelain") == before
    assert [path.read_bytes() for path in tables] == own, "the project's own table is as it was"
    other = project.run(*module, "--dataset", str(project.folder), expect=-1)
    assert "has neither samples-smoke.json nor samples.json" in other
