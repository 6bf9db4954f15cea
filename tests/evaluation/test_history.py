"""`docmemo runs` and `docmemo accept`: which runs there were, and which one later runs are compared with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docmemo.cli import app
from docmemo.errors import ArtifactError
from docmemo.evaluation.history import HISTORY, HISTORY_COLUMNS, read_history
from docmemo.evaluation.history_page import write_history_page
from docmemo.evaluation.revisions import Repository
from docmemo.evaluation.run_history import accepted, runs
from tests.evaluation.runs import Runs, all_right, failing_in, wrong_in
from tests.evaluation.test_compare import Outline

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """An empty repository, which is the working folder."""
    made = Runs(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


def docmemo(*arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_each_commit_that_changed_the_figures_is_a_run_newest_first(project: Runs) -> None:
    (project.folder / "note").write_text("nothing yet")
    project.commit("no run")
    first = project.run("first", all_right)
    (project.folder / "note").write_text("unrelated")
    project.commit("a commit without a run")
    second = project.run("second", failing_in("d0-q0", "d1-q1"))
    scores = json.loads((project.folder / "metrics" / "scores.json").read_text())
    status, out, _ = docmemo("runs", "--json")
    found = json.loads(out)
    assert (status, [r["revision"]["sha"] for r in found]) == (0, [second, first])
    newest = found[0]
    assert newest["figures"]["rule"] == scores["accuracy"]["rule"]
    assert newest["figures"]["recall"]["value"] == scores["evidence"]["recall_at_round"]["1"]
    assert (newest["n_questions"], newest["n_failed"]) == (96, 2)
    assert newest["names"] == ["main"]
    text = docmemo("runs")[1]
    assert text.index("second") < text.index("first")
    assert "2 failed" in text
    assert docmemo("runs", "--limit", "1")[1].count("questions ·") == 1


def test_uncommitted_figures_and_experiments_are_runs_too(project: Runs) -> None:
    first = project.run("first", all_right)
    experiment = project.run("dvc: commit experiment", wrong_in("d0-q0"))
    project.git("update-ref", f"refs/exps/{first[:2]}/{first[2:]}/calm-heron", experiment)
    project.git("update-ref", "refs/exps/stash", experiment)
    project.git("reset", "-q", "--hard", first)
    kinds = [(r.kind, r.revision.name) for r in runs(Repository(project.folder))]
    assert kinds == [("commit", first[:10]), ("experiment", "calm-heron")]
    project.write(wrong_in("d0-q0", "d1-q0"))
    assert [r.kind for r in runs(Repository(project.folder))] == ["working tree", "commit", "experiment"]
    other = project.git("checkout", "-q", "-b", "other")
    assert other == ""
    project.commit("on a branch")
    project.git("checkout", "-q", "main")
    assert len(runs(Repository(project.folder))) == 2
    assert len(runs(Repository(project.folder), everything=True)) == 3


def test_without_any_run_it_says_so(project: Runs) -> None:
    status, out, _ = docmemo("runs")
    assert (status, "No commit here holds metrics/scores.json" in out) == (0, True)
    (project.folder / "note").write_text("nothing yet")
    project.commit("no run")
    assert "No commit here holds" in docmemo("runs")[1]
    assert docmemo("runs", "--json")[1] == "[]\n"


def test_a_shallow_clone_and_a_detached_head_are_fine(
    project: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("first", all_right)
    project.run("second", wrong_in("d0-q0"))
    project.git("checkout", "-q", "--detach", "HEAD~1")
    assert [r.revision.subject for r in runs(Repository(project.folder))] == ["first"]
    project.git("clone", "-q", "--depth", "1", "-b", "main", f"file://{project.folder}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    status, out, err = docmemo("runs")
    assert status == 0
    assert "or older: the clone is shallow" in out
    assert "git fetch --unshallow" in err


def test_accepting_moves_a_ref_and_no_file(project: Runs) -> None:
    first = project.run("first", all_right)
    second = project.run("second", wrong_in("d0-q0"))
    repository = Repository(project.folder)
    assert accepted(repository).sha == second, "main counts while nothing was accepted"
    assert "main counts" in docmemo("accept", "--show")[2]
    status, out, err = docmemo("accept", "HEAD~1")
    assert (status, "accuracy (rule): 100.0%" in out, "refs/docmemo/accepted is now" in err) == (0, True, True)
    assert accepted(repository).sha == first
    assert docmemo("accept", "--show")[1].startswith(first)
    assert project.git("status", "--porcelain") == ""
    assert project.git("rev-parse", "main") == second, "no branch moves"
    assert [r.accepted for r in runs(repository)] == [False, True]
    (project.folder / "note").write_text("later")
    project.commit("a commit after the run")
    docmemo("accept")
    assert [r.accepted for r in runs(repository)] == [True, False], "the run whose figures that commit holds"


def test_a_revision_without_figures_is_not_accepted(project: Runs) -> None:
    (project.folder / "note").write_text("nothing yet")
    project.commit("no run")
    status, _, err = docmemo("accept")
    assert (status, "has no metrics/scores.json" in err) == (3, True)
    assert project.git("for-each-ref", "refs/docmemo") == ""
    assert docmemo("accept", "--ref", "refs/heads/main")[0] == 2, "never a branch"


def test_recorded_runs_are_lines_of_history_csv(project: Runs) -> None:
    first = project.run("first", all_right)
    scores = project.write(failing_in("d0-q0"))
    second = project.commit("second")
    docmemo("accept", "HEAD~1", "--record")
    docmemo("accept", "HEAD", "--record")
    assert "its last line is this run already" in docmemo("accept", "HEAD", "--record")[2]
    rows = read_history(project.folder / HISTORY)
    assert [row.revision for row in rows] == [first, second]
    newest = rows[-1]
    assert newest.accuracy == scores["accuracy"]["rule"]["value"]
    assert newest.recall_low == scores["evidence"]["intervals"]["recall_at_round"]["1"]["low"]
    assert (newest.n, newest.n_failed, newest.judge, newest.dataset) == (96, 1, None, "d1")
    assert read_history(project.folder / "no" / "history.csv") == []
    with (project.folder / HISTORY).open("a") as handle:
        handle.write("2026-01-01,abc,not a number,,,,,,,,,,,,,\n")
    with pytest.raises(ArtifactError, match="line 4"):
        read_history(project.folder / HISTORY)


def test_the_projects_own_history_file_can_be_read() -> None:
    path = ROOT / HISTORY
    assert path.read_text().splitlines()[0] == ",".join(HISTORY_COLUMNS)
    read_history(path)


def test_the_page_is_whole_offline_and_escapes_what_it_shows(project: Runs, tmp_path: Path) -> None:
    project.run("first", all_right)
    project.run("<script>alert(1)</script>", wrong_in("d0-q0"))
    project.run("other questions", all_right, dataset={"format": "folder", "digest": "d2", "n_questions": 96})
    docmemo("accept")
    write_history_page(tmp_path / "page.html", runs(Repository(project.folder)))
    text = (tmp_path / "page.html").read_text()
    outline = Outline()
    outline.feed(text)
    assert (outline.open, outline.links) == ([], [])
    assert "<script" not in text
    assert text.count('class="break"') == 2, "one in each plot, where the dataset changes"
    assert "accepted" in text
