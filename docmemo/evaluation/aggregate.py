"""From records to metrics/scores.json. Every key is defined in words in `definitions.DEFINITIONS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Literal

from docmemo.evaluation import retrieval_metrics as metrics
from docmemo.evaluation.agreement import agreement, right
from docmemo.evaluation.calibration import calibration
from docmemo.evaluation.cases import Case, build_cases
from docmemo.evaluation.confusion import confusion
from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.intervals import Interval, mean_interval, ratio_interval
from docmemo.types import AnswerRecord, Document, Judgement, Question
from docmemo.usage import Usage

__all__ = ["DEFINITIONS", "KS", "Case", "Spend", "aggregate", "build_cases"]

KS = (1, 3, 5, 10)
"""Cut-offs of the first round's ranking."""


@dataclass(frozen=True)
class Spend:
    """What records of questions do not hold; None means unknown."""

    offline: Usage | None = None
    """Model calls that prepared the documents (summaries, schema)."""
    seconds_offline: float | None = None
    seconds_online: float | None = None
    seconds_judge: float | None = None


def aggregate(
    questions: Iterable[Question],
    answers: Iterable[AnswerRecord],
    judgements: Iterable[Judgement],
    documents: Sequence[Document],
    *,
    rounds: int,
    forced: bool = False,
    scanned: Mapping[str, bool] | None = None,
    spend: Spend | None = None,
) -> dict[str, Any]:
    """The content of metrics/scores.json (DESIGN section 6): keys sorted, numbers rounded to 6 decimals.

    Args:
        questions: all questions of the dataset.
        answers: at most one record a question; a question without one counts as failed.
        judgements: at most one a question.
        documents: all documents of the manifest.
        rounds: T, the most rounds a question could get (`loop.rounds`).
        forced: whether every question had to run all rounds (`loop.force_rounds`).
        scanned: document id to whether it is mostly without text layer (`PageSet.is_scanned`).
        spend: cost and time outside the records of questions.

    Raises:
        DatasetError: as `build_cases`.
    """
    cases = build_cases(questions, answers, judgements, documents, scanned)
    done = [c for c in cases if not c.failed]
    scores: dict[str, Any] = {
        "n_questions": len(cases),
        "n_answered": len(done),
        "n_failed": len(cases) - len(done),
        "n_unscored": sum(c.score is None for c in done),
        "n_unjudged": sum(c.verdict is None for c in done) if has_verdicts(cases) else None,
        "n_documents": len(documents),
        "n_documents_failed": sum(d.status == "failed" for d in documents),
        "accuracy": {"rule": accuracy(cases).as_dict(), "judge": judged_accuracy(cases).as_dict()},
        "f1": {"rule": generalized_f1(cases).as_dict()},
        "confusion": confusion(
            (c.state, None if c.question.answer is None and c.question.answerable is None else c.answerable)
            for c in cases
        ),
        "calibration": {"rule": _calibration(cases, "score"), "judge": _calibration(cases, "verdict")},
        "agreement": _agreement(cases),
        "retrieval": _retrieval(cases, with_intervals=True),
        "evidence": _evidence(cases, rounds, forced),
        "feedback": _feedback(cases),
        "rounds": {"mean": _mean([len(c.reads) for c in done])},
        "page_reads": {"mean": _mean([sum(map(len, c.reads)) for c in done])},
        "distinct_pages": {"mean": _mean([len(metrics.pages_read(c.reads, rounds)) for c in done])},
        **_spend(cases, spend or Spend()),
        **_slices(cases, rounds),
    }
    tidy: dict[str, Any] = rounded(scores)
    return tidy


def rounded(value: Any) -> Any:
    """`value` with sorted keys and floats rounded to 6 decimals, at every depth."""
    if isinstance(value, dict):
        return {key: rounded(value[key]) for key in sorted(value)}
    return round(value, 6) if isinstance(value, float) else value


def accuracy(cases: Sequence[Case]) -> Interval:
    """`accuracy.rule` of DEFINITIONS."""
    scored = [(s, c.question.doc_id) for c in cases if (s := c.score) is not None]
    return mean_interval([s for s, _ in scored], [doc for _, doc in scored])


def has_verdicts(cases: Iterable[Case]) -> bool:
    """Whether an LLM judge has called at least one of the answers right or wrong."""
    return any(c.judgement and c.judgement.verdict for c in cases)


