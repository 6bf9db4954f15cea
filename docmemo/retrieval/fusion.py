"""Arithmetic that makes one score a page out of several (docs/design.md, section 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docmemo.config import RetrievalParams
from docmemo.retrieval.late_interaction import fill_missing
from docmemo.retrieval.lexical import LexicalScores

Floats = NDArray[np.float64]


def z_scores(values: ArrayLike) -> Floats:
    """(x - mean) / standard deviation over the pages in scope, shape (n,); zeros where all values are equal.

    Values that differ only by rounding count as equal, so that noise is not blown up to a ranking.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return x.copy()
    scale = float(np.max(np.abs(x)))
    deviation = float(x.std())
    if deviation <= 1e-9 * scale or deviation == 0.0 or not np.isfinite(deviation):
        return np.zeros_like(x)
    return np.asarray((x - x.mean()) / deviation, dtype=np.float64)


def fuse(
    scores: LexicalScores, reference: ArrayLike, params: RetrievalParams, visual: Floats | None = None
) -> Floats:
    """page_weight z(page) + window_weight z(window) + bigram_weight z(bigram) + reference_weight reference, and
    + visual_weight z(visual) where there is a visual score. With all weights but visual_weight at 0 it is that alone.

    Args:
        scores: raw scores of the pages in scope, each of shape (n,).
        reference: strength 0..1 with which the query names each page, shape (n,).
        params: the weights.
        visual: MaxSim over page images, shape (n,); NaN for a page that could not be embedded, which then counts as
            the lowest of the others. None: the pages are not embedded.

    Returns:
        Finite scores, shape (n,); only their order and their differences mean anything.
    """
    lexical = np.asarray(
        params.page_weight * z_scores(scores.page)
        + params.window_weight * z_scores(scores.window)
        + params.bigram_weight * z_scores(scores.bigram)
        + params.reference_weight * np.asarray(reference, dtype=np.float64),
        dtype=np.float64,
    )
    if visual is None:
        return lexical
    return np.asarray(lexical + params.visual_weight * z_scores(fill_missing(visual)), dtype=np.float64)
