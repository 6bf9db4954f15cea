"""The journal keeps what was finished, whatever ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from docmemo.errors import ArtifactError
from docmemo.qa.journal import Journal
from docmemo.qa.protocols import ReadReply
from docmemo.types import AnswerRecord, Failure
from docmemo.usage import Usage


def record(name: str = "q") -> AnswerRecord:
    return AnswerRecord(question_id=name, doc_id="d", question="?", outcome="answer", answer="42")


def test_a_result_is_found_again_and_keys_without_one_are_missing(tmp_path):
    journal = Journal(tmp_path / "j.sqlite")
    journal.finish("a", record(), None, 0.5)
    journal.close()
    journal = Journal(tmp_path / "j.sqlite")
    assert journal.missing(["a", "b"]) == ["b"]
    found = journal.results(["a", "b"])
    assert AnswerRecord.model_validate_json(found["a"].record) == record()
    assert found["a"].seconds == 0.5


def test_failures_add_up_their_spend_until_a_result_replaces_them(tmp_path):
    journal = Journal(tmp_path / "j.sqlite")
    failure = Failure(kind="ModelUnavailableError", message="down", retryable=True)
    journal.fail("a", failure, Usage(calls=1, input_tokens=10, cost_usd=0.25))
    journal.fail("a", failure, Usage(calls=2, input_tokens=5, cost_usd=0.25))
    attempt = journal.failures(["a"])["a"]
    assert (attempt.attempts, attempt.usage.calls, attempt.usage.cost_usd) == (2, 3, 0.5)
    assert journal.missing(["a"]) == ["a"]
    journal.finish("a", record(), None, 0.1)
    assert journal.failures(["a"]) == {}


def test_replies_of_an_unfinished_question_are_kept_until_it_is_finished(tmp_path):
    journal = Journal(tmp_path / "j.sqlite")
    reply = ReadReply(outcome="query_update", query="more", usage=Usage(calls=1))
    journal.add_reply("a", 1, "read", reply)
    assert journal.reply("a", 1, "read", ReadReply) == reply
    assert journal.reply("a", 2, "read", ReadReply) is None
    journal.finish("a", record(), None, 0.1)
    assert journal.reply("a", 1, "read", ReadReply) is None


def test_kill_9_loses_nothing_that_was_finished(tmp_path):
    script = f"""
import os, signal, sys
from docmemo.qa.journal import Journal
from docmemo.types import AnswerRecord
journal = Journal(__import__("pathlib").Path({str(tmp_path / "j.sqlite")!r}))
for i in range(50):
    journal.finish(str(i), AnswerRecord(question_id=str(i), doc_id="d", question="?", outcome="answer", answer="1"),
                   None, 0.0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -9
    assert Journal(tmp_path / "j.sqlite").missing([str(i) for i in range(51)]) == ["50"]


def test_a_file_that_is_no_journal_is_one_clear_error(tmp_path):
    (tmp_path / "j.sqlite").write_bytes(b"this is not a database at all, really not" * 50)
    with pytest.raises(ArtifactError, match=r"j\.sqlite"):
        Journal(tmp_path / "j.sqlite")


def test_a_relative_path_is_refused():
    from pathlib import Path

    with pytest.raises(ValueError, match="absolute"):
        Journal(Path("j.sqlite"))
