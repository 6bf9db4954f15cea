"""A whole run against a scripted server process: outages, overload, changed models and budgets."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from docmemo import errors
from docmemo.models.budget import RUN_BUDGET, question_budget
from docmemo.models.connection import close_connections
from docmemo.models.endpoints import endpoint_of, served_model
from tests.models.asking import Verdict, model, say
from tests.servers import ScriptedServer
from tests.servers.fixtures import StartServer


@pytest.fixture(autouse=True)
async def closing() -> object:
    RUN_BUDGET.reset()
    yield
    await close_connections()


async def test_a_changed_model_stops_the_run_before_it_is_asked(server: ScriptedServer) -> None:
    served = served_model(endpoint_of("reasoner"), "scripted")
    entry = {"provider": "openai_compatible", "id": "scripted", "served": served}
    assert (await model(entry=entry).ask(say("Which?"), Verdict)).usage.calls == 1
    await close_connections()
    server.change(models=[{"id": "scripted", "root": "scripted/two", "max_model_len": 32768}])
    with pytest.raises(errors.ModelLockError, match=r"'scripted/one' in the lock, 'scripted/two' served") as caught:
        await model(entry=entry).ask(say("Which now?"), Verdict)
    assert caught.value.stops_run
    assert "docmemo models lock" in caught.value.remedy
    assert len(server.requests()) == 1


async def test_the_lock_is_compared_once_for_all_requests(server: ScriptedServer) -> None:
    entry = {"served": served_model(endpoint_of("reasoner"), "scripted")}
    reader = model(entry=entry)
    await asyncio.gather(*(reader.ask(say(f"Which {n}?"), Verdict) for n in range(6)))
    assert server.state()["probes"] == 2, "once for the lock, once for the run"


async def test_a_hanging_server_is_given_up_at_the_request_timeout_and_not_before(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_REQUEST_TIMEOUT", "0.3")
    monkeypatch.setenv("DOCMEMO_CALL_ATTEMPTS", "2")
    server.reset(faults={"probability": 1, "kinds": ["hang"]})
    with pytest.raises(errors.ModelUnavailableError, match=r"within 0\.3 seconds \(DOCMEMO_REQUEST_TIMEOUT\)"):
        await model().ask(say("Which?"), Verdict)
    assert len(server.requests()) == 2
    monkeypatch.setenv("DOCMEMO_REQUEST_TIMEOUT", "30")
    server.reset(delay=1.5)
    reply = await model().ask(say("Which?"), Verdict)
    assert isinstance(reply.value, Verdict)
    assert len(server.requests()) == 1


async def test_a_server_that_is_gone_pauses_everybody_until_it_is_back(
    scripted_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.05")
    gone = scripted_server(delay=60)
    reader = model()
    asking = [asyncio.create_task(reader.ask(say(f"Which {n}?"), Verdict)) for n in range(6)]
    while len(gone.requests()) < 6:
        await asyncio.sleep(0.02)
    gone.kill()
    await asyncio.sleep(0.3)
    assert not any(task.done() for task in asking)
    gone.script = {}
    gone.start()
    replies = await asyncio.gather(*asking)
    assert len({reply.value.why for reply in replies}) == 6
    assert max(entry["attempt"] for entry in gone.requests()) <= 2, "a server that is gone costs no tries"


async def test_patience_that_ends_stops_everybody_with_what_to_do(
    scripted_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.05")
    monkeypatch.setenv("DOCMEMO_SERVER_PATIENCE", "0.4")
    scripted_server().kill()
    reader = model()
    asked = await asyncio.gather(*(reader.ask(say(f"Which {n}?"), Verdict) for n in range(4)), return_exceptions=True)
    assert [type(error) for error in asked] == [errors.ServerDownError] * 4
    assert all(
        isinstance(e, errors.ServerDownError) and e.stops_run and "DOCMEMO_BASE_URL" in e.remedy for e in asked
    )


async def test_a_restart_with_another_model_is_noticed(
    scripted_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.05")
    upgraded = scripted_server()
    entry = {"served": served_model(endpoint_of("reasoner"), "scripted")}
    reader = model(entry=entry)
    await reader.ask(say("Which?"), Verdict)
    upgraded.kill()
    later = asyncio.create_task(reader.ask(say("Which now?"), Verdict))
    while "cannot be reached" not in caplog.text:
        await asyncio.sleep(0.02)
    upgraded.script = {"models": [{"id": "scripted", "root": "scripted/two"}]}
    upgraded.start()
    with pytest.raises(errors.ModelLockError, match="scripted/two"):
        await later


async def test_retry_after_holds_the_whole_endpoint(server: ScriptedServer) -> None:
    server.reset(faults_at={"1": "429_retry_after"}, retry_after=1.5)
    reader = model()
    first = asyncio.create_task(reader.ask(say("Which?"), Verdict))
    while not server.requests():
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    second = asyncio.create_task(reader.ask(say("Which else?"), Verdict))
    await asyncio.sleep(0.4)
    assert len(server.requests()) == 1, "nothing is sent while the server asks to wait"
    await asyncio.gather(first, second)
    assert [entry["fault"] for entry in server.requests()] == ["429_retry_after", None, None]


async def test_a_wait_longer_than_the_patience_ends_the_run(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_SERVER_PATIENCE", "30")
    server.reset(faults_at={"1": "429_retry_after"}, retry_after=3600)
    with pytest.raises(errors.ServerDownError, match="3600 seconds"):
        await model().ask(say("Which?"), Verdict)


async def test_no_more_requests_are_in_flight_than_allowed(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_CONCURRENCY", "4")
    server.reset(delay=0.02, faults={"probability": 0.2, "seed": 1, "kinds": ["429", "500"]})
    reader = model()
    await asyncio.gather(*(reader.ask(say(f"Which {n}?"), Verdict) for n in range(24)))
    assert 1 < server.state()["peak"] <= 4


async def test_faults_change_no_answer(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCMEMO_CONCURRENCY", "16")
    questions = [say(f"Question {n}?") for n in range(60)]
    calm = await asyncio.gather(*(model().ask(question, Verdict) for question in questions))
    monkeypatch.setenv("DOCMEMO_HOME", str(tmp_path / "other"))
    kinds = ["429", "500", "503", "cut", "close", "think", "fence", "malformed"]
    server.reset(faults={"probability": 0.3, "seed": 5, "kinds": kinds})
    rough = await asyncio.gather(*(model().ask(question, Verdict) for question in questions))
    assert {entry["fault"] for entry in server.requests()} == {None, *kinds}
    assert [reply.value for reply in rough] == [reply.value for reply in calm]
    assert [reply.usage.calls for reply in rough] == [1] * 60


async def test_a_run_stops_at_its_budget_of_calls(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BUDGET_CALLS", "3")
    reader = model()
    asked = await asyncio.gather(*(reader.ask(say(f"Which {n}?"), Verdict) for n in range(6)), return_exceptions=True)
    stopped = [error for error in asked if isinstance(error, BaseException)]
    assert [type(error) for error in stopped] == [errors.RunBudgetError] * 3
    assert len(server.requests()) == 3
    assert "3 of 3 requests" in str(stopped[0])
    done = next(n for n, reply in enumerate(asked) if not isinstance(reply, BaseException))
    assert (await reader.ask(say(f"Which {done}?"), Verdict)).from_journal, "the journal costs no budget"


async def test_a_budget_of_tokens_is_never_exceeded(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BUDGET_TOKENS", "2000")
    reader = model(max_tokens=100)
    asked = await asyncio.gather(
        *(reader.ask(say(f"Which {n}?"), Verdict) for n in range(40)), return_exceptions=True
    )
    used = [reply.usage for reply in asked if not isinstance(reply, BaseException)]
    assert 0 < sum(usage.input_tokens + usage.output_tokens for usage in used) <= 2000
    assert {type(error) for error in asked if isinstance(error, BaseException)} == {errors.RunBudgetError}
    assert len(used) > 5, "estimates put aside for requests in flight are given back"


async def test_a_budget_in_dollars_needs_a_price_before_the_first_call(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_BUDGET_USD", "1")
    with pytest.raises(errors.ConfigError, match="scripted has no known one"):
        await model().ask(say("Which?"), Verdict)
    monkeypatch.delenv("DOCMEMO_BUDGET_USD")
    with question_budget(usd=1.0), pytest.raises(errors.ConfigError, match="question_usd"):
        await model().ask(say("Which?"), Verdict)
    assert server.requests() == []


async def test_a_question_stops_at_its_budget_whoever_paid(server: ScriptedServer) -> None:
    reader = model()

    async def answer() -> int:
        with question_budget(calls=2) as budget:
            for number in range(5):
                try:
                    await reader.ask(say(f"Round {number}"), Verdict)
                except errors.QuestionBudgetError as error:
                    assert "answer.question_calls: 2" in str(error)
                    assert not error.retryable
                    break
            return budget.spent.calls

    assert await answer() == 2
    assert await answer() == 2, "a second run with all replies in the journal stops at the same place"
    assert len(server.requests()) == 2


async def test_spend_of_unusable_replies_counts_for_the_question(server: ScriptedServer) -> None:
    server.reset(faults={"probability": 1, "kinds": ["length"]})
    with question_budget(calls=5) as budget, pytest.raises(errors.TruncatedReplyError):
        await model().ask(say("Which?"), Verdict)
    assert budget.spent.calls == 1
    assert budget.spent.output_tokens > 0
