"""Agreement of two raters who call each answer right or wrong: rule, LLM judge, a person.

Cohen's kappa = (p_o - p_e) / (1 - p_e), with p_o the share both call the same and p_e the share they would by chance,
each keeping to its own share of "right" (Cohen 1960). With two ratings it is a few lines, so scikit-learn, which the
tests compare it with, is no dependency of the program.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmemo.evaluation.intervals import FLOOR, Interval, mean_interval, statistic_interval

RIGHT_FROM = 0.5
"""A graded rule score of this or more counts as "right" beside a verdict that is only right or wrong."""
NO_CHANCE = "both always say the same"
"""Why there is no kappa: chance alone would agree always."""
ALL_AGREE = "no disagreement"
"""Why kappa has no interval: leaving out documents changes nothing."""


@dataclass(frozen=True)
class Agreement:
    """Two raters over the same answers."""

    n: int
    both_right: int
    only_first: int
    """The first calls it right, the second wrong."""
    only_second: int
    both_wrong: int
    agreement: Interval
    """Share called the same."""
    kappa: Interval

    def as_dict(self) -> dict[str, Any]:
        """As metrics/scores.json holds it."""
        return {
            **{name: getattr(self, name) for name in ("n", "both_right", "only_first", "only_second", "both_wrong")},
            "agreement": self.agreement.as_dict(),
            "kappa": self.kappa.as_dict(),
        }


def right(score: float) -> bool:
    """Whether a rule score counts as right."""
    return score >= RIGHT_FROM


def agreement(first: Sequence[bool], second: Sequence[bool], clusters: Sequence[Hashable]) -> Agreement:
    """How far two raters agree, with intervals clustered by document.

    Args:
        first, second: one rating an answer, shape (answers,), in the same order.
        clusters: each answer's document.

    Raises:
        ValueError: if the three differ in length.
    """
    if not len(first) == len(second) == len(clusters):
        raise ValueError("first, second and clusters must have one entry an answer")
    counts = np.zeros((len(first), 4))
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        counts[row, _cell(a, b)] = 1
    total = counts.sum(axis=0)
    return Agreement(
        n=len(first),
        both_right=int(total[0]),
        only_first=int(total[1]),
        only_second=int(total[2]),
        both_wrong=int(total[3]),
        agreement=mean_interval([float(a == b) for a, b in zip(first, second, strict=True)], clusters),
        kappa=_kappa_interval(counts, total, clusters),
    )


def _cell(a: bool, b: bool) -> int:
    return 0 if a and b else 1 if a else 2 if b else 3


def _kappa_interval(
    counts: NDArray[np.float64], total: NDArray[np.float64], clusters: Sequence[Hashable]
) -> Interval:
    if kappa(total) is None:
        return Interval(None, note=NO_CHANCE if total.sum() else "")
    if total[1] + total[2] == 0:
        return Interval(1.0, note=ALL_AGREE)
    return statistic_interval(kappa, counts, clusters, FLOOR * _independent_variance(total))


def _shares(counts: NDArray[np.float64]) -> tuple[float, float]:
    """Share called the same, and the share expected by chance."""
    n = float(counts.sum())
    first, second = float(counts[0] + counts[1]) / n, float(counts[0] + counts[2]) / n
    return float(counts[0] + counts[3]) / n, first * second + (1 - first) * (1 - second)


def _independent_variance(counts: NDArray[np.float64]) -> float:
    """Of kappa, if answers were independent: p_o (1 - p_o) / (n (1 - p_e)^2) (Cohen 1960)."""
    observed, chance = _shares(counts)
    return observed * (1 - observed) / (float(counts.sum()) * (1 - chance) ** 2)


def kappa(counts: NDArray[np.float64]) -> float | None:
    """Cohen's kappa of the counts (both right, only first, only second, both wrong); None when undefined."""
    if counts.sum() == 0:
        return None
    observed, chance = _shares(counts)
    return None if chance >= 1 - 1e-12 else (observed - chance) / (1 - chance)
