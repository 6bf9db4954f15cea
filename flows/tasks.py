"""What the flows share: one Prefect task an item, bounded concurrency, retries for what may be retried.

Prefect is imported only where a task is made: `run_all` also runs plain coroutines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docmemo.errors import ConfigError, DocMemoError, ModelLockError
from docmemo.settings import Settings
from docmemo.types import Failure
from docmemo.usage import Usage

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State, TaskRun
    from prefect.tasks import Task

log = logging.getLogger("docmemo")

Work = Callable[[str], Awaitable[None]]


class NotAskedError(DocMemoError):
    """The run was stopped before this item's turn."""

    retryable = True


def stops_run(error: BaseException) -> bool:
    """Whether no other item would fare better: the server is gone, the money is spent, or the set-up is wrong."""
    return isinstance(error, DocMemoError) and (error.stops_run or isinstance(error, (ConfigError, ModelLockError)))


@dataclass
class Stop:
    """Whether a run was stopped before its end, and by what."""

    reason: DocMemoError | None = None

    def hear(self, error: BaseException) -> None:
        """Take note of an item's error; the first that stops the run is the reason."""
        if self.reason is None and isinstance(error, DocMemoError) and stops_run(error):
            self.reason = error

    def check(self) -> None:
        """Raise for an item that would begin now.

        Raises:
            NotAskedError: if the run was stopped.
        """
        if self.reason is not None:
            raise NotAskedError(f"not asked: {self.reason.message}", remedy=self.reason.remedy)


def failure_of(error: BaseException) -> tuple[Failure, Usage]:
    """How an error is recorded. An error nobody foresaw counts as retryable: it is shown again, never frozen.

    So does one that stops the run: nothing about the item is wrong, and it is asked again once that is put right.
    """
    if isinstance(error, DocMemoError):
        again = error.retryable or stops_run(error)
        return Failure(kind=type(error).__name__, message=str(error), retryable=again), error.usage
    return Failure(kind=type(error).__name__, message=str(error), retryable=True), Usage()


def item_task(
    name: str,
    work: Work,
    settings: Settings,
    label: Callable[[str], str] = lambda key: key[:12],
    stop: Stop | None = None,
) -> Task[[str], Any]:
    """`work` as a Prefect task over an item's key, tried again where an error says that this can help.

    Args:
        name: of the task.
        work: what is done for a key.
        settings: how often and when it is tried again.
        label: what people see for a key.
        stop: the run's; once it is stopped, nothing is tried again.
    """
    stopped = stop or Stop()
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect.runtime import task_run
    from prefect.tasks import exponential_backoff

    async def run(key: str) -> None:
        stopped.check()
        try:
            await work(key)
        except Exception as error:
            stopped.hear(error)
            raise

    def may_retry(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
        error = state.data
        return stopped.reason is None and isinstance(error, DocMemoError) and error.retryable

    made: Task[[str], Any] = task(
        name=name,
        task_run_name=lambda: label(task_run.parameters["key"]),
        retries=settings.attempts - 1,
        retry_delay_seconds=exponential_backoff(backoff_factor=settings.retry_wait),
        retry_jitter_factor=0.5,
        retry_condition_fn=may_retry,
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
    stop: Stop | None = None,
) -> DocMemoError | None:
    """Run `item` for every key, at most `concurrency` at once, until one of them stops the run.

    What is under way then comes to its end; the other keys are not begun.

    Args:
        keys: the items.
        item: the work of one.
        concurrency: items at once.
        done: hears of each key, with its error if it failed (NotAskedError if it was not begun).
        stop: shared with the items where they are tried again by themselves.

    Returns:
        What stopped the run; None if every key had its turn.
    """
    gate = asyncio.Semaphore(concurrency)
    stopped = stop or Stop()

    async def one(key: str) -> None:
        async with gate:
            error: BaseException | None = None
            try:
                stopped.check()
                await item(key)
            except Exception as caught:
                error = caught
                stopped.hear(caught)
                if not isinstance(caught, DocMemoError):
                    log.error("unexpected error", exc_info=caught)
            done(key, error)

    await asyncio.gather(*(one(key) for key in keys))
    return stopped.reason
