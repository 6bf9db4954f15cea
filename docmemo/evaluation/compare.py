"""Two runs on the same questions: what got better or worse, where, whether that is noise, and what it cost.

A run is one version's metrics/ (see `run_metrics`). A is the run compared with, B the one in question; every
difference is B - A over the questions that both have a value of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from docmemo.errors import ConfigError
from docmemo.evaluation.compare_answers import AnswerView
from docmemo.evaluation.compare_checks import Change, Need, changes, obstacles
from docmemo.evaluation.compare_costs import CostRow, Ratio, costs, ratios
from docmemo.evaluation.compare_figures import ACCURACY, FIGURES, METRICS, Pair, figure, pair, slices_of
from docmemo.evaluation.paired import NOTHING, PairedDifference, holm, mcnemar
from docmemo.evaluation.run_metrics import IncomparableError, RunMetrics

DEFINITIONS: Mapping[str, str] = {
    "difference": "B - A in percentage points, over the questions that both runs have a value of. A failed question "
    "counts 0; one that is unscored in either run is left out of the pair, and counted.",
    "interval": "Around the difference, paired by question and clustered by document: leave-one-document-out "
    "variance, Student's t. Below 10 documents there is none ('too few documents').",
    "p": "Two-sided, of the same t: below alpha exactly where the interval leaves out 0.",
    "p (Holm)": "p corrected for testing several things at once: over the slices of one figure, and over the figures "
    "that decide.",
    "McNemar": "Exact test on the questions that changed between right and wrong. It takes questions as independent, "
    "which questions on one document are not; the interval above does not.",
    "right": "A question is right where its score is at least the stated threshold (graded scores lie between 0 and "
    "1), and found where every gold page was read.",
    "regression": "A figure that decides has fallen with a Holm-corrected p below alpha, and by more than the "
    "threshold.",
}


@dataclass(frozen=True)
class FigureRow:
    """One compared figure."""

    name: str
    label: str
    result: PairedDifference
    decides: bool = False
    """Whether the exit status depends on it."""
    p_holm: float | None = None
    """Of those that decide: corrected over them."""
    verdict: str = ""
    """Of those that decide: regression, improvement, no significant difference, or why there is none."""


@dataclass(frozen=True)
class SliceRow:
    """A figure over one slice."""

    figure: str
    dimension: str
    slice: str
    result: PairedDifference
    p_holm: float | None = None
    """Corrected over all slices of the figure."""


@dataclass(frozen=True)
class Flip:
    """A question that changed between right and wrong."""

    question_id: str
    doc_id: str
    a_score: float
    b_score: float
    a_outcome: str
    b_outcome: str
    a_rounds: int
    b_rounds: int


@dataclass(frozen=True)
class Flips:
    """Right and wrong under both runs."""

    figure: str
    label: str
    both: int
    neither: int
    lost: Sequence[Flip]
    """Right in A, wrong in B."""
    gained: Sequence[Flip]
    p: float
    """McNemar's."""


@dataclass(frozen=True)
class Comparison:
    """Everything `docmemo compare` says."""

    a: RunMetrics
    b: RunMetrics
    alpha: float
    threshold: float
    right: float
    n_pairs: int
    n_documents: int
    figures: Sequence[FigureRow]
    slices: Sequence[SliceRow]
    flips: Sequence[Flips]
    costs: Sequence[CostRow]
    efficiency: Sequence[Ratio]
    changes: Sequence[Change]
    notes: Sequence[str] = field(default_factory=tuple)
    answers: Mapping[str, tuple[AnswerView | None, AnswerView | None]] = field(default_factory=dict)
    """Question id to what A and B said, where asked for and on this machine."""

    @property
    def regressions(self) -> list[FigureRow]:
        """Figures that decide and have significantly fallen."""
        return [f for f in self.figures if f.verdict == "regression"]

    @property
    def exit_code(self) -> int:
        """1 with a significant regression, else 0."""
        return 1 if self.regressions else 0

    @property
    def flipped(self) -> list[str]:
        """Ids of all questions that flipped."""
        return list(dict.fromkeys(q.question_id for f in self.flips for q in (*f.lost, *f.gained)))

    def counts(self) -> list[tuple[str, Any, Any]]:
        """(what, in A, in B) of questions and documents, whatever failed or is unscored included."""
        names = [
            "n_questions",
            "n_answered",
            "n_failed",
            "n_unscored",
            "n_unjudged",
            "n_documents",
            "n_documents_failed",
        ]
        rows = [(n, self.a.scores.get(n), self.b.scores.get(n)) for n in names]
        return [row for row in rows if row[0] != "n_unjudged" or row[1:] != (None, None)]

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        runs = {
            side: {"name": r.name, "commit": r.sha or None, "date": r.date, "subject": r.subject}
            for side, r in (("a", self.a.revision), ("b", self.b.revision))
        }
        values: dict[str, Any] = {
            name: [asdict(item) for item in getattr(self, name)]
            for name in ("figures", "slices", "flips", "efficiency", "changes")
        }
        values["costs"] = [asdict(row) | {"difference": row.difference, "ratio": row.ratio} for row in self.costs]
        return {
            **runs,
            **{name: getattr(self, name) for name in ("alpha", "threshold", "right", "n_pairs", "n_documents")},
            "counts": {name: {"a": a, "b": b} for name, a, b in self.counts()},
            "regression": bool(self.regressions),
            **values,
            "answers": {
                name: {side: asdict(view) if view else None for side, view in zip("ab", views, strict=True)}
                for name, views in self.answers.items()
            },
            "notes": list(self.notes),
            "definitions": dict(DEFINITIONS),
        }


