"""`docmemo review` in a terminal: 20 answers, interrupted once, and the kappa that comes out of it."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner

from docmemo.artifacts import write_jsonl
from docmemo.cli import app
from docmemo.evaluation.cases import build_cases
from docmemo.evaluation.review import Marks, draw
from tests.evaluation.review_cases import records

ROOT = Path(__file__).parents[1]
runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose last run has 40 judged answers."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    questions, answers, judgements, documents = records(40)
    write_jsonl(tmp_path / "data/corpus/questions.jsonl", questions)
    write_jsonl(tmp_path / "data/corpus/documents.jsonl", documents)
    write_jsonl(tmp_path / "data/answers/answers.jsonl", answers)
    write_jsonl(tmp_path / "data/judgements/judgements.jsonl", judgements)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Terminal:
    """`docmemo` in a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self.side, other = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "docmemo.cli", *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
            close_fds=True,
        )
        os.close(other)
        self.seen = ""

    def until(self, text: str, times: int = 1) -> None:
        """Read until `text` stands there so often."""
        end = time.monotonic() + 60
        while self.seen.count(text) < times:
            assert time.monotonic() < end, f"no {text!r} in:\n{self.seen}"
            if select.select([self.side], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.side, 65536).decode(errors="replace")
                except OSError:  # the other side is closed
                    assert self.seen.count(text) >= times, self.seen
                    return

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.side, text.encode())

    def end(self) -> int:
        """Wait for the end; its status."""
        status = self.process.wait(timeout=60)
        os.close(self.side)
        return status


def test_twenty_answers_interrupted_once_and_the_kappa_is_that_of_scikit_learn(project: Path) -> None:
    sample = draw(build_cases(*records(40)), 20, seed=5)
    person = {case.question.question_id: (i % 4 != 0) == (case.score == 1) for i, case in enumerate(sample)}
    keys = ["r\n" if person[case.question.question_id] else "w\n" for case in sample]
    command = ("review", "--reviewer", "ann", "--n", "20", "--seed", "5")

    first = Terminal(*command)
    for i in range(9):
        first.until("[q]uit:", i + 1)
        assert sample[i].question.question in first.seen
        first.type(keys[i])
    first.until("[q]uit:", 10)
    first.process.send_signal(signal.SIGINT)
    first.until("every mark is kept")
    assert first.end() == 130
    assert "Traceback" not in first.seen
    for hidden in ("SECRET REASON", "mmlongbench/1", "ab12"):
        assert hidden not in first.seen, "whoever marks sees neither score nor verdict"

    second = Terminal(*command)
    for i in range(9, 20):
        second.until("[q]uit:", i - 8)
        assert sample[i].question.question in second.seen
        second.type(keys[i])
    second.until("20 of 20 marked.")
    assert second.end() == 0
    assert sample[0].question.question not in second.seen

    result = runner.invoke(app, ["review", "--result", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)["reviewers"]["ann"]
    assert found["n"] == 20
    marks = [person[case.question.question_id] for case in sample]
    for rater, said in (("rule", [c.score == 1 for c in sample]), ("judge", [c.verdict == 1 for c in sample])):
        assert found[rater]["overall"]["kappa"]["value"] == pytest.approx(cohen_kappa_score(said, marks), abs=1e-6)


def test_quit_undo_skip_and_the_end_of_input_keep_what_was_marked(project: Path) -> None:
    start = ["review", "--reviewer", "ann", "--n", "5"]
    result = runner.invoke(app, start, input="r\nx\nu\nw\ns\nq\n")
    assert result.exit_code == 0
    assert result.stdout == "", "questions are no data"
    assert "One of r, w, s, u, q" in result.stderr
    assert "1 of 5 marked. The same command goes on" in result.stderr
    standing = Marks(project / ".docmemo" / "review", "ann").standing()
    assert sorted(mark.mark for mark in standing.values()) == ["skip", "wrong"]
    ended = runner.invoke(app, start, input="r\n")
    assert ended.exit_code == 0
    assert "2 of 5 marked" in ended.stderr


def test_the_result_is_a_table_with_intervals_or_the_reason_for_none(project: Path) -> None:
    runner.invoke(app, ["review", "--reviewer", "ann"], input="r\nw\n" * 20)
    result = runner.invoke(app, ["review", "--result"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "ann: 40 answers marked, 20 of them right" in result.stdout
    assert "rule and ann" in result.stdout
    assert "judge and ann" in result.stdout
    assert "evidence source: table" in result.stdout
    assert "too few documents" in result.stdout, "a slice has fewer than ten"
    assert "Cohen's kappa" in result.stdout


def test_what_is_wrong_is_said_in_one_sentence(project: Path) -> None:
    assert "There are no marks in" in runner.invoke(app, ["review", "--result"]).stderr
    runner.invoke(app, ["review", "--reviewer", "ann"], input="r\n")
    missing = runner.invoke(app, ["review", "--result", "--reviewer", "bob"])
    assert (missing.exit_code, "With marks: ann." in missing.stderr) == (2, True)
    assert "--json is for --result" in runner.invoke(app, ["review", "--json"]).stderr
    shutil.rmtree(project / "data" / "judgements")
    result = runner.invoke(app, ["review"])
    assert (result.exit_code, "nothing has been judged yet" in result.stderr) == (2, True)
