"""Model calls from synchronous steps."""

from __future__ import annotations

import asyncio
import multiprocessing

import pytest

from docmemo.models.background import run_blocking
from docmemo.models.budget import current_question_budget, question_budget
from tests.models.asking import Verdict, model, say
from tests.servers import ScriptedServer


def test_requests_of_a_synchronous_step_run_together(server: ScriptedServer) -> None:
    server.reset(delay=0.05)
    reader = model()

    async def pages() -> list[str]:
        replies = await asyncio.gather(*(reader.ask(say(f"Page {n}"), Verdict) for n in range(4)))
        return [reply.value.why for reply in replies]

    assert len(set(run_blocking(pages()))) == 4
    assert run_blocking(reader.ask(say("Page 0"), Verdict)).from_journal


def test_an_error_is_raised_where_the_step_waits() -> None:
    async def fails() -> None:
        raise ValueError("of the coroutine")

    with pytest.raises(ValueError, match="of the coroutine"):
        run_blocking(fails())


def test_the_budget_of_the_caller_holds_inside() -> None:
    async def budget() -> int | None:
        current = current_question_budget()
        return current.calls if current is not None else None

    with question_budget(calls=3):
        assert run_blocking(budget()) == 3
    assert run_blocking(budget()) is None


def test_waiting_for_oneself_is_refused() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return run_blocking(inner())

    with pytest.raises(RuntimeError, match="use await"):
        run_blocking(outer())


async def _one() -> int:
    return 1


def _in_child(queue: multiprocessing.Queue[int]) -> None:
    queue.put(run_blocking(_one()))


def test_a_forked_worker_has_a_loop_of_its_own() -> None:
    assert run_blocking(_one()) == 1
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == 1
    child.join(20)
