"""Scores every answer: data/answers -> data/judgements. Runs flows/judge.py for what is not judged yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docmemo.artifacts import read_jsonl, write_jsonl
from docmemo.errors import DocMemoError
from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.judging import Judging
from docmemo.evaluation.scorers import Scorer, get_scorer
from docmemo.models.lock import require_lock
from docmemo.qa.journal import Journal
from docmemo.types import AnswerRecord, Judgement, Question
from stages.common import (
    StageContext,
    log,
    read_documents,
    read_questions,
    stage_main,
    write_timings,
)
from stages.dataset import read_dataset_info
from stages.failures import not_asked, report_failures

ANSWERS = Path("data/answers/answers.jsonl")
OUT = Path("data/judgements")


def run(context: StageContext) -> None:
    """Judge what is missing, then write the judgements."""
    params = context.params.judge
    dataset = read_dataset_info()
    scorer = get_scorer(dataset.scorer if params.scorer == "auto" else params.scorer)
    lock = require_lock(context.params, ["judge"])
    judging = Judging(params, lock["judge"], scorer, context.settings)
    questions = read_questions()
    answers = {answer.question_id: answer for answer in read_jsonl(ANSWERS, AnswerRecord)}
    work = {
        judging.key(question, answers[question.question_id]): (
            question,
            answers[question.question_id],
        )
        for question in questions
    }
    keys = {question.question_id: key for key, (question, _) in work.items()}
    journal = Journal(context.settings.journal_dir / "judgements.sqlite")
    pending = {key: work[key] for key in journal.missing(work)}
    log.info("judge: %d to judge, %d already judged", len(pending), len(questions) - len(pending))
    stopped: DocMemoError | None = None
    if pending:
        from flows.judge import judge_answers

        bar, advance = context.progress("judge", len(pending))
        with bar:
            stopped = judge_answers(
                pending,
                judging,
                journal,
                context.settings,
                headline=lambda: headline(context, questions, answers, journal, keys),
                advance=advance,
                say=lambda text: context.console.print(f"judge: {text}"),
            )
    write_judgements(questions, answers, scorer, keys, journal, context.settings.accept_failures, stopped)


def headline(
    context: StageContext,
    questions: list[Question],
    answers: Mapping[str, AnswerRecord],
    journal: Journal,
    keys: Mapping[str, str],
) -> str:
    """The run's headline as Markdown, from what the journal has."""
    from docmemo.evaluation.aggregate import aggregate
    from docmemo.evaluation.headline import markdown

    judged = [Judgement.model_validate_json(r.record) for r in journal.results(keys.values()).values()]
    loop = context.params.loop
    scores = aggregate(
        questions, answers.values(), judged, read_documents(), rounds=loop.rounds, forced=loop.force_rounds
    )
    return markdown(scores, evidence_finder=context.params.answer.reader == "embedded")


def write_judgements(
    questions: list[Question],
    answers: Mapping[str, AnswerRecord],
    scorer: Scorer,
    keys: Mapping[str, str],
    journal: Journal,
    accepted: bool,
    stopped: DocMemoError | None = None,
) -> None:
    """Write data/judgements from the journal; what could not be judged is unscored, never 0.

    An answer whose judge has yet to be heard keeps its rule score.

    Raises:
        IncompleteRunError: if there are such answers and that is not accepted.
    """
    results, failed = journal.results(keys.values()), journal.failures(keys.values())
    records, retryable, seconds = [], {}, {}
    for question in questions:
        key, name = keys[question.question_id], question.question_id
        if key in results:
            records.append(Judgement.model_validate_json(results[key].record))
            seconds[name] = round(results[key].seconds, 4)
            continue
        attempt = failed.get(key) or not_asked(stopped)
        failure = attempt.failure
        retryable[name] = failure.message
        judgement = judge_by_rule(question, answers[name], scorer)
        pending = {"unscored": f"judging failed: {failure.message}", "usage": attempt.usage, "error": failure}
        records.append(judgement.model_copy(update=pending))
    journal.close()
    write_jsonl(OUT / "judgements.jsonl", records)
    write_timings("judge", seconds)
    report_failures(retryable, accepted, "judge", "answers", stopped)


if __name__ == "__main__":
    stage_main("judge", [OUT], run)
