"""Differences between two ways of doing the same questions, with an interval clustered by document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """A mean difference with its 95% interval; no interval below two documents."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """In points: "+1.8 [+0.4, +3.2]"."""
        if self.low is None or self.high is None:
            return f"{100 * self.value:+.1f}"
        return f"{100 * self.value:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def paired_difference(first: Floats, second: Floats, documents: Sequence[str]) -> Difference:
    """Mean of first - second over questions.

    The interval is Student's t with C - 1 degrees of freedom around the mean, its variance from leaving out one of
    the C documents at a time, as docmemo/evaluation/intervals.py does for ratios; a difference needs no logit.

    Args:
        first: one value a question, shape (n,), averaged over seeds where there are several.
        second: the same questions in the same order.
        documents: each question's document.
    """
    names, inverse = np.unique(np.asarray(documents), return_inverse=True)
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    sums = np.bincount(inverse, difference, minlength=len(names))
    sizes = np.bincount(inverse, minlength=len(names)).astype(np.float64)
    value = float(difference.mean())
    n = len(names)
    if n < 2:
        return Difference(value, None, None)
    without = (sums.sum() - sums) / (sizes.sum() - sizes)
    error = float(np.sqrt((n - 1) / n * np.sum((without - value) ** 2)))
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return Difference(value, value - half, value + half)


def difference_over_seeds(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Mean of first - second over seeds, one mean a seed: whether these documents would show it with other errors."""
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    value, n = float(difference.mean()), len(difference)
    if n < 2:
        return Difference(value, None, None)
    half = float(stats.t.ppf(0.975, n - 1) * difference.std(ddof=1) / np.sqrt(n))
    return Difference(value, value - half, value + half)


def chosen_on_one_half(
    figures: dict[str, Floats], base: Floats, documents: Sequence[str], splits: int = 200, seed: int = 0
) -> tuple[float, dict[str, int]]:
    """What choosing costs: pick the best of `figures` on half of the documents, score it on the other half.

    Returns:
        Mean gain over `base` on the half not chosen on, over random splits, and how often each was picked.
    """
    rng = np.random.default_rng(seed)
    names, inverse = np.unique(np.asarray(documents), return_inverse=True)
    picked = dict.fromkeys(figures, 0)
    gains = []
    for _ in range(splits):
        half = rng.permutation(len(names)) < len(names) // 2
        chosen, other = half[inverse], ~half[inverse]
        best = max(figures, key=lambda name: (float(figures[name][chosen].mean()), name))
        picked[best] += 1
        gains.append(float((figures[best][other] - base[other]).mean()))
    return float(np.mean(gains)), {name: count for name, count in picked.items() if count}
