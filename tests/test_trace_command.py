"""`docmemo trace`: finds a question of the last run, shows it, lists all; data on stdout, one clear error."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docmemo.artifacts import write_jsonl
from docmemo.cli import app
from docmemo.qa.trace import write_trace
from tests.evaluation.builders import failed, question
from tests.evaluation.test_trace_page import PLAN, trace_view

ROOT = Path(__file__).parents[1]
runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose last run answered q1 and failed on q2."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    view = trace_view(5, PLAN, [3])
    assert view.trace is not None and view.question is not None
    write_jsonl(tmp_path / "data/answers/answers.jsonl", [view.answer, failed(question(2, "no", [1]))])
    write_jsonl(tmp_path / "data/corpus/questions.jsonl", [view.question, question(2, "no", [1])])
    write_trace(tmp_path / "data/answers/traces", view.trace)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_question_is_shown_on_stdout(project: Path) -> None:
    result = runner.invoke(app, ["trace", "q1"])
    assert result.exit_code == 0
    assert "What was sold?" in result.stdout
    assert "page 3 first read in round 2" in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_json_is_the_records(project: Path) -> None:
    values = json.loads(runner.invoke(app, ["trace", "q1", "--json"]).stdout)
    view = trace_view(5, PLAN, [3])
    assert view.trace is not None
    assert values["answer"] == view.answer.model_dump(mode="json")
    assert values["trace"] == view.trace.model_dump(mode="json")
    assert values["question"]["evidence_pages"] == [3]


def test_html_prints_the_path_of_a_page_git_ignores(project: Path) -> None:
    result = runner.invoke(app, ["trace", "q1", "--html"])
    path = Path(result.stdout.strip())
    assert path == project / ".docmemo/traces/q1.html"
    assert "What was sold?" in path.read_text(encoding="utf-8")
    assert ".docmemo/" in (ROOT / ".gitignore").read_text().splitlines()
    elsewhere = runner.invoke(app, ["trace", "q1", "--out", "pages/one.html"])
    assert elsewhere.stdout.strip() == "pages/one.html"
    assert (project / "pages/one.html").is_file()


def test_a_failed_question_without_trace_shows_its_error(project: Path) -> None:
    result = runner.invoke(app, ["trace", "q2"])
    assert result.exit_code == 0
    assert "ModelTimeoutError: no reply in 120 s" in " ".join(result.stdout.split())
    assert json.loads(runner.invoke(app, ["trace", "q2", "--json"]).stdout)["trace"] is None


def test_list_names_every_question_with_outcome_and_rounds(project: Path) -> None:
    lines = [line.split(maxsplit=4) for line in runner.invoke(app, ["trace", "--list"]).stdout.splitlines()]
    assert [line[:4] for line in lines] == [["q1", "answer", "3", "rounds"], ["q2", "failed", "0", "rounds"]]
    assert json.loads(runner.invoke(app, ["trace", "--list", "--json"]).stdout)[1] == {
        "question_id": "q2",
        "doc_id": "a.pdf",
        "outcome": "failed",
        "rounds": 0,
    }


def test_an_unknown_id_names_close_ones_and_how_to_list_all(project: Path) -> None:
    result = runner.invoke(app, ["trace", "Q11"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "error: The last run has no question 'Q11'.\nClose: q1. `docmemo trace --list` prints all 2 ids.\n"
    )
    assert "Close" not in runner.invoke(app, ["trace", "zzzzzz"]).stderr


def test_what_is_missing_is_said(project: Path) -> None:
    assert "--list" in runner.invoke(app, ["trace"]).stderr
    assert "exclude" in runner.invoke(app, ["trace", "q1", "--json", "--html"]).stderr
    shutil.rmtree(project / "data/answers")
    result = runner.invoke(app, ["trace", "q1"])
    assert result.exit_code == 2
    assert "Run `dvc repro` first." in result.stderr
