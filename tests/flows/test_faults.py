"""Transient faults change no answer; a killed flow or server loses nothing and repeats only what was in flight.

A small version of benchmarks/fault_run.py, without Prefect: the same loop, client, journals and scripted server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_socket

from benchmarks.fault_run import ANSWERS, Run, differing, failed, kill_flow, kill_server, make_corpus, open_corpus
from docmemo.errors import ConfigError
from docmemo.qa.journal import Journal
from docmemo.settings import load_settings
from flows.answer import answer_questions
from tests.servers import ScriptedServer

QUESTIONS = 24
CONCURRENCY = 6
FAULTS = {"probability": 0.2, "seed": 7, "kinds": ["429", "500", "503", "cut", "slow"]}

Begin = Callable[..., Run]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents and the questions about them."""
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, QUESTIONS, 3)
    return folder


@pytest.fixture(scope="module")
def begin(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begin]:
    """Starts a scripted server and gives a run against it."""
    pytest_socket.enable_socket()
    servers = []

    def make(**script: Any) -> Run:
        folder = tmp_path_factory.mktemp("run")
        servers.append(ScriptedServer({"answers": ANSWERS, "context": 32768, "slow": 0.1, **script}, folder))
        servers[-1].start()
        return Run("run", folder / "run", corpus, servers[-1], CONCURRENCY, prefect=False)

    yield make
    for server in servers:
        server.kill()


@pytest.fixture(scope="module")
def reference(begin: Begin) -> dict[str, Any]:
    """The answers of a run without faults."""
    run = begin()
    assert run.finish() == 0
    assert len(run.answers) == QUESTIONS
    assert {len(record["rounds"]) for record in run.answers.values()} == {1, 2, 3}
    assert {record["outcome"] for record in run.answers.values()} == {"answer", "not_answerable"}
    return run.answers


pytestmark = pytest.mark.enable_socket


def test_with_a_fifth_of_all_tries_failing_every_answer_is_the_same(begin: Begin, reference: dict[str, Any]) -> None:
    run = begin(faults=FAULTS)
    assert run.finish() == 0
    assert sum(e["fault"] is not None for e in run.server.requests()) > QUESTIONS / 2
    assert run.answers == reference
    assert run.paid_twice == 0


def test_a_killed_flow_goes_on_where_it_was(begin: Begin, reference: dict[str, Any]) -> None:
    run = begin(faults=FAULTS)
    kill_flow(run, QUESTIONS // 3)
    assert run.n_finished < QUESTIONS, "killed in the middle"
    assert run.finish() == 0
    assert run.answers == reference
    assert run.paid_twice <= CONCURRENCY, "only what was in flight is asked again"


def test_a_killed_server_is_waited_for_and_the_run_says_so(begin: Begin, reference: dict[str, Any]) -> None:
    run = begin(faults=FAULTS)
    assert kill_server(run, QUESTIONS // 3, away=1.0) == 0
    assert "model server cannot be reached; waiting" in run.output
    assert "can be reached again" in run.output
    assert run.answers == reference
    assert run.paid_twice <= CONCURRENCY


def test_a_server_that_stays_away_stops_the_run_and_the_next_one_asks_only_the_rest(
    begin: Begin, reference: dict[str, Any]
) -> None:
    run = begin()
    process = run.start(DOCMEMO_SERVER_PATIENCE="0.5", DOCMEMO_ACCEPT_FAILURES="1")
    run.wait_for(QUESTIONS // 3, process)
    run.server.kill()
    assert run.finish(process) == 3, "a stopped run is not accepted, whatever DOCMEMO_ACCEPT_FAILURES says"
    assert run.output.count("The run was stopped: The model server could not be reached for") == 1
    assert "Start it again" in run.output
    kept = run.n_finished
    assert QUESTIONS // 3 <= kept == QUESTIONS - len(failed(run))
    assert differing(run, reference) == []
    reasons = [r["error"] for r in run.answers.values() if r["outcome"] == "failed"]
    assert all(reason["retryable"] for reason in reasons)
    assert {reason["kind"] for reason in reasons} == {"ServerDownError", "NotAsked"}
    assert sum(reason["kind"] == "ServerDownError" for reason in reasons) <= CONCURRENCY
    assert any(reason["message"].startswith("not asked: The model server") for reason in reasons)
    run.server.start()
    before = len(run.server.requests())
    assert run.finish() == 0
    assert run.answers == reference
    assert run.paid_twice <= CONCURRENCY
    assert len(run.server.requests()) > before


def test_questions_that_meet_faults_for_too_long_fail_with_a_reason_and_are_asked_again(
    begin: Begin, reference: dict[str, Any]
) -> None:
    run = begin(faults={"probability": 0.5, "seed": 3, "kinds": ["500"]})
    assert run.finish(DOCMEMO_CALL_ATTEMPTS="2") == 3
    reasons = failed(run)
    assert 0 < len(reasons) < QUESTIONS
    assert all("is not available (HTTP 500)" in reason for reason in reasons.values())
    assert differing(run, reference) == []
    run.server.change(faults=None)
    assert run.finish() == 0
    assert run.answers == reference
    assert run.paid_twice == 0


def test_a_server_without_images_is_noticed_once_before_any_question(
    begin: Begin, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(images=False)
    monkeypatch.setenv("DOCMEMO_BASE_URL", run.server.base_url)
    answering, questions = open_corpus(corpus)
    journal = Journal(tmp_path / "journal.sqlite")
    pending = {answering.key(question): question for question in questions}
    stopped = answer_questions(pending, answering, journal, load_settings())
    assert isinstance(stopped, ConfigError)
    assert "The model of the reasoner does not take 8 images in a request" in stopped.message
    assert "answer.reader_model.images to false" in stopped.remedy
    assert len(run.server.requests()) == 1, "no retry storm"
    assert journal.missing(pending) == list(pending), "every question is still to be asked"
    assert journal.failures(pending) == {}
