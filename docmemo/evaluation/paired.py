"""Tests of a paired difference over questions that are clustered by document.

The interval is that of `intervals.difference_interval`, for ratios of sums too: with R = sum(y) / sum(x) of each run,
D = R_b - R_a, and D_without_c the same without document c,

    var(D) = (C - 1) / C * sum_c (D_without_c - D)^2 + (one question's weight)^2,

the last term that of one more question changing. The interval is D +- t * error with Student's t of C - 1 degrees of
freedom. The p value is that of the same t, so that it is below alpha exactly where the (1 - alpha) interval leaves
out 0. Below 10 documents there is neither.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from docmemo.evaluation.intervals import MIN_CLUSTERS, NO_DIFFERENCE, TOO_FEW

Floats = NDArray[np.float64]
NOTHING = "no questions"
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Part:
    """What one question adds to a run's ratio: of a mean, its value over 1."""

    y: float
    x: float = 1.0


@dataclass(frozen=True)
class PairedDifference:
    """A figure under two runs on the same questions."""

    n: int
    """Questions that both runs have a value of."""
    documents: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    """b - a."""
    low: float | None = None
    high: float | None = None
    p: float | None = None
    """Two-sided; None where there is no test."""
    note: str = ""
    """Why there are no limits."""


def paired_difference(
    a: Sequence[Part], b: Sequence[Part], documents: Sequence[Hashable], alpha: float = 0.05
) -> PairedDifference:
    """Difference b - a of sum(y) / sum(x), paired by question, clustered by document.

    Args:
        a, b: one part a question, shape (questions,), in the same order.
        documents: each question's document.
        alpha: the interval has a nominal coverage of 1 - alpha.

    Raises:
        ValueError: if the three differ in length.
    """
    if not len(a) == len(b) == len(documents):
        raise ValueError("a, b and documents must have one entry a question")
    sums = _sums(a, b, documents)
    count = len(sums)
    y_a, x_a, y_b, x_b = sums.T
    if x_a.sum() <= 0 or x_b.sum() <= 0:
        return PairedDifference(len(a), count, note=NOTHING)
    value_a, value_b = float(y_a.sum() / x_a.sum()), float(y_b.sum() / x_b.sum())
    found = PairedDifference(len(a), count, value_a, value_b, value_b - value_a)
    if a == b:
        return replace(found, difference=0.0, p=1.0 if count >= MIN_CLUSTERS else None, note=NO_DIFFERENCE)
    rest_a, rest_b = x_a.sum() - x_a, x_b.sum() - x_b
    if count < MIN_CLUSTERS or min(rest_a.min(), rest_b.min()) <= 0:
        return replace(found, note=TOO_FEW)
    difference = value_b - value_a
    without = (y_b.sum() - y_b) / rest_b - (y_a.sum() - y_a) / rest_a
    weight = max(part.x for part in b) / float(x_b.sum())
    error = math.sqrt((count - 1) / count * float(np.sum((without - difference) ** 2)) + weight**2)
    half = float(special.stdtrit(count - 1, 1 - alpha / 2)) * error
    return replace(
        found,
        low=max(-1.0, difference - half),
        high=min(1.0, difference + half),
        p=float(2 * special.stdtr(count - 1, -abs(difference) / error)),
    )


def _sums(a: Sequence[Part], b: Sequence[Part], documents: Sequence[Hashable]) -> Floats:
    """y_a, x_a, y_b, x_b summed over each document that counts at all; shape (documents, 4)."""
    index: dict[Hashable, int] = {}
    numbers = np.array([index.setdefault(c, len(index)) for c in documents], dtype=np.int64)
    values = np.array([(p.y, p.x, q.y, q.x) for p, q in zip(a, b, strict=True)], dtype=np.float64).reshape(-1, 4)
    sums = np.zeros((len(index), 4))
    np.add.at(sums, numbers, values)
    return sums[(sums[:, 1] > 0) | (sums[:, 3] > 0)]


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided McNemar test of paired right and wrong: the binomial test of the questions that changed.

    It takes questions as independent; the clustered interval does not.
    """
    if lost + gained == 0:
        return 1.0
    return float(stats.binomtest(lost, lost + gained, 0.5).pvalue)


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """p values corrected for testing all of them at once (Holm's step-down method)."""
    corrected: dict[K, float] = {}
    highest = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda k: p_values[k])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[key]))
        corrected[key] = highest
    return corrected
