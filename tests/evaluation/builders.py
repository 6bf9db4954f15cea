"""Small synthetic records for the tests of evaluation. No figure made from them means anything."""

from __future__ import annotations

from typing import Any

from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.scorers import get_scorer
from docmemo.types import AnswerRecord, Candidate, Citation, Failure, Judgement, Question, RoundRecord
from docmemo.usage import Usage


def question(number: int, gold: str | None, pages: list[int], doc: str = "a.pdf", **more: Any) -> Question:
    """Question `q<number>`; answerable unless the gold answer says otherwise."""
    values: dict[str, Any] = {
        "question_id": f"q{number}",
        "doc_id": doc,
        "question": f"Question number {number}?",
        "answer": gold,
        "answer_format": "Str",
        "evidence_pages": pages,
        "evidence_sources": ["text"],
        "answerable": None if gold is None else gold != "Not answerable",
    }
    return Question(**(values | more))


def one_round(number: int, ranking: list[int], read: list[int], **more: Any) -> RoundRecord:
    """A round whose ranking is best first."""
    candidates = [Candidate(page=page, score=1 / (i + 1)) for i, page in enumerate(ranking)]
    return RoundRecord(round=number, query="query", candidates=candidates, evidence=read, **more)


def answered(asked: Question, text: str | None, rounds: list[RoundRecord], **more: Any) -> AnswerRecord:
    """An answer, or the verdict "not answerable" when `text` is None."""
    values: dict[str, Any] = {
        "question_id": asked.question_id,
        "doc_id": asked.doc_id,
        "question": asked.question,
        "outcome": "not_answerable" if text is None else "answer",
        "answer": text,
        "confidence": "low",
        "rounds": rounds,
        "citations": [Citation(page=page) for r in rounds for page in r.evidence[:1]],
        "usage": Usage(calls=2, input_tokens=10, output_tokens=5, cost_usd=0.25),
    }
    return AnswerRecord(**(values | more))


def failed(asked: Question) -> AnswerRecord:
    """A failed question."""
    return AnswerRecord(
        question_id=asked.question_id,
        doc_id=asked.doc_id,
        question=asked.question,
        outcome="failed",
        error=Failure(kind="ModelTimeoutError", message="no reply in 120 s", retryable=True),
    )


def judged(questions: list[Question], answers: list[AnswerRecord]) -> list[Judgement]:
    """Every answer judged by the rule of MMLongBench-Doc."""
    by_id = {q.question_id: q for q in questions}
    return [judge_by_rule(by_id[a.question_id], a, get_scorer("mmlongbench")) for a in answers]
