"""The judging flow: one task an answer, scores into the journal, the headline as a Prefect artifact."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.scorers import Scorer
from docmemo.qa.journal import Journal
from docmemo.settings import Settings
from docmemo.types import AnswerRecord, Judgement, Question
from flows.prefect_env import configure, prompt_exit


def judge_answers(
    pending: Mapping[str, tuple[Question, AnswerRecord]],
    scorer: Scorer,
    journal: Journal,
    settings: Settings,
    *,
    headline: Callable[[], str],
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
) -> None:
    """Judge the pending answers (by key) into the journal, as a Prefect flow.

    Args:
        headline: makes the run's headline as Markdown once everything is judged; published as an artifact.
    """
    configure(settings)
    from prefect import flow
    from prefect.artifacts import acreate_markdown_artifact

    from flows.tasks import failure_of, item_task, run_all

    async def work(key: str) -> None:
        question, answer = pending[key]
        start = time.perf_counter()
        try:
            judgement: Judgement = judge_by_rule(question, answer, scorer)
        except Exception as error:
            failure, usage = failure_of(error)
            journal.fail(key, failure, usage)
            raise
        journal.finish(key, judgement, None, time.perf_counter() - start)

    @flow(name="judge", flow_run_name=f"judge {len(pending)} answers", validate_parameters=False)
    async def judge() -> None:
        with prompt_exit(settings, say):
            item = item_task("answer", work, settings, lambda key: pending[key][0].question_id)
            await run_all(list(pending), item, settings.concurrency, lambda _key, _error: advance())
            await acreate_markdown_artifact(headline(), key="headline", description="Headline figures of this run")

    asyncio.run(judge())
