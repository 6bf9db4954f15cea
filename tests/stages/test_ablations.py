"""`python -m flows.ablations` on a small project, as `make ablations` and `make reproduce-small` run it."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections import Counter
from typing import Any

from tests.stages.project import ROOT, Project, wait_until

TOPICS = ["heron", "turbine", "orchard"]
COMMAND = ("python", "-m", "flows.ablations")


def prepared(checkout: Any, *, reader: bool = True) -> Project:
    """A project whose offline stages have run."""
    project: Project = checkout(TOPICS)
    if reader:
        project.use_test_reader()
    project.repro("embed", "schema")
    return project


def rows(project: Project) -> dict[tuple[str, str], dict[str, str]]:
    """metrics/ablations.csv by configuration and metric."""
    with (project.folder / "metrics" / "ablations.csv").open() as handle:
        return {(row["configuration"], row["metric"]): row for row in csv.DictReader(handle)}


def test_every_configuration_is_answered_once_and_finished_answers_are_used_again(checkout) -> None:
    project = prepared(checkout)
    output = project.run(*COMMAND, "--names", "static", "full", "fixed_rounds")
    assert "3 configurations, 9 to answer, 0 already" in output
    # The test reader answers at once; fixed_rounds asks it three times a question.
    assert Counter(project.reads()) == {f"q-{topic}": 5 for topic in TOPICS}
    table = rows(project)
    assert [name for name, metric in table if metric == "recall"] == ["questions", "full", "static", "fixed_rounds"]
    assert (table["full", "recall"]["rounds"], table["fixed_rounds", "recall"]["rounds"]) == ("1", "3")
    text = (project.folder / "metrics" / "ablations.md").read_text()
    for name in ("full", "static", "fixed_rounds"):
        folder = project.folder / "data" / "ablations" / name
        assert (
            len(project.lines(f"data/ablations/{name}/answers.jsonl"))
            == len(list((folder / "traces").iterdir()))
            == 3
        )

    again = project.run(*COMMAND, "--names", "full", "static", "fixed_rounds")
    assert "0 to answer, 9 already" in again
    assert (project.folder / "metrics" / "ablations.md").read_text() == text, "and the table is the same"
    project.repro("answer")
    assert len(project.reads()) == 15, "the answer stage finds the full method's answers"
    assert "data/ablations" not in project.git("status", "--porcelain")


def test_failed_questions_are_counted_and_the_next_run_asks_only_them(checkout) -> None:
    project = prepared(checkout)
    (project.folder / "failing").write_text("q-orchard")
    output = project.run(*COMMAND, "--names", "full", "static", expect=-1)
    assert "q-orchard (full): the server refused q-orchard" in output
    assert rows(project)["static", "accuracy"]["n_failed"] == "1"
    (project.folder / "failing").unlink()
    asked = len(project.reads())
    assert "2 to answer, 4 already" in project.run(*COMMAND, "--names", "full", "static")
    assert project.reads()[asked:] == ["q-orchard"] * 2
    assert rows(project)["static", "accuracy"]["n_failed"] == "0"


def test_an_interrupted_run_goes_on_where_it_was(checkout) -> None:
    project = prepared(checkout)
    slow = {"TEST_READER_SECONDS": "1.5", "DOCMEMO_CONCURRENCY": "1"}
    run = project.start(*COMMAND, "--names", "full", "static", **slow)
    wait_until(lambda: len(project.reads()) >= 3, 180)
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=30) != 0
    assert "finished work is kept" in project.output
    project.run(*COMMAND, "--names", "full", "static")
    assert len(project.reads()) <= 6 + 1, "only what was in flight is asked again"


def test_what_is_missing_or_wrong_is_said_in_one_sentence(checkout) -> None:
    project: Project = checkout(["heron"])
    assert "Run `dvc repro embed schema` first." in project.run(*COMMAND, expect=-1)
    output = project.run(*COMMAND, "--names", "fully", expect=-1)
    assert "Unknown configurations fully. Known: full, no_schema" in output
    assert "Traceback" not in output
    project.repro("embed", "schema")
    project.set({"schema.max_sections": 7})
    output = project.run(*COMMAND, "--names", "static")
    assert "the offline stages are not up to date; `dvc repro embed schema` brings them so" in output


def test_reproduce_small_leaves_the_project_as_it_was(checkout) -> None:
    project = prepared(checkout, reader=False)
    project.run("rm", "-rf", "data/sample")
    sample = project.folder / "mmlongbench"
    (sample / "documents").mkdir(parents=True)
    row = {"doc_id": "heron.pdf", "doc_type": "Report", "question": "How many units did the heron measure?"}
    gold = {"answer": "103", "evidence_pages": "[1]", "evidence_sources": "['Pure-text (Plain-text)']"}
    (sample / "samples-smoke.json").write_text(json.dumps([{**row, **gold, "answer_format": "Int"}]))
    (project.folder / "dataset" / "heron.pdf").rename(sample / "documents" / "heron.pdf")
    project.commit("a benchmark's folder")
    command = ("python", "-m", "scripts.reproduce_small", "--names", "full", "static", "--dataset", str(sample))
    output = project.run(*command)
    place = project.folder / ".docmemo" / "reproduce-small" / "metrics" / "ablations.md"
    assert output.splitlines()[-1] == str(place)
    assert place.read_text().startswith("# DocMemo, baselines and key ablations on a small part of mmlongbench\n")
    assert "render: 1 computed, 0 reused" in output or "render: 0 computed, 1 reused" in output
    assert project.git("status", "--porcelain") == ""
    assert not (project.folder / "metrics" / "ablations.md").exists()
    assert ROOT not in place.parents
