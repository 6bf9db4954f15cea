"""The answering flow: one task a question, retries for what may be retried, everything finished in the journal.

The stage `answer` starts it only when the journal lacks something; `flows.ablations` runs several configurations of
a question in one task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from docmemo.errors import DocMemoError
from docmemo.qa.answering import Answering, failed_record
from docmemo.qa.journal import Journal
from docmemo.settings import Settings
from docmemo.types import Question
from flows.prefect_env import configure, prompt_exit
from flows.tasks import Stop, Work, failure_of, item_task, run_all, stops_run


@dataclass(frozen=True)
class Pending:
    """A question to be answered with one configuration."""

    question: Question
    answering: Answering


def answering_work(pending: Mapping[str, Pending], journal: Journal) -> Work:
    """The work of one key: answer its question into the journal.

    A retryable failure is recorded as a failure of its key, so that the key stays pending; any other failure is the
    question's result. Either is raised again, for whoever retries and counts.
    """

    async def work(key: str) -> None:
        question, answering = pending[key].question, pending[key].answering
        start = time.perf_counter()
        try:
            record, trace = await answering.answer(question, journal, key)
        except Exception as error:
            failure, usage = failure_of(error)
            journal.fail(key, failure, usage)
            if not failure.retryable:
                spent = journal.failures([key])[key].usage
                seconds = time.perf_counter() - start
                journal.finish(key, failed_record(question, failure, spent), None, seconds)
            raise
        journal.finish(key, record, trace, time.perf_counter() - start)

    return work


def batch_work(batches: Mapping[str, Sequence[str]], work: Work, journal: Journal) -> Work:
    """The work of a batch of keys, one after the other; tried again, it does only what is still missing.

    Raises at the end if some failed: an error that a retry may cure, where there is one.
    """

    async def work_through(batch: str) -> None:
        errors: list[Exception] = []
        for key in journal.missing(batches[batch]):
            try:
                await work(key)
            except Exception as error:
                if stops_run(error):
                    raise
                errors.append(error)  # raised below, after the other keys had their turn
        if errors:
            raise next((e for e in errors if isinstance(e, DocMemoError) and e.retryable), errors[0])

    return work_through


def run_flow(
    name: str,
    keys: Sequence[str],
    work: Work,
    settings: Settings,
    *,
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
    label: Callable[[str], str] = lambda key: key[:12],
) -> DocMemoError | None:
    """Do the work of every key as one Prefect flow, one task a key; `label` names a key for people.

    Returns:
        What stopped the run before its end; None if every key had its turn.
    """
    configure(settings)
    from prefect import flow

    stop = Stop()

    @flow(name=name, flow_run_name=f"{name} {len(keys)} questions", validate_parameters=False)
    async def run() -> None:
        with prompt_exit(settings, say):
            item = item_task("question", work, settings, label, stop)
            await run_all(keys, item, settings.concurrency, lambda _key, _error: advance(), stop)

    asyncio.run(run())
    return stop.reason


def check_parts(configured: Iterable[Answering]) -> DocMemoError | None:
    """Let readers and rerankers check what they need, before Prefect is started; what they cannot do without."""

    async def check() -> None:
        for answering in configured:
            await answering.prepare()

    try:
        asyncio.run(check())
    except DocMemoError as error:
        return error
    return None


def answer_questions(
    pending: Mapping[str, Question],
    answering: Answering,
    journal: Journal,
    settings: Settings,
    *,
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
) -> DocMemoError | None:
    """Answer the pending questions (by key) into the journal, all with one configuration.

    Returns:
        What stopped the run before every question had its turn, e.g. a server that is gone; those that had not are
        left for the next run, without a trace in the journal.
    """
    if (refused := check_parts([answering])) is not None:
        return refused
    items = {key: Pending(question, answering) for key, question in pending.items()}
    return run_flow(
        "answer",
        list(items),
        answering_work(items, journal),
        settings,
        advance=advance,
        say=say,
        label=lambda key: pending[key].question_id,
    )