def judged_accuracy(cases: Sequence[Case]) -> Interval:
    """`accuracy.judge` of DEFINITIONS; without any verdict there is no figure."""
    if not has_verdicts(cases):
        return Interval(None)
    scored = [(v, c.question.doc_id) for c in cases if (v := c.verdict) is not None]
    return mean_interval([v for v, _ in scored], [doc for _, doc in scored])


def generalized_f1(cases: Sequence[Case]) -> Interval:
    """`f1.rule` of DEFINITIONS (MMLongBench-Doc, `eval_acc_and_f1` of its evaluation script).

    With S the sum of scores of answerable questions, A their number and B the number of questions answered
    positively, recall = S/A, precision = S/B and so F1 = 2S / (A + B): a ratio of sums, like a mean.
    """
    scored = [(s, c) for c in cases if (s := c.score) is not None]
    if not any(c.answerable for _, c in scored):
        return Interval(None)
    return ratio_interval(
        [2 * s if c.answerable else 0.0 for s, c in scored],
        [float(c.answerable) + float(c.answered_positively) for _, c in scored],
        [c.question.doc_id for _, c in scored],
    )


def page_interval(cases: Sequence[Case], value: Callable[[Case], float]) -> Interval:
    """Mean of `value` over the questions with gold pages."""
    with_gold = [c for c in cases if c.gold]
    return mean_interval([value(c) for c in with_gold], [c.question.doc_id for c in with_gold])


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _recall_at(k: int) -> Callable[[Case], float]:
    return lambda case: metrics.recall_at_k(case.gold, case.ranking, k)


def _all_hit_at(k: int) -> Callable[[Case], float]:
    return lambda case: metrics.all_hit_at_k(case.gold, case.ranking, k)


def _retrieval(cases: Sequence[Case], *, with_intervals: bool = False) -> dict[str, Any]:
    found = {f"recall_at_{k}": page_interval(cases, _recall_at(k)) for k in KS}
    found |= {f"all_hit_at_{k}": page_interval(cases, _all_hit_at(k)) for k in KS}
    values: dict[str, Any] = {name: interval.value for name, interval in found.items()}
    if with_intervals:
        values["intervals"] = {name: _limits(interval) for name, interval in found.items()}
    return values


def _limits(interval: Interval) -> dict[str, float | None]:
    return {"low": interval.low, "high": interval.high}


def recall_until(t: int) -> Callable[[Case], float]:
    """`metrics.recall_at_round` of a case at round t."""
    return lambda case: metrics.recall_at_round(case.gold, case.reads, t)


def all_hit_until(t: int) -> Callable[[Case], float]:
    """`metrics.all_hit_at_round` of a case at round t."""
    return lambda case: metrics.all_hit_at_round(case.gold, case.reads, t)


def reached(cases: Sequence[Case], t: int) -> list[Case]:
    """The questions that ran round t (1-based); one that failed on the way ran none."""
    return [c for c in cases if len(c.reads) >= t]


def single_page(cases: Sequence[Case]) -> list[Case]:
    """Answerable questions with exactly one gold page."""
    return [c for c in cases if c.answerable and len(c.gold) == 1]


def multi_page(cases: Sequence[Case]) -> list[Case]:
    """Answerable questions with two or more gold pages."""
    return [c for c in cases if c.answerable and len(c.gold) > 1]


def _evidence(cases: Sequence[Case], rounds: int, forced: bool) -> dict[str, Any]:
    steps = range(1, rounds + 1)
    found = {
        "recall_at_round": {str(t): page_interval(cases, recall_until(t)) for t in steps},
        "all_hit_at_round": {str(t): page_interval(cases, all_hit_until(t)) for t in steps},
    }
    values: dict[str, Any] = {n: {t: i.value for t, i in curve.items()} for n, curve in found.items()}
    result: dict[str, Any] = dict(values)
    if forced:
        result = {name: dict.fromkeys(curve) for name, curve in values.items()}
        result["forced"] = values
    result["intervals"] = {n: {t: _limits(i) for t, i in curve.items()} for n, curve in found.items()}
    result["n"] = sum(bool(c.gold) for c in cases)
    result["reached"] = _reached(cases, steps)
    return result


