"""How many requests an endpoint gets at once, and what everybody does while it is overloaded or gone.

Additive increase, multiplicative decrease: every answer widens the window a little, up to DOCMEMO_CONCURRENCY, a 429
halves it (once for the requests that were in flight together). Retry-After holds the whole endpoint, since the limit
it speaks of is the endpoint's. While the server cannot be reached one task asks for it and all others wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from docmemo.errors import ServerDownError

log = logging.getLogger(__name__)

MAX_PROBE_WAIT = 15.0
"""Longest seconds between two looks at a server that is gone."""


class Limiter:
    """The gate of one endpoint in one event loop.

    Args:
        most: requests at once at best.
        patience: seconds to wait for a server that cannot be reached, and the longest Retry-After honoured.
        first_wait: seconds before the first look at a server that is gone; doubles.
        probe: whether the server can be reached now.
        variable: names the setting with its address in messages.
    """

    def __init__(
        self, most: int, patience: float, first_wait: float, probe: Callable[[], Awaitable[bool]], variable: str
    ) -> None:
        self.most = most
        self.window = float(most)
        self.in_flight = 0
        self._patience = patience
        self._first_wait = max(0.01, first_wait)
        self._probe = probe
        self._variable = variable
        self._line: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._narrowed_at = 0.0
        self._down_since: float | None = None
        self._probe_wait = self._first_wait
        self._outage: asyncio.Task[bool] | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold one of the places; yields the time it was given at.

        Raises:
            ServerDownError: if the server does not come back within the patience.
        """
        await self._enter()
        try:
            yield time.monotonic()
        finally:
            self._leave()

    async def _enter(self) -> None:
        while True:
            if self._outage is not None:
                await self.wait_until_up()
            wait = self._resume_at - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            await self._place()
            if self._outage is None and self._resume_at <= time.monotonic():
                return
            self._leave()

    async def _place(self) -> None:
        """Wait in line for a place and take it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # not in line any more if places were given out in between
                    self._line.remove(turn)
            else:
                self._leave()  # the place had been given already; the next in line gets it
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Give out the free places, first come first served."""
        while self._line and self.in_flight < max(1, int(self.window)):
            turn = self._line.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def succeeded(self) -> None:
        """An answer came: the server is there, and takes a little more."""
        self._down_since = None
        self._probe_wait = self._first_wait
        self.window = min(float(self.most), self.window + 1.0 / self.window)
        self._admit()

    def overloaded(self, started: float, retry_after: float | None) -> None:
        """A 429 came for a request sent at `started`.

        Raises:
            ServerDownError: if the server asks to wait longer than the patience.
        """
        now = time.monotonic()
        if started >= self._narrowed_at:
            self.window = max(1.0, self.window / 2)
            self._narrowed_at = now
        if retry_after is None:
            return
        if retry_after > self._patience:
            raise ServerDownError(
                f"The server asks to wait {retry_after:.0f} seconds, longer than the run's patience.",
                remedy="Run again later, or raise DOCMEMO_SERVER_PATIENCE (seconds). What is finished is kept.",
            )
        self._resume_at = max(self._resume_at, now + retry_after)

    async def wait_until_up(self) -> None:
        """Wait for a server that cannot be reached; one task asks, all wait.

        Raises:
            ServerDownError: once the patience has passed since the server was last heard.
        """
        if self._outage is None:
            if self._down_since is None:
                self._down_since = time.monotonic()
                log.warning(
                    "A model server cannot be reached; waiting up to %.0f seconds for it (DOCMEMO_SERVER_PATIENCE)",
                    self._patience,
                )
            self._outage = asyncio.create_task(self._look())
        if not await asyncio.shield(self._outage):
            raise ServerDownError(
                f"The model server could not be reached for {self._patience:.0f} seconds.",
                remedy=(
                    f"Start it again, or correct {self._variable}, and run again: what is finished is kept."
                    " DOCMEMO_SERVER_PATIENCE sets how long a run waits."
                ),
            )

    async def _look(self) -> bool:
        since = self._down_since if self._down_since is not None else time.monotonic()
        try:
            while True:
                left = since + self._patience - time.monotonic()
                if left <= 0:
                    return False
                await asyncio.sleep(min(self._probe_wait, left))
                self._probe_wait = min(MAX_PROBE_WAIT, self._probe_wait * 2)
                if await self._probe():
                    log.warning("The model server can be reached again")
                    return True
        finally:
            self._outage = None
