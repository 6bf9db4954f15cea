"""Confidence intervals of ratios over questions that are clustered by document.

Questions about one document share its difficulty, so the document is the unit of sampling. A mean, and the
generalized F1 too (2 * sum of scores / sum of denominators, see `aggregate`), are ratios of sums
R = sum(y) / sum(x). Their variance comes from leaving out one document at a time,

    var(R) = (C - 1) / C * sum_c (R_without_c - R)^2,

which is the small-sample corrected (CR3-like) form of the linearised cluster-robust variance. It is not taken to be
less than FLOOR times R (1 - R) / sum(x), since few documents can look alike by chance. The interval is on the logit
scale with Student's t of C - 1 degrees of freedom and transformed back, so it stays in 0..1. Where everything is
right, or wrong, the exact binomial (Clopper-Pearson) interval of C documents is given. Below 10 documents: none.
docs/decisions/0005-intervals.md has the simulation this rests on: 95% nominal covers 93-97% with 10, 37 and 135
documents, where the percentile bootstrap covers less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

MIN_CLUSTERS = 10
TOO_FEW = "too few documents"
NO_DIFFERENCE = "all equal"
NO_VARIANCE = "no variation between documents"
FLOOR = 0.65
"""No variance is taken to be less than this share of that of as many independent answers that are right or wrong."""


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
    tail = (1 - confidence) / 2
    if not 0 < value < 1:
        low, high = _clopper_pearson(value * n, n, tail)
        return Interval(value, low, high)
    without = (y.sum() - y) / (total - x)
    variance = (n - 1) / n * float(np.sum((without - value) ** 2))
    largest = value * (1 - value)
    error = math.sqrt(max(variance, FLOOR * largest / total))
    half = float(special.stdtrit(n - 1, 1 - tail)) * error / largest
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

    The variance is the leave-one-document-out one of `ratio_interval`, and that of one more question that changed,
    1 / n^2, without which a handful of changes would look surer than it is. A difference has no logit, so the
    interval is mean +- t * error, cut to -1..1. Where no question differs there is no variance to see, and no
    interval. docs/decisions/0005-intervals.md has the simulated coverage.

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
    error = math.sqrt((n - 1) / n * float(np.sum((without - value) ** 2)) + 1 / len(differences) ** 2)
    half = float(special.stdtrit(n - 1, 1 - (1 - confidence) / 2)) * error
    return Interval(value, max(-1.0, value - half), min(1.0, value + half))


def statistic_interval(
    statistic: Callable[[NDArray[np.float64]], float | None],
    rows: NDArray[np.float64],
    clusters: Sequence[Hashable],
    least_variance: float = 0.0,
    confidence: float = 0.95,
) -> Interval:
    """A figure of -1..1 made from column sums (as Cohen's kappa is from counts), with its interval.

    Leave-one-document-out variance and Student's t on the scale of Fisher's z (atanh), since kappa near 1 is skewed.

    Args:
        statistic: sums of the columns, shape (columns,), to the figure; None where it is undefined.
        rows: one row an answer, shape (answers, columns).
        clusters: each answer's document.
        least_variance: no variance is taken to be less, since few documents can look alike by chance.
        confidence: nominal coverage.

    Raises:
        ValueError: if `rows` and `clusters` differ in length.
    """
    if len(rows) != len(clusters):
        raise ValueError("rows and clusters must have one entry an answer")
    index: dict[Hashable, int] = {}
    numbers = np.array([index.setdefault(c, len(index)) for c in clusters], dtype=np.int64)
    sums = np.zeros((len(index), rows.shape[1]))
    np.add.at(sums, numbers, rows)
    total = sums.sum(axis=0)
    value, n = statistic(total), len(sums)
    if value is None:
        return Interval(None)
    if n < MIN_CLUSTERS:
        return Interval(value, note=TOO_FEW)
    without = [found for own in sums if (found := statistic(total - own)) is not None]
    error = math.sqrt(max((n - 1) / n * sum((one - value) ** 2 for one in without), least_variance))
    if len(without) < n or error < 1e-12 or abs(value) >= 1:
        return Interval(value, note=NO_VARIANCE)
    half = float(special.stdtrit(n - 1, 1 - (1 - confidence) / 2)) * error / (1 - value**2)
    return Interval(value, math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half))
