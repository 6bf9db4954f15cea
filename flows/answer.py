"""The answering flow: one task a question, retries for what may be retried, everything finished in the journal.

The stage `answer` starts it only when the journal lacks something.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from docmemo.qa.answering import Answering, failed_record
from docmemo.qa.journal import Journal
from docmemo.settings import Settings
from docmemo.types import Question
from flows.prefect_env import configure, prompt_exit


def answer_questions(
    pending: Mapping[str, Question],
    answering: Answering,
    journal: Journal,
    settings: Settings,
    *,
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
) -> None:
    """Answer the pending questions (by key) into the journal, as a Prefect flow.

    A retryable failure that outlives its retries is recorded as a failure of its key, so that the key stays
    pending; any other failure is the question's result.
    """
    configure(settings)
    from prefect import flow

    from flows.tasks import failure_of, item_task, run_all

    async def work(key: str) -> None:
        question = pending[key]
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

    @flow(name="answer", flow_run_name=f"answer {len(pending)} questions", validate_parameters=False)
    async def answer() -> None:
        with prompt_exit(settings, say):
            item = item_task("question", work, settings)
            await run_all(list(pending), item, settings.concurrency, lambda _key, _error: advance())

    asyncio.run(answer())
