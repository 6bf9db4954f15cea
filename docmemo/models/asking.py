"""What whoever asks a model for many things shares: many requests at once, and when to give up altogether.

A failure of one request never ends a run: its place is taken by what is made without a model, or it stays open, with
the reason. If a retry may cure it, nothing is kept of it and the stage ends as unfinished. Two things end the run at
once, with every finished reply in the call journal: an error that says so (the server is gone, the money is spent),
and a server that refuses every request of a run from the start, since its next thousand would be refused as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from docmemo.errors import DocMemoError, ModelAccessError, ModelError, ModelRequestError
from docmemo.models.chat import Reply
from docmemo.usage import Usage

T = TypeVar("T")
V = TypeVar("V", bound=BaseModel)
R = TypeVar("R")

REFUSALS = 5
"""Requests refused as such, none taken, after which a run gives up."""


@dataclass
class Watch:
    """What the requests of a run met so far. Used from one event loop only."""

    taken: int = 0
    """Requests that the server took in this run, whatever the reply was worth."""
    refused: int = 0
    stopped: BaseException | None = None
    """The error that ended the run; nothing is asked after it."""

    def check(self) -> None:
        """Raise what ended the run, if something did."""
        if self.stopped is not None:
            raise self.stopped

    async def ask(self, request: Callable[[], Awaitable[Reply[V]]]) -> Reply[V] | ModelError:
        """The reply to a request, or the error that is this request's own.

        Raises:
            DocMemoError: an error that ends the run.
        """
        self.check()
        try:
            reply = await request()
        except ModelError as error:
            if error.stops_run:
                self.stopped = error
                raise
            if isinstance(error, ModelRequestError):
                self.refused += 1
                if self.taken == 0 and self.refused >= REFUSALS:
                    self.stopped = ModelAccessError(
                        f"The server refused each of the first {self.refused} requests: {error.message}",
                        remedy=error.remedy,
                        usage=error.usage,
                    )
                    raise self.stopped from error
            elif not error.retryable:
                self.taken += 1
            return error
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                self.stopped = error
            raise
        self.taken += not reply.from_journal
        return reply


async def all_of(items: Sequence[T], work: Callable[[T], Awaitable[R]], ahead: int) -> list[R]:
    """`work` on every item, at most `ahead` at once; the first error cancels the rest and is raised."""
    gate = asyncio.Semaphore(max(1, ahead))

    async def one(item: T) -> R:
        async with gate:
            return await work(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


@dataclass
class Asked:
    """What the requests for one document came to."""

    spent: dict[int, Usage] = field(default_factory=dict)
    """First page of a request to what it cost, failed or not."""
    failures: dict[int, ModelError] = field(default_factory=dict)
    """First page of a request to its error."""

    @property
    def usage(self) -> Usage:
        """The sum, always in the same order: sums of dollars depend on it in their last digits."""
        return sum((self.spent[page] for page in sorted(self.spent)), Usage())

    def spend(self, page: int, usage: Usage) -> None:
        """Add to what was spent on a page."""
        self.spent[page] = self.spent.get(page, Usage()) + usage

    def fail(self, page: int, error: ModelError) -> None:
        """Record an error and its spend."""
        self.failures[page] = error
        self.spend(page, error.usage)

    def waiting(self, watch: Watch) -> str:
        """Why this document has to be asked again; '' when it has not.

        A retryable failure is one reason; that its requests were refused in a run in which no request was taken is
        the other, since then the fault is hardly the document's.
        """
        passing = [error for error in self.failures.values() if error.retryable]
        if passing:
            return _first(passing)
        refused = [error for error in self.failures.values() if isinstance(error, ModelRequestError)]
        return _first(refused) if refused and watch.taken == 0 else ""


def _first(errors: Iterable[DocMemoError]) -> str:
    return str(next(iter(errors)))


def reason_of(error: ModelError, instead: str) -> str:
    """A failure in words, with what was taken instead."""
    return f"{instead}, since the model's part failed: {type(error).__name__}: {error}"
