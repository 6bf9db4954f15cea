"""One question with its answer and its judgement: what all figures are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from docmemo.errors import DatasetError
from docmemo.evaluation.confusion import State
from docmemo.types import NOT_ANSWERABLE, AnswerRecord, Document, Judgement, Question


@dataclass(frozen=True)
class Case:
    """One question with all that is known about it."""

    question: Question
    answer: AnswerRecord | None
    judgement: Judgement | None
    doc_type: str = ""
    scanned: bool | None = None
    """Whether the document is mostly without text layer; None when unknown."""
    gold: frozenset[int] = field(default_factory=frozenset)

    @property
    def failed(self) -> bool:
        """Whether the question failed or was never recorded."""
        return self.answer is None or self.answer.outcome == "failed"

    @property
    def ranking(self) -> list[int]:
        """Pages of the first round's ranking, best first."""
        rounds = self.answer.rounds if self.answer else []
        return [candidate.page for candidate in rounds[0].candidates] if rounds else []

    @property
    def reads(self) -> list[list[int]]:
        """Pages read in each round."""
        return [r.evidence for r in self.answer.rounds] if self.answer else []

    @property
    def answerable(self) -> bool:
        """Whether the gold says there is an answer."""
        if self.question.answerable is not None:
            return self.question.answerable
        return self.question.answer not in (None, NOT_ANSWERABLE)

    @property
    def answered_positively(self) -> bool:
        """Whether an answer other than "Not answerable" was given."""
        if self.answer is None or self.answer.outcome != "answer":
            return False
        return (self.answer.answer or "").strip() != NOT_ANSWERABLE

    @property
    def state(self) -> State:
        """What became of the question, for the confusion of answering and declining."""
        if self.failed:
            return "failed"
        return "answered" if self.answered_positively else "not_answerable"

    @property
    def confidence(self) -> float | None:
        """The reader's own confidence 0..1; None where it gives none, and of a failure."""
        return None if self.answer is None or self.failed else self.answer.confidence_score

    @property
    def score(self) -> float | None:
        """Rule score as accuracy counts it: 0 when failed, None when not in the denominator."""
        if self.question.answer is None:
            return None
        if self.failed:
            return 0.0
        return self.judgement.rule_score if self.judgement else None

    @property
    def verdict(self) -> float | None:
        """LLM verdict as accuracy counts it: 0 when failed, None when not in the denominator."""
        if self.question.answer is None:
            return None
        if self.failed:
            return 0.0
        verdict = self.judgement.verdict if self.judgement else None
        return None if verdict is None else float(verdict.correct)


def build_cases(
    questions: Iterable[Question],
    answers: Iterable[AnswerRecord],
    judgements: Iterable[Judgement],
    documents: Iterable[Document],
    scanned: Mapping[str, bool] | None = None,
) -> list[Case]:
    """Join the records by question id, in the order of the questions.

    Raises:
        DatasetError: if an answer or a judgement is about no question, or a question occurs twice.
    """
    answer_of = {a.question_id: a for a in answers}
    judgement_of = {j.question_id: j for j in judgements}
    type_of = {d.doc_id: d.doc_type for d in documents}
    cases = [
        Case(
            question=q,
            answer=answer_of.get(q.question_id),
            judgement=judgement_of.get(q.question_id),
            doc_type=q.doc_type or type_of.get(q.doc_id, ""),
            scanned=(scanned or {}).get(q.doc_id),
            gold=frozenset(q.evidence_pages),
        )
        for q in questions
    ]
    known = {c.question.question_id for c in cases}
    strangers = sorted((set(answer_of) | set(judgement_of)) - known)
    if strangers or len(known) != len(cases):
        what = f"records about unknown questions {strangers[:3]}" if strangers else "a question id twice"
        raise DatasetError(f"The evaluation has {what}.", remedy="Run `dvc repro` from the start.")
    return cases
