"""Whether a reader's own confidence says how often it is right (reliability diagram, expected calibration error)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

BINS = 10
"""Bins of equal width over 0..1; bin b (1-based) holds confidences in ((b - 1) / 10, b / 10], the first one 0 too."""


def calibration(cases: Iterable[tuple[float, float]]) -> dict[str, Any] | None:
    """Reliability by bin of confidence, and how far confidence and score lie apart.

    ECE = sum over bins of n_bin / n * |mean score - mean confidence| (Naeini et al. 2015, with bins of equal width);
    Brier = mean of (confidence - score)^2.

    Args:
        cases: (confidence 0..1, score 0..1) of each question that has both.

    Returns:
        `n`, `confidence` and `score` (means), `ece`, `brier`, and `bins`: number of a bin that holds something, as
        text, to its `n`, `confidence` and `score`. None when there is no question.
    """
    bins: dict[int, list[tuple[float, float]]] = {}
    for confidence, score in cases:
        bins.setdefault(bin_of(confidence), []).append((confidence, score))
    everything = [case for held in bins.values() for case in held]
    n = len(everything)
    if not n:
        return None
    figures = {number: _means(held) for number, held in sorted(bins.items())}
    return {
        **_means(everything),
        "ece": sum(f["n"] / n * abs(f["score"] - f["confidence"]) for f in figures.values()),
        "brier": math.fsum((confidence - score) ** 2 for confidence, score in everything) / n,
        "bins": {str(number): f for number, f in figures.items()},
    }


def bin_of(confidence: float) -> int:
    """The 1-based bin of a confidence.

    Raises:
        ValueError: if it does not lie in 0..1.
    """
    if not 0 <= confidence <= 1:
        raise ValueError(f"a confidence lies in 0..1, not {confidence}")
    return max(1, math.ceil(round(confidence * BINS, 9)))


def _means(held: list[tuple[float, float]]) -> dict[str, Any]:
    n = len(held)
    return {
        "n": n,
        "confidence": math.fsum(confidence for confidence, _ in held) / n,
        "score": math.fsum(score for _, score in held) / n,
    }
