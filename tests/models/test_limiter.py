"""How many requests at once: fewer after overload, more after answers, none while the server is gone."""

from __future__ import annotations

import asyncio

import pytest

from docmemo.errors import ServerDownError
from docmemo.models.limiter import Limiter


class Server:
    """A probe whose answer is set by hand."""

    def __init__(self, up: bool = True) -> None:
        self.up = up
        self.probes = 0

    async def probe(self) -> bool:
        self.probes += 1
        return self.up


def limiter(most: int = 8, patience: float = 30.0, server: Server | None = None) -> Limiter:
    return Limiter(most, patience, 0.01, (server or Server()).probe, "DOCMEMO_BASE_URL")


async def hold(gate: Limiter, until: asyncio.Event) -> None:
    async with gate.slot():
        await until.wait()


async def test_a_429_halves_the_window_once_for_requests_that_were_in_flight_together() -> None:
    gate = limiter(8)
    async with gate.slot() as first, gate.slot() as second:
        gate.overloaded(first, None)
        gate.overloaded(second, None)
    assert gate.window == 4
    async with gate.slot() as later:
        gate.overloaded(later, None)
    assert gate.window == 2


async def test_the_window_never_closes_and_never_grows_past_its_limit() -> None:
    gate = limiter(8)
    for _ in range(10):
        async with gate.slot() as started:
            gate.overloaded(started, None)
    assert gate.window == 1
    for _ in range(200):
        gate.succeeded()
    assert gate.window == 8


async def test_no_more_than_the_window_are_inside_and_all_get_in() -> None:
    gate = limiter(3)
    peak = 0

    async def work() -> None:
        nonlocal peak
        async with gate.slot():
            peak = max(peak, gate.in_flight)
            await asyncio.sleep(0.001)

    await asyncio.gather(*(work() for _ in range(20)))
    assert peak == 3
    assert gate.in_flight == 0


async def test_a_window_that_grows_lets_more_of_those_in_line_in() -> None:
    gate = limiter(4)
    async with gate.slot() as first:
        gate.overloaded(first, None)
    async with gate.slot() as second:
        gate.overloaded(second, None)
    assert gate.window == 1
    done = asyncio.Event()
    line = [asyncio.create_task(hold(gate, done)) for _ in range(4)]
    await asyncio.sleep(0.01)
    assert gate.in_flight == 1
    for _ in range(20):
        gate.succeeded()
    await asyncio.sleep(0.01)
    assert gate.in_flight == 4
    done.set()
    await asyncio.gather(*line)


async def test_a_cancelled_waiter_takes_no_place() -> None:
    gate = limiter(1)
    done = asyncio.Event()
    async with gate.slot():
        waiting = asyncio.create_task(hold(gate, done))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5), gate.slot():
        assert gate.in_flight == 1


async def test_a_waiter_that_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    gate = limiter(1)
    first, done = asyncio.Event(), asyncio.Event()
    inside = asyncio.create_task(hold(gate, first))
    await asyncio.sleep(0.01)
    waiters = [asyncio.create_task(hold(gate, done)) for _ in range(2)]
    await asyncio.sleep(0.01)
    first.set()
    await inside
    waiters[0].cancel()
    await asyncio.sleep(0.01)
    assert gate.in_flight == 1
    assert not waiters[1].done()
    done.set()
    async with asyncio.timeout(5):
        await asyncio.wait(waiters)
    assert gate.in_flight == 0


async def test_one_task_looks_for_a_server_that_is_gone_while_all_wait() -> None:
    server = Server(up=False)
    gate = limiter(server=server)
    waiting = [asyncio.create_task(gate.wait_until_up()) for _ in range(5)]
    through = asyncio.Event()
    through.set()
    waiting.append(asyncio.create_task(hold(gate, through)))
    while server.probes < 3:
        await asyncio.sleep(0.005)
    assert not any(task.done() for task in waiting)
    server.up = True
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert server.probes < 10


async def test_patience_counts_from_the_last_answer_over_several_outages() -> None:
    server = Server(up=False)
    gate = limiter(patience=0.2, server=server)
    with pytest.raises(ServerDownError, match="DOCMEMO_BASE_URL"):
        await gate.wait_until_up()
    server.up = True
    with pytest.raises(ServerDownError):
        await gate.wait_until_up()  # it lists its models and answers nothing
    gate.succeeded()
    await gate.wait_until_up()


async def test_a_wait_the_server_asks_for_is_kept_unless_it_is_too_long() -> None:
    gate = limiter(patience=30)
    async with gate.slot() as started:
        gate.overloaded(started, 0.05)
    through = asyncio.Event()
    through.set()
    entering = asyncio.create_task(hold(gate, through))
    await asyncio.sleep(0)
    assert not entering.done()
    await entering
    with pytest.raises(ServerDownError, match="31 seconds"):
        gate.overloaded(started, 31)
