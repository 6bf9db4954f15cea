"""The figures that two runs are compared by, over pairs of the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from docmemo.evaluation.compare_checks import Need
from docmemo.evaluation.paired import PairedDifference, Part, paired_difference
from docmemo.evaluation.run_metrics import IncomparableError, QuestionRow, RunMetrics

ACCURACY = "accuracy"
"""As a metric to decide on: the LLM judge's accuracy where both runs have it, else the rule's."""


@dataclass(frozen=True)
class Pair:
    """One question under both runs."""

    a: QuestionRow
    b: QuestionRow
    about: QuestionRow
    """The row that says what kind of question it is."""


@dataclass(frozen=True)
class Figure:
    """A figure that is compared."""

    label: str
    part: Callable[[QuestionRow, QuestionRow], Part | None]
    """(the run's row, the row that says what the question is) to what it adds; None: not in the denominator."""
    needs: Need = "dataset"


def _value(get: Callable[[QuestionRow], float | None]) -> Callable[[QuestionRow, QuestionRow], Part | None]:
    def part(row: QuestionRow, _about: QuestionRow) -> Part | None:
        value = get(row)
        return None if value is None else Part(value)

    return part


def _f1(row: QuestionRow, about: QuestionRow) -> Part | None:
    """2 * sum of scores of answerable questions / (answerable + answered), as `aggregate.generalized_f1`."""
    if row.rule is None or about.answerable is None:
        return None
    return Part(2 * row.rule if about.answerable else 0.0, float(about.answerable) + float(row.answered))


FIGURES: Mapping[str, Figure] = {
    "judge": Figure("accuracy (LLM judge)", _value(lambda q: q.judge), "judge"),
    "rule": Figure("accuracy (rule)", _value(lambda q: q.rule), "scorer"),
    "f1": Figure("F1 (rule)", _f1, "scorer"),
    "recall": Figure("evidence recall", _value(lambda q: q.recall[-1] if q.recall else None)),
    "all_hit": Figure("evidence all-hit", _value(lambda q: q.all_hit[-1] if q.all_hit else None)),
    "recall_round_1": Figure("recall, round 1", _value(lambda q: q.recall[0] if q.recall else None)),
    "all_hit_round_1": Figure("all-hit, round 1", _value(lambda q: q.all_hit[0] if q.all_hit else None)),
}
METRICS = (ACCURACY, *FIGURES)


def pair(a: RunMetrics, b: RunMetrics) -> list[Pair]:
    """The questions of both runs, in A's order.

    Raises:
        IncomparableError: if they have none in common.
    """
    described = b.questions if b.has_slices else a.questions
    shared = [name for name in a.questions if name in b.questions]
    if not shared:
        raise IncomparableError(
            f"{a.revision.label} and {b.revision.label} have no question in common.",
            remedy="Compare runs over the same dataset.",
        )
    return [Pair(a.questions[name], b.questions[name], described[name]) for name in shared]


def figure(name: str, pairs: Sequence[Pair], alpha: float) -> PairedDifference:
    """One figure over the pairs that have a value of it in both runs."""
    part = FIGURES[name].part
    found = [(part(p.a, p.about), part(p.b, p.about), p.a.doc_id) for p in pairs]
    both = [(x, y, doc) for x, y, doc in found if x is not None and y is not None]
    return paired_difference([x for x, _, _ in both], [y for _, y, _ in both], [doc for _, _, doc in both], alpha)


def slices_of(p: Pair) -> list[tuple[str, str]]:
    """(dimension, slice) that a question belongs to, as `aggregate` has them."""
    about = p.about
    found = [("evidence source", name) for name in dict.fromkeys(about.sources)]
    if about.doc_type is not None:
        found.append(("document type", about.doc_type or "unknown"))
    found.append(("answer format", about.answer_format or "unknown"))
    if about.text_layer:
        found.append(("text layer", about.text_layer))
    if about.answerable and about.gold_pages:
        found.append(("pages", "single page" if about.gold_pages == 1 else "multi page"))
    if about.answerable is False:
        found.append(("pages", "unanswerable"))
    return found
