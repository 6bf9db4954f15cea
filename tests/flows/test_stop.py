"""An error that no other item could get around stops a run: nothing more is begun, what is under way ends."""

from __future__ import annotations

import asyncio

import pytest

from docmemo.errors import (
    ConfigError,
    DatasetError,
    IncompleteRunError,
    ModelAccessError,
    ModelLockError,
    ModelUnavailableError,
    QuestionBudgetError,
    RunBudgetError,
    ServerDownError,
)
from flows.answer import batch_work
from flows.tasks import NotAskedError, Stop, failure_of, run_all, stops_run
from stages.failures import not_asked, report_failures

DOWN = ServerDownError("The server is gone.", remedy="Start it.")


async def test_nothing_is_begun_after_the_stop_and_what_is_under_way_ends():
    begun, ended = [], []

    async def item(key: str) -> None:
        begun.append(key)
        await asyncio.sleep(0.01 if key == "b" else 0.05)
        if key == "b":
            raise DOWN
        ended.append(key)

    heard = {}
    reason = await run_all("abcdef", item, 3, heard.__setitem__)
    assert reason is DOWN
    assert begun == ["a", "b", "c"]
    assert ended == ["a", "c"]
    assert heard["b"] is DOWN
    assert heard["a"] is heard["c"] is None
    assert {type(heard[key]) for key in "def"} == {NotAskedError}
    assert str(heard["d"]) == "not asked: The server is gone. Start it."


async def test_any_other_error_is_that_items_own():
    async def item(key: str) -> None:
        if key == "b":
            raise ModelUnavailableError("busy")
        if key == "c":
            raise ValueError("unforeseen")

    heard = {}
    assert await run_all("abcd", item, 1, heard.__setitem__) is None
    assert [type(heard[key]) for key in "abcd"] == [type(None), ModelUnavailableError, ValueError, type(None)]


@pytest.mark.parametrize(
    ("error", "stops", "asked_again"),
    [
        (DOWN, True, True),
        (RunBudgetError("spent"), True, True),
        (ModelAccessError("wrong key"), True, True),
        (ModelLockError("another model"), True, True),
        (ConfigError("no price"), True, True),
        (QuestionBudgetError("spent"), False, False),
        (ModelUnavailableError("busy"), False, True),
        (DatasetError("bad window"), False, False),
        (ValueError("unforeseen"), False, True),
    ],
)
def test_which_errors_stop_a_run_and_which_items_are_asked_again(error, stops, asked_again):
    assert stops_run(error) == stops
    assert failure_of(error)[0].retryable == asked_again


def test_the_first_reason_stays():
    stop = Stop()
    for error in (ValueError("x"), DOWN, RunBudgetError("later")):
        stop.hear(error)
    assert stop.reason is DOWN


async def test_the_rest_of_a_batch_is_left_when_the_run_stops():
    done = []

    class Missing:
        def missing(self, keys):
            return list(keys)

    async def work(key: str) -> None:
        done.append(key)
        raise DOWN if key == "b" else ModelUnavailableError("busy")

    with pytest.raises(ServerDownError):
        await batch_work({"one": ["a", "b", "c"]}, work, Missing())("one")
    assert done == ["a", "b"]


def test_a_stopped_run_is_never_accepted_and_says_what_to_do():
    with pytest.raises(IncompleteRunError, match=r"stopped: The server is gone\. 7 questions are left") as caught:
        report_failures(dict.fromkeys("abcdefg", "x"), True, "answer", "questions", DOWN)
    assert caught.value.exit_code == 3
    for part in ("Start it.", "Everything finished is kept", "does not accept a stopped run"):
        assert part in caught.value.remedy
    report_failures({"a": "x"}, True, "answer", "questions")


def test_an_item_whose_turn_never_came_says_why():
    failure = not_asked(DOWN).failure
    assert (failure.kind, failure.message, failure.retryable) == ("NotAsked", "not asked: The server is gone.", True)
    assert not_asked(None).failure.kind == "NeverAsked"
