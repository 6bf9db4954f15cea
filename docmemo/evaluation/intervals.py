"""Confidence intervals of ratios over questions that are clustered by document.

Questions about one document share its difficulty, so the document is the unit of sampling. A mean, and the
generalized F1 too (2 * sum of scores / sum of denominators, see `aggregate`), are ratios of sums
R = sum(y) / sum(x). Their variance comes from leaving out one document at a time,

    var(R) = (C - 1) / C * sum_c (R_without_c - R)^2,

which is the small-sample corrected (CR3-like) form of the linearised cluster-robust variance. The interval
is taken on the logit scale with Student's t of C - 1 degrees of freedom and transformed back, so it stays in
0..1. Simulated at nominal 95% (beta-binomial, correlation .15, about 8 questions a document, means .05 to .9;
tests/evaluation/test_intervals.py holds a part): 10, 20 and 37 documents cover 93-98%; the same without the
logit covers 87-94%, and the percentile bootstrap is worse (FACTS: 87% with 8 documents). Where every document
agrees there is no variance to see, and the exact binomial (Clopper-Pearson) interval of C documents is given.
Below 10 documents there is no interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

MIN_CLUSTERS = 10
TOO_FEW = "too few documents"
NO_DIFFERENCE = "all equal"


@dataclass(frozen=True)
class Interval:
    """A figure with its confidence limits, all 0..1 (of a difference -1..1)."""

    value: float | None
    """None when there is nothing to take the figure over."""
    low: float | None = None
    high: float | None = None
    note: str = ""
    """Why there are no limits; '' when there are."""

    def as_dict(self) -> dict[str, float | None]:
        """`{value, low, high}` rounded to 6 decimals, as metrics/scores.json holds it."""
        return {name: _rounded(getattr(self, name)) for name in ("value", "low", "high")}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def mean_interval(values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95) -> Interval:
    """Mean of `values` (each 0..1), one a question, with its interval.

    `clusters` holds each question's document; arguments and errors else as `ratio_interval`.
    """
    return ratio_interval(values, [1.0] * len(values), clusters, confidence)


def ratio_interval(
    numerators: Sequence[float],
    denominators: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
) -> Interval:
    """sum(numerators) / sum(denominators), which must lie in 0..1, with its interval.

    Args:
        numerators: shape (questions,).
        denominators: shape (questions,), not negative. A document whose sum is 0 contributes nothing.
        clusters: each question's document.
        confidence: nominal coverage.

    Raises:
        ValueError: if the three differ in length.
    """
    if not len(numerators) == len(denominators) == len(clusters):
        raise ValueError("numerators, denominators and clusters must have one entry a question")
    y, x = _sums_by_cluster(numerators, denominators, clusters)
    total = float(x.sum())
    if total <= 0:
        return Interval(None)
    value = min(max(float(y.sum()) / total, 0.0), 1.0)
    n = len(x)
    if n < MIN_CLUSTERS:
        return Interval(value, note=TOO_FEW)
    without = (y.sum() - y) / (total - x)
    error = float(np.sqrt((n - 1) / n * np.sum((without - value) ** 2)))
    tail = (1 - confidence) / 2
    if error < 1e-12 or not 0 < value < 1:
        low, high = _clopper_pearson(value * n, n, tail)
        return Interval(value, low, high)
    half = float(special.stdtrit(n - 1, 1 - tail)) * error / (value * (1 - value))
    centre = float(special.logit(value))
    return Interval(value, float(special.expit(centre - half)), float(special.expit(centre + half)))


def _clopper_pearson(successes: float, n: int, tail: float) -> tuple[float, float]:
    low = float(special.betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(special.betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def _sums_by_cluster(
    numerators: Sequence[float], denominators: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of both for each cluster with a positive denominator; two arrays of shape (clusters,)."""
    index: dict[Hashable, int] = {}
    numbers = np.array([index.setdefault(c, len(index)) for c in clusters], dtype=np.int64)
    y, x = np.zeros(len(index)), np.zeros(len(index))
    np.add.at(y, numbers, np.asarray(numerators, dtype=np.float64))
    np.add.at(x, numbers, np.asarray(denominators, dtype=np.float64))
    return y[x > 0], x[x > 0]


def difference_interval(
    differences: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval:
    """Mean of paired differences (each -1..1, the same question under two configurations), with its interval.

    The variance is that of `ratio_interval`; a difference has no logit, so the interval is mean +- t * error, cut to
    -1..1. Where no question differs there is nothing to take a variance of, and no interval. Simulated at nominal 95%
    with 10 to 37 documents: covers 94-96% where one question in six or more differs, 92-94% where one in 25 does.

    Args:
        differences: one a question, shape (questions,).
        clusters: each question's document.
        confidence: nominal coverage.

    Raises:
        ValueError: if the two differ in length.
    """
    if len(differences) != len(clusters):
        raise ValueError("differences and clusters must have one entry a question")
    y, x = _sums_by_cluster(differences, [1.0] * len(differences), clusters)
    n = len(x)
    if n == 0:
        return Interval(None)
    value = float(y.sum() / x.sum())
    if not any(differences):
        return Interval(0.0, note=NO_DIFFERENCE)
    if n < MIN_CLUSTERS:
        return Interval(value, note=TOO_FEW)
    without = (y.sum() - y) / (x.sum() - x)
    error = float(np.sqrt((n - 1) / n * np.sum((without - value) ** 2)))
    half = float(special.stdtrit(n - 1, 1 - (1 - confidence) / 2)) * error
    return Interval(value, max(-1.0, value - half), min(1.0, value + half))