def compare(
    a: RunMetrics,
    b: RunMetrics,
    *,
    metrics: Sequence[str] = (),
    threshold: float = 0.0,
    alpha: float = 0.05,
    right: float = 0.5,
) -> Comparison:
    """Compare run B with run A.

    Args:
        a, b: the two runs.
        metrics: figures that decide, of METRICS. By default accuracy; with the embedded evidence finder in both runs,
            whose answers are no question answering, evidence recall and accuracy.
        threshold: a regression has fallen by more than this, 0..1.
        alpha: significance level; intervals cover 1 - alpha.
        right: least score that counts as right in the lists of questions that flipped.

    Raises:
        ConfigError: if an argument is out of range or a metric unknown.
        IncomparableError: if the figures that decide cannot be compared, and why.
    """
    _check_arguments(metrics, threshold, alpha, right)
    blocked = obstacles(a, b)
    if "dataset" in blocked:
        raise IncomparableError(blocked["dataset"], remedy="Compare runs over the same documents and questions.")
    pairs = pair(a, b)
    chosen = _deciding(metrics, a, b)
    _check_deciding(chosen, a, b, blocked)
    shown = [name for name, f in FIGURES.items() if f.needs not in blocked]
    results = {name: figure(name, pairs, alpha) for name in shown}
    results = {name: result for name, result in results.items() if result.note != NOTHING}
    if not any(name in results for name in chosen):
        raise IncomparableError(
            f"No question has a value of {', '.join(FIGURES[name].label for name in chosen)} in both runs.",
            remedy=f"Decide on another figure with --metric: {', '.join(results) or 'none has values'}.",
        )
    kind = next((name for name in ("judge", "rule") if name in results), None)
    sliced = [name for name in (kind, "recall") if name and name in results]
    return Comparison(
        a=a,
        b=b,
        alpha=alpha,
        threshold=threshold,
        right=right,
        n_pairs=len(pairs),
        n_documents=len({p.a.doc_id for p in pairs}),
        figures=_decide(results, [name for name in chosen if name in results], threshold, alpha),
        slices=[row for name in sliced for row in _slices(name, pairs, alpha)],
        flips=[flips(name, pairs, right) for name in (kind, "all_hit") if name and name in results],
        costs=costs(a, b),
        efficiency=ratios(a, b, results.get(kind or "")),
        changes=changes(a, b),
        notes=_notes(a, b, pairs, blocked),
    )


def _check_arguments(metrics: Sequence[str], threshold: float, alpha: float, right: float) -> None:
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise ConfigError(f"Unknown metric {', '.join(unknown)}.", remedy=f"Known: {', '.join(METRICS)}.")
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha is {alpha}, which is not between 0 and 1.", remedy="0.05 is usual.")
    if not 0 <= threshold < 1:
        raise ConfigError(f"threshold is {threshold}; it is a share of 1, from 0 on.", remedy="0.02 is two points.")
    if not 0 < right <= 1:
        raise ConfigError(f"right is {right}; scores that count as right lie in 0..1.", remedy="0.5 is the default.")


