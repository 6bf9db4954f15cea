"""Many requests at once: which failure is a request's own, and which ends the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from docmemo.errors import (
    ConfigError,
    ModelAccessError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    ServerDownError,
    TruncatedReplyError,
)
from docmemo.models.asking import REFUSALS, Asked, Watch, all_of
from docmemo.models.chat import Reply
from docmemo.usage import Usage


class Word(BaseModel):
    word: str


def reply(from_journal: bool = False) -> Reply[Word]:
    return Reply(Word(word="yes"), Usage(calls=1), "yes", from_journal=from_journal)


async def ask(watch: Watch, result: Any) -> Reply[Word] | ModelError:
    async def request() -> Reply[Word]:
        if isinstance(result, BaseException):
            raise result
        answered: Reply[Word] = result
        return answered

    return await watch.ask(request)


async def test_a_requests_own_failure_is_handed_back() -> None:
    watch = Watch()
    for error in (TruncatedReplyError("cut"), ModelUnavailableError("busy"), ModelRequestError("no")):
        assert await ask(watch, error) is error
    assert await ask(watch, reply()) == reply()


@pytest.mark.parametrize("error", [ServerDownError("gone"), ModelAccessError("wrong key"), ConfigError("no address")])
async def test_what_ends_the_run_is_raised_and_nothing_is_asked_after_it(error: Exception) -> None:
    watch = Watch()
    with pytest.raises(type(error)):
        await ask(watch, error)
    with pytest.raises(type(error)):
        await ask(watch, reply())


async def test_a_server_that_refuses_from_the_start_ends_the_run() -> None:
    watch = Watch()
    assert await ask(watch, reply(from_journal=True)), "a reply of an earlier run says nothing about the server now"
    for _ in range(REFUSALS - 1):
        await ask(watch, ModelRequestError("no such field", remedy="Remove it."))
    with pytest.raises(ModelAccessError, match=r"refused each of the first 5 requests: no such field Remove it\."):
        await ask(watch, ModelRequestError("no such field", remedy="Remove it."))


@pytest.mark.parametrize("taken", [reply(), TruncatedReplyError("cut")])
async def test_refusals_after_a_request_was_taken_are_their_own(taken: Any) -> None:
    watch = Watch()
    await ask(watch, taken)
    for _ in range(3 * REFUSALS):
        assert isinstance(await ask(watch, ModelRequestError("no")), ModelRequestError)


def test_a_document_waits_for_what_may_pass_and_for_a_server_that_took_nothing() -> None:
    asked, watch = Asked(), Watch()
    asked.fail(3, TruncatedReplyError("cut", usage=Usage(calls=1)))
    assert asked.waiting(watch) == ""
    asked.fail(4, ModelRequestError("refused"))
    assert asked.waiting(watch) == "refused"
    assert asked.waiting(Watch(taken=1)) == ""
    asked.fail(1, ModelUnavailableError("busy"))
    assert asked.waiting(Watch(taken=1)) == "busy"
    asked.spend(2, Usage(calls=2))
    assert asked.usage.calls == 3


async def test_at_most_so_many_are_under_way_and_results_keep_their_order() -> None:
    under_way, peak = 0, 0

    async def work(item: int) -> int:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return item * item

    assert await all_of(range(20), work, 3) == [n * n for n in range(20)]
    assert peak == 3


async def test_the_first_error_cancels_what_is_under_way() -> None:
    begun: list[int] = []
    cancelled: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        if item == 1:
            raise ServerDownError("gone")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    with pytest.raises(ServerDownError):
        await all_of(range(10), work, 3)
    assert set(cancelled) == set(begun) - {1}
    assert max(begun) <= 3
