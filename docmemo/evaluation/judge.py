"""Judging one answered question. Pure: whoever calls it brings the records and writes the result."""

from __future__ import annotations

from docmemo.evaluation.scorers import Scorer
from docmemo.types import NOT_ANSWERABLE, AnswerRecord, Judgement, Question


def prediction_of(answer: AnswerRecord) -> str:
    """The text that is scored: the answer, or "Not answerable" when that was the verdict.

    Raises:
        ValueError: if the question failed; a failure is no prediction.
    """
    if answer.outcome == "failed":
        raise ValueError(f"question {answer.question_id!r} failed and has no prediction")
    if answer.outcome == "not_answerable":
        return NOT_ANSWERABLE
    return answer.answer or ""


def judge_by_rule(question: Question, answer: AnswerRecord, scorer: Scorer) -> Judgement:
    """Score `answer` against the gold answer of `question` by a benchmark's rule.

    A failed question and a question without gold answer stay unscored, with the reason; neither is a 0 here.
    A gold answer without a format is compared as text. Of several acceptable answers the best one counts.

    Raises:
        ValueError: if the two records are not about the same question.
    """
    if question.question_id != answer.question_id:
        raise ValueError(f"answer {answer.question_id!r} is not about question {question.question_id!r}")
    judgement = Judgement(question_id=question.question_id, outcome=answer.outcome, scorer=scorer.id)
    if answer.outcome == "failed":
        why = f": {answer.error.kind}" if answer.error else ""
        return judgement.model_copy(update={"unscored": f"the question failed{why}"})
    if question.answer is None:
        return judgement.model_copy(update={"unscored": "the dataset has no gold answer"})
    prediction, answer_format = prediction_of(answer), question.answer_format or "Str"
    gold = (question.answer, *question.references)
    score = max(scorer.score(reference, prediction, answer_format) for reference in gold)
    return judgement.model_copy(update={"rule_score": score})
