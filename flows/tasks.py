"""What the flows share: one Prefect task an item, bounded concurrency, retries for what may be retried.

Prefect is imported only where a task is made: `run_all` also runs plain coroutines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from docmemo.errors import DocMemoError
from docmemo.settings import Settings
from docmemo.types import Failure
from docmemo.usage import Usage

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State, TaskRun
    from prefect.tasks import Task

log = logging.getLogger("docmemo")

Work = Callable[[str], Awaitable[None]]


def failure_of(error: BaseException) -> tuple[Failure, Usage]:
    """How an error is recorded. An error nobody foresaw counts as retryable: it is shown again, never frozen."""
    if isinstance(error, DocMemoError):
        return Failure(kind=type(error).__name__, message=str(error), retryable=error.retryable), error.usage
    return Failure(kind=type(error).__name__, message=str(error), retryable=True), Usage()


def _may_retry(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Retry only errors that say a retry can help."""
    error = state.data
    return isinstance(error, DocMemoError) and error.retryable


def item_task(
    name: str, work: Work, settings: Settings, label: Callable[[str], str] = lambda key: key[:12]
) -> Task[[str], Any]:
    """`work` as a Prefect task over an item's key; `label` says what people see for a key."""
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect.runtime import task_run
    from prefect.tasks import exponential_backoff

    async def run(key: str) -> None:
        await work(key)

    made: Task[[str], Any] = task(
        name=name,
        task_run_name=lambda: label(task_run.parameters["key"]),
        retries=settings.attempts - 1,
        retry_delay_seconds=exponential_backoff(backoff_factor=settings.retry_wait),
        retry_jitter_factor=0.5,
        retry_condition_fn=_may_retry,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )(run)
    return made


async def run_all(
    keys: Sequence[str],
    item: Callable[[str], Awaitable[None]],
    concurrency: int,
    done: Callable[[str, BaseException | None], None],
) -> None:
    """Run `item` for every key, at most `concurrency` at once; `done` hears of each, with its error if it failed."""
    gate = asyncio.Semaphore(concurrency)

    async def one(key: str) -> None:
        async with gate:
            error: BaseException | None = None
            try:
                await item(key)
            except Exception as caught:
                error = caught
                if not isinstance(caught, DocMemoError):
                    log.error("unexpected error", exc_info=caught)
            done(key, error)

    await asyncio.gather(*(one(key) for key in keys))
