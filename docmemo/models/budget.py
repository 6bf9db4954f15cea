"""Limits of what may be spent: by a run (settings, this process's own spend) and by a question (parameters).

A run's budget cannot change a result, only when it is there, so replies from the journal cost it nothing. A
question's budget can, so it counts what a reply cost whoever paid for it: a second run then stops where the first
one did.

    with question_budget(calls=6, tokens=60_000) as budget:
        record = await answer(question)         # asks models; QuestionBudgetError at the limit
    budget.spent                                # also after an error
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from docmemo.errors import ConfigError, QuestionBudgetError, RunBudgetError
from docmemo.settings import Settings
from docmemo.usage import Usage

NO_PRICE = "A budget in dollars needs the model's price, and {model} has no known one on this server."


@dataclass
class Reservation:
    """What a request in flight may cost at most."""

    tokens: int
    usd: float


class RunBudget:
    """Spend of this process against DOCMEMO_BUDGET_CALLS, _TOKENS and _USD; safe across threads and loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.spent = Usage()
        """Tokens and dollars of all answered requests."""
        self.sent = 0
        """Requests sent, those without an answer included."""
        self._held: list[Reservation] = []

    async def reserve(self, settings: Settings, tokens: int, usd: float | None, model: str) -> Reservation:
        """Put aside what a request may cost at most; waits where only requests in flight stand in the way.

        So a budget is never exceeded as long as estimates are on the high side, and is used up as far as it goes.

        Args:
            settings: the limits.
            tokens: input and output of the request at most.
            usd: its price at most; None if unknown.
            model: names the model in errors.

        Raises:
            ConfigError: if there is a budget in dollars and the price is unknown.
            RunBudgetError: if the request does not fit into what is left.
        """
        if settings.budget_usd is not None and usd is None:
            raise ConfigError(
                NO_PRICE.format(model=model), remedy="Unset DOCMEMO_BUDGET_USD, or use DOCMEMO_BUDGET_TOKENS."
            )
        asked = Reservation(tokens, usd or 0.0)
        while True:
            with self._lock:
                limit = self._stands_in_the_way(settings, asked)
                if limit is None:
                    self._held.append(asked)
                    self.sent += 1
                    return asked
                if limit == "calls" or not self._held:
                    raise self._exhausted(settings, limit)
                loop = asyncio.get_running_loop()
                future: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, future))
            await future

    def _stands_in_the_way(self, settings: Settings, asked: Reservation) -> str | None:
        held_tokens = sum(item.tokens for item in self._held)
        held_usd = sum(item.usd for item in self._held)
        tokens = self.spent.input_tokens + self.spent.output_tokens + held_tokens + asked.tokens
        if settings.budget_calls is not None and self.sent >= settings.budget_calls:
            return "calls"
        if settings.budget_tokens is not None and tokens > settings.budget_tokens:
            return "tokens"
        spent = (self.spent.cost_usd or 0.0) + held_usd + asked.usd
        return "usd" if settings.budget_usd is not None and spent > settings.budget_usd else None

    def _exhausted(self, settings: Settings, limit: str) -> RunBudgetError:
        used = {
            "calls": f"{self.sent} of {settings.budget_calls} requests",
            "tokens": f"{self.spent.input_tokens + self.spent.output_tokens} of {settings.budget_tokens} tokens",
            "usd": f"${self.spent.cost_usd or 0.0:.4f} of ${settings.budget_usd}",
        }
        return RunBudgetError(
            f"The run has used {used[limit]}, and the next request does not fit into the rest.",
            remedy=f"Raise DOCMEMO_BUDGET_{limit.upper()} or run again later: what is finished is kept.",
        )

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace a reservation by what the request did cost; None for one without an answer."""
        with self._lock:
            self._held.remove(reservation)
            if usage is not None:
                self.spent += usage
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    def reset(self) -> None:
        """Forget all spend: a new run in the same process."""
        with self._lock:
            self.spent, self.sent = Usage(), 0


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


RUN_BUDGET = RunBudget()
"""This process's own."""


@dataclass
class QuestionBudget:
    """Limits of one question and its spend so far."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    spent: Usage = field(default_factory=Usage)

    def check(self) -> None:
        """Called before each request.

        Raises:
            QuestionBudgetError: if a limit is reached; its `usage` is empty, the question's spend is `spent`.
        """
        tokens = self.spent.input_tokens + self.spent.output_tokens
        reached = ""
        if self.calls is not None and self.spent.calls >= self.calls:
            reached = f"{self.spent.calls} requests (answer.question_calls: {self.calls})"
        elif self.tokens is not None and tokens >= self.tokens:
            reached = f"{tokens} tokens (answer.question_tokens: {self.tokens})"
        elif self.usd is not None and self.spent.cost_usd is not None and self.spent.cost_usd >= self.usd:
            reached = f"${self.spent.cost_usd:.4f} (answer.question_usd: {self.usd})"
        if reached:
            raise QuestionBudgetError(
                f"The question has used {reached}.", remedy="Raise the limit in params.yaml, or set it to null."
            )

    def charge(self, usage: Usage) -> None:
        """Add what a reply or a failed call cost."""
        self.spent += usage

    def need_price(self, known: bool, model: str) -> None:
        """Make sure that a limit in dollars can be kept.

        Raises:
            ConfigError: if there is one and the price is unknown.
        """
        if self.usd is not None and not known:
            raise ConfigError(
                NO_PRICE.format(model=model), remedy="Set answer.question_usd to null, or use answer.question_tokens."
            )


_QUESTION: ContextVar[QuestionBudget | None] = ContextVar("question_budget", default=None)


def current_question_budget() -> QuestionBudget | None:
    """The budget of the question being answered here, if it has one."""
    return _QUESTION.get()


@contextmanager
def question_budget(
    calls: int | None = None, tokens: int | None = None, usd: float | None = None
) -> Iterator[QuestionBudget]:
    """Limit what the model calls inside may cost together; tasks started inside count too.

    Args:
        calls: requests, repairs included.
        tokens: input and output tokens.
        usd: dollars; needs known prices.
    """
    budget = QuestionBudget(calls, tokens, usd)
    token = _QUESTION.set(budget)
    try:
        yield budget
    finally:
        _QUESTION.reset(token)
