"""Judged answers for the tests of the human check. No figure made from them means anything."""

from __future__ import annotations

from docmemo.evaluation.cases import Case, build_cases
from docmemo.types import AnswerRecord, Citation, Document, Judgement, Question, Verdict
from tests.evaluation.builders import answered, failed, one_round, question


def records(
    n: int, documents: int = 12
) -> tuple[list[Question], list[AnswerRecord], list[Judgement], list[Document]]:
    """n questions; every third answer is wrong by the rule, and the judge differs from it on every seventh."""
    questions, answers, judgements = [], [], []
    for i in range(n):
        sources = [("text", "table", "figure")[i % 3]]
        asked = question(i, f"gold {i}", [1 + i % 4], f"doc{i % documents}.pdf", evidence_sources=sources)
        by_rule = i % 3 != 0
        text = f"gold {i}" if by_rule else f"other {i}"
        citation = Citation(page=1 + i % 4, bbox=(0.1, 0.2, 0.5, 0.4), quote=f"It says other {i}.")
        questions.append(asked)
        answers.append(answered(asked, text, [one_round(1, [1, 2], [1, 2])], confidence=None, citations=[citation]))
        judgements.append(
            Judgement(
                question_id=asked.question_id,
                outcome="answer",
                scorer="mmlongbench/1",
                rule_score=float(by_rule),
                verdict=Verdict(
                    judge="a judge", prompt="ab12", correct=by_rule != (i % 7 == 0), reason="SECRET REASON"
                ),
            )
        )
    broken = question(n, "gold", [1], "doc0.pdf")
    questions.append(broken)
    answers.append(failed(broken))
    judgements.append(Judgement(question_id=broken.question_id, outcome="failed", scorer="mmlongbench/1"))
    return questions, answers, judgements, [Document(doc_id=f"doc{i}.pdf", path="x") for i in range(documents)]


def cases(n: int, documents: int = 12) -> list[Case]:
    """`records`, joined."""
    return build_cases(*records(n, documents))
