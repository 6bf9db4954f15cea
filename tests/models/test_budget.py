"""Budgets: what fits, what waits, what is refused."""

from __future__ import annotations

import asyncio

import pytest

from docmemo.errors import ConfigError, QuestionBudgetError, RunBudgetError
from docmemo.models.budget import RunBudget, current_question_budget, question_budget
from docmemo.settings import Settings
from docmemo.usage import Usage


def settings(**limits: float | int) -> Settings:
    return Settings(**{f"budget_{name}": value for name, value in limits.items()})  # type: ignore[arg-type]


async def test_without_limits_everything_fits() -> None:
    budget = RunBudget()
    for _ in range(5):
        budget.settle(await budget.reserve(Settings(), 10**6, None, "m"), Usage(calls=1, input_tokens=9))
    assert (budget.sent, budget.spent.input_tokens) == (5, 45)


async def test_a_request_waits_for_those_in_flight_and_then_fits() -> None:
    budget = RunBudget()
    limits = settings(tokens=100)
    first = await budget.reserve(limits, 80, None, "m")
    second = asyncio.create_task(budget.reserve(limits, 80, None, "m"))
    await asyncio.sleep(0.01)
    assert not second.done()
    budget.settle(first, Usage(calls=1, input_tokens=15, output_tokens=5))
    async with asyncio.timeout(5):
        await second


async def test_a_request_that_fits_nowhere_ends_the_run_and_says_what_was_used() -> None:
    budget = RunBudget()
    limits = settings(tokens=100)
    budget.settle(await budget.reserve(limits, 80, None, "m"), Usage(calls=1, input_tokens=60, output_tokens=10))
    with pytest.raises(RunBudgetError, match=r"70 of 100 tokens.*DOCMEMO_BUDGET_TOKENS") as caught:
        await budget.reserve(limits, 31, None, "m")
    assert caught.value.stops_run
    assert caught.value.retryable


async def test_dollars_are_kept_to_and_need_a_price() -> None:
    budget = RunBudget()
    limits = settings(usd=1.0)
    with pytest.raises(ConfigError, match="m has no known one"):
        await budget.reserve(limits, 10, None, "m")
    budget.settle(await budget.reserve(limits, 10, 0.6, "m"), Usage(calls=1, cost_usd=0.6))
    with pytest.raises(RunBudgetError, match=r"\$0\.6000 of \$1\.0"):
        await budget.reserve(limits, 10, 0.6, "m")


async def test_a_try_without_an_answer_gives_its_tokens_back_and_counts_as_a_request() -> None:
    budget = RunBudget()
    limits = settings(tokens=100, calls=2)
    budget.settle(await budget.reserve(limits, 100, None, "m"), None)
    budget.settle(await budget.reserve(limits, 100, None, "m"), None)
    with pytest.raises(RunBudgetError, match="2 of 2 requests"):
        await budget.reserve(limits, 1, None, "m")


@pytest.mark.parametrize(
    ("limits", "usage"),
    [
        ({"calls": 2}, Usage(calls=2)),
        ({"tokens": 100}, Usage(calls=1, input_tokens=90, output_tokens=10)),
        ({"usd": 0.5}, Usage(calls=1, cost_usd=0.5)),
    ],
)
def test_a_question_ends_at_each_of_its_limits(limits: dict[str, float], usage: Usage) -> None:
    with question_budget(**limits) as budget:  # type: ignore[arg-type]
        budget.check()
        budget.charge(usage)
        with pytest.raises(QuestionBudgetError, match=r"answer\.question_"):
            budget.check()


async def test_a_budget_belongs_to_its_question_and_to_the_tasks_it_starts() -> None:
    async def question(calls: int) -> int | None:
        with question_budget(calls=calls):
            return await asyncio.create_task(inside())

    async def inside() -> int | None:
        await asyncio.sleep(0)
        budget = current_question_budget()
        return budget.calls if budget is not None else None

    assert await asyncio.gather(question(1), question(2), inside()) == [1, 2, None]
