"""The judging flow: one task an answer, scores into the journal, the headline as a Prefect artifact."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from docmemo.errors import DocMemoError
from docmemo.evaluation.judging import Judging
from docmemo.qa.journal import Journal
from docmemo.settings import Settings
from docmemo.types import AnswerRecord, Question
from flows.prefect_env import configure, prompt_exit
from flows.tasks import Stop, Work, failure_of, item_task, run_all


def judging_work(pending: Mapping[str, tuple[Question, AnswerRecord]], judging: Judging, journal: Journal) -> Work:
    """The work of one key: judge its answer into the journal.

    A failure is recorded as one of its key, which stays pending, and raised again for whoever retries and counts. A
    judge that failed for good is no failure here: that is the answer's judgement (docmemo/evaluation/llm_judge.py).
    """

    async def work(key: str) -> None:
        question, answer = pending[key]
        start = time.perf_counter()
        try:
            judgement = await judging.judge(question, answer)
        except Exception as error:
            failure, usage = failure_of(error)
            journal.fail(key, failure, usage)
            raise
        journal.finish(key, judgement, None, time.perf_counter() - start)

    return work


def judge_answers(
    pending: Mapping[str, tuple[Question, AnswerRecord]],
    judging: Judging,
    journal: Journal,
    settings: Settings,
    *,
    headline: Callable[[], str],
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
) -> DocMemoError | None:
    """Judge the pending answers (by key) into the journal, as a Prefect flow.

    Args:
        headline: makes the run's headline as Markdown once everything is judged; published as an artifact.

    Returns:
        What stopped the run before every answer had its turn, e.g. a server that is gone.
    """
    configure(settings)
    from prefect import flow
    from prefect.artifacts import acreate_markdown_artifact

    work = judging_work(pending, judging, journal)
    stop = Stop()

    @flow(name="judge", flow_run_name=f"judge {len(pending)} answers", validate_parameters=False)
    async def judge() -> None:
        with prompt_exit(settings, say):
            item = item_task("answer", work, settings, lambda key: pending[key][0].question_id, stop)
            await run_all(list(pending), item, settings.concurrency, lambda _key, _error: advance(), stop)
            await judging.close()
            await acreate_markdown_artifact(headline(), key="headline", description="Headline figures of this run")

    asyncio.run(judge())
    return stop.reason