def _deciding(metrics: Sequence[str], a: RunMetrics, b: RunMetrics) -> list[str]:
    judged = "judge" if a.has_judge and b.has_judge else "rule"
    names = metrics or (("recall", ACCURACY) if a.evidence_finder and b.evidence_finder else (ACCURACY,))
    return list(dict.fromkeys(judged if name == ACCURACY else name for name in names))


def _check_deciding(chosen: Sequence[str], a: RunMetrics, b: RunMetrics, blocked: Mapping[Need, str]) -> None:
    for name in chosen:
        needs = FIGURES[name].needs
        if needs in blocked:
            other = "`--metric rule` compares by the rule" if needs == "judge" else "`--metric recall` compares pages"
            raise IncomparableError(blocked[needs], remedy=f"Compare runs of the same {needs}; {other}.")
        if name == "judge":
            without = [run.revision.label for run in (a, b) if not run.has_judge]
            if without:
                raise IncomparableError(
                    f"No answer of {' and '.join(without)} was judged by a language model.",
                    remedy="`--metric rule` compares by the rule.",
                )


def _decide(
    results: Mapping[str, PairedDifference], chosen: Sequence[str], threshold: float, alpha: float
) -> list[FigureRow]:
    corrected = holm({name: p for name in chosen if (p := results[name].p) is not None})
    rows = []
    for name in [*chosen, *(name for name in results if name not in chosen)]:
        result = results[name]
        row = FigureRow(name, FIGURES[name].label, result)
        if name in chosen:
            p = corrected.get(name)
            row = FigureRow(name, row.label, result, True, p, _verdict(result, p, threshold, alpha))
        rows.append(row)
    return rows


def _verdict(result: PairedDifference, p: float | None, threshold: float, alpha: float) -> str:
    if p is None or result.difference is None:
        return result.note
    if p >= alpha:
        return "no significant difference"
    if result.difference > 0:
        return "improvement"
    return "regression" if result.difference < -threshold else "lower, within the threshold"


def _slices(name: str, pairs: Sequence[Pair], alpha: float) -> list[SliceRow]:
    groups: dict[tuple[str, str], list[Pair]] = {}
    for p in pairs:
        for key in slices_of(p):
            groups.setdefault(key, []).append(p)
    order = {d: i for i, d in enumerate(("evidence source", "document type", "answer format", "text layer", "pages"))}
    results = {key: figure(name, groups[key], alpha) for key in sorted(groups, key=lambda k: (order[k[0]], k[1]))}
    corrected = holm({key: result.p for key, result in results.items() if result.p is not None})
    return [
        SliceRow(name, dimension, value, result, corrected.get((dimension, value)))
        for (dimension, value), result in results.items()
        if result.note != NOTHING
    ]


def flips(name: str, pairs: Sequence[Pair], right: float) -> Flips:
    """Which questions changed between right and wrong by a figure's value; all-hit is right when it is 1."""
    part = FIGURES[name].part
    least = 1.0 if name == "all_hit" else right
    counts = {True: 0, False: 0}
    lost: list[Flip] = []
    gained: list[Flip] = []
    for p in pairs:
        a, b = part(p.a, p.about), part(p.b, p.about)
        if a is None or b is None:
            continue
        before, after = a.y >= least - 1e-9, b.y >= least - 1e-9
        if before == after:
            counts[before] += 1
            continue
        row = Flip(p.a.question_id, p.a.doc_id, a.y, b.y, p.a.outcome, p.b.outcome, p.a.rounds, p.b.rounds)
        (lost if before else gained).append(row)
    label = FIGURES[name].label
    return Flips(name, label, counts[True], counts[False], lost, gained, mcnemar(len(lost), len(gained)))


def _notes(a: RunMetrics, b: RunMetrics, pairs: Sequence[Pair], blocked: Mapping[Need, str]) -> list[str]:
    notes = [f"Not compared: {reason}" for reason in blocked.values()]
    for run, other in ((a, b), (b, a)):
        alone = len(run.questions) - len(pairs)
        if alone:
            notes.append(f"{alone} questions of {run.revision.label} are not in {other.revision.label}.")
        if run.provenance.get("params", {}).get("loop", {}).get("force_rounds"):
            notes.append(f"{run.revision.label} ran all rounds of every question (loop.force_rounds).")
    if not (a.has_slices or b.has_slices):
        notes.append(
            "Both runs are older than the columns that say what a question is: F1 and most slices are missing."
        )
    if a.evidence_finder or b.evidence_finder:
        notes.append("Answers of the embedded evidence finder are low-confidence extracts, not question answering.")
    return notes