def _reached(cases: Sequence[Case], steps: Iterable[int]) -> dict[str, Any]:
    found: dict[str, Any] = {"recall_at_round": {}, "all_hit_at_round": {}, "n": {}}
    for t in steps:
        there = reached(cases, t)
        found["recall_at_round"][str(t)] = page_interval(there, recall_until(t)).value
        found["all_hit_at_round"][str(t)] = page_interval(there, all_hit_until(t)).value
        found["n"][str(t)] = sum(bool(c.gold) for c in there)
    return found


def _feedback(cases: Sequence[Case]) -> dict[str, Any]:
    quality = metrics.feedback_quality(
        metrics.RoundFeedback(frozenset(r.evidence), frozenset(r.useful), frozenset(r.irrelevant), c.gold)
        for c in cases
        if c.gold and c.answer
        for r in c.answer.rounds
    )
    return vars(quality)


def _calibration(cases: Sequence[Case], by: Literal["score", "verdict"]) -> dict[str, Any] | None:
    values: list[tuple[float | None, float | None]] = [(c.confidence, getattr(c, by)) for c in cases]
    return calibration((sure, value) for sure, value in values if sure is not None and value is not None)


def _agreement(cases: Sequence[Case]) -> dict[str, Any] | None:
    """Rule (first) and judge (second), over answers that have both; None without a judge."""
    both = [
        (right(c.score), c.verdict == 1.0, c.question.doc_id)
        for c in cases
        if not c.failed and c.score is not None and c.verdict is not None
    ]
    if not both:
        return None
    rule, judge, documents = zip(*both, strict=True)
    found = agreement(rule, judge, documents).as_dict()
    return found | {"only_rule": found.pop("only_first"), "only_judge": found.pop("only_second")}


def _spend(cases: Sequence[Case], spend: Spend) -> dict[str, Any]:
    sides = {
        "offline": spend.offline,
        "online": reduce(add, (c.answer.usage for c in cases if c.answer), Usage()),
        "judge": reduce(add, (c.judgement.usage for c in cases if c.judgement), Usage()),
    }
    return {
        "calls": {side: None if u is None else u.calls for side, u in sides.items()},
        "tokens": {side: None if u is None else u.input_tokens + u.output_tokens for side, u in sides.items()},
        "seconds": {
            "offline": spend.seconds_offline,
            "online": spend.seconds_online,
            "judge": spend.seconds_judge,
        },
        "cost_usd": {side: None if u is None else u.cost_usd for side, u in sides.items()},
    }


def _slices(cases: Sequence[Case], rounds: int) -> dict[str, Any]:
    def grouped(keys: Callable[[Case], Iterable[str]]) -> dict[str, Any]:
        groups: dict[str, list[Case]] = {}
        for case in cases:
            for key in dict.fromkeys(keys(case)):
                groups.setdefault(key, []).append(case)
        return {key: _slice(group, rounds) for key, group in groups.items()}

    layer = {True: ["scanned"], False: ["text"], None: []}
    by_layer = grouped(lambda c: layer[c.scanned])
    return {
        "by_evidence_source": grouped(lambda c: list(c.question.evidence_sources)),
        "by_doc_type": grouped(lambda c: [c.doc_type or "unknown"]),
        "by_answer_format": grouped(lambda c: [c.question.answer_format or "unknown"]),
        "by_text_layer": {name: by_layer.get(name) or _slice([], rounds) for name in ("text", "scanned")},
        "single_page": _slice(single_page(cases), rounds),
        "multi_page": _slice(multi_page(cases), rounds),
        "unanswerable": _slice([c for c in cases if c.question.answer and not c.answerable], rounds),
    }


def _slice(cases: Sequence[Case], rounds: int) -> dict[str, Any]:
    """One slice. `evidence` is after the last round; `n_evidence` is the denominator of all page figures."""
    return {
        "n": len(cases),
        "n_evidence": sum(bool(c.gold) for c in cases),
        "accuracy": accuracy(cases).as_dict(),
        "accuracy_judge": judged_accuracy(cases).as_dict(),
        "f1": generalized_f1(cases).as_dict(),
        "retrieval": _retrieval(cases),
        "evidence": {
            "recall": page_interval(cases, recall_until(rounds)).as_dict(),
            "all_hit": page_interval(cases, all_hit_until(rounds)).as_dict(),
        },
    }
