"""From page scores to similarities and candidates (docs/design.md, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def similarity(scores: ArrayLike) -> NDArray[np.float64]:
    """c in 0..1: min-max of the scores over the pages in scope, shape (n,); 0.5 everywhere when all are equal.

    Raises:
        ValueError: if a score is not finite.
    """
    x = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(x).all():
        raise ValueError("Page scores must be finite.")
    if x.size == 0:
        return x.copy()
    low, high = float(x.min()), float(x.max())
    span = high - low
    if span == 0.0:
        return np.full_like(x, 0.5)
    if not np.isfinite(span):
        return similarity(x / 4.0)
    return np.asarray(np.clip((x - low) / span, 0.0, 1.0), dtype=np.float64)


def top_k(scores: ArrayLike, pages: Sequence[int], k: int) -> list[int]:
    """The k pages with the highest scores, best first; equal scores in page order. All pages if there are fewer.

    Raises:
        ValueError: if scores and pages differ in number.
    """
    x = np.asarray(scores, dtype=np.float64)
    if x.shape != (len(pages),):
        raise ValueError(f"{len(pages)} pages but scores of shape {x.shape}.")
    order = np.lexsort((np.asarray(pages, dtype=np.int64), -x))
    return [pages[i] for i in order[: max(0, k)].tolist()]
