"""Late interaction: exact MaxSim of a query's vectors and every page's (ColBERT, Khattab and Zaharia 2020).

score(page) = sum over the query's vectors of the largest dot product with any of the page's vectors. Within a
document this takes milliseconds, so there is no approximate index and no pooling, which costs detail.

colpali-engine's `score_multi_vector` pads short pages with zeros, so that there a query vector whose products with a
page are all negative counts 0, or what it is, depending on the pages beside it. Here it counts what it is.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from threadpoolctl import ThreadpoolController

from docmemo.errors import ArtifactError

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

BLOCK = 1 << 14
"""Page vectors a thread compares at once: their products with 25 query vectors, 1.6 MB, stay in the cache."""
_REMEMBERED = 64
"""Queries whose scores a document keeps: rounds and ablations ask the same ones."""


_scoring = threading.Lock()


@cache
def _threads() -> tuple[ThreadPoolExecutor, ThreadpoolController]:
    """The threads that score, and what tells numpy's matrix library how many of its own to use."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return ThreadPoolExecutor(cpus, thread_name_prefix="maxsim"), ThreadpoolController()


def maxsim(query: Floats32, vectors: Floats32, offsets: Ints, block: int = BLOCK) -> Floats:
    """MaxSim of a query and each page.

    Products and maxima are float32, the sum over query vectors is float64. Blocks of pages go to threads, each of
    which multiplies by itself: threads that share one product wait for each other at its end, which took three times
    as long on two busy cores.

    Args:
        query: shape (n_query, dim).
        vectors: all pages' vectors one after the other, shape (n_vectors, dim); column by column in memory
            (`by_columns`) it takes about two thirds of the time.
        offsets: where each page starts in `vectors`, shape (n_pages + 1,).
        block: page vectors compared at once, if pages are not longer.

    Returns:
        Shape (n_pages,); NaN for a page without vectors.
    """
    scores = np.full(len(offsets) - 1, np.nan)
    pages = np.flatnonzero(np.diff(offsets))  # a page without vectors takes no room: the others lie side by side
    starts, ends = offsets[pages], offsets[pages + 1]

    def score(part: tuple[int, int]) -> None:
        first, end = part
        products = query @ vectors[starts[first] : ends[end - 1]].T
        best = np.maximum.reduceat(products, starts[first:end] - starts[first], axis=1)
        scores[pages[first:end]] = best.sum(axis=0, dtype=np.float64)

    parts = []
    first = 0
    while first < len(pages):
        fitting = int(np.searchsorted(ends, starts[first] + block, side="right"))
        parts.append((first, max(first + 1, fitting)))
        first = parts[-1][1]
    executor, libraries = _threads()
    with _scoring, libraries.limit(limits=1, user_api="blas"):
        list(executor.map(score, parts))
    return scores


def by_columns(vectors: NDArray[np.floating[Any]]) -> Floats32:
    """The vectors as float32, shape (n_vectors, dim), column by column in memory, as the product wants them."""
    columns = np.empty(vectors.shape[::-1], np.float32)

    def turn(start: int) -> None:
        columns[:, start : start + 1024] = vectors[start : start + 1024].astype(np.float32).T

    list(_threads()[0].map(turn, range(0, len(vectors), 1024)))  # pieces that stay in the cache
    return columns.T


def fill_missing(scores: Floats) -> Floats:
    """Pages without a score (NaN) take the lowest score of the others; zeros if no page has one."""
    known = np.isfinite(scores)
    if not known.any():
        return np.zeros_like(scores)
    return np.where(known, scores, scores[known].min())


@dataclass(eq=False)
class PageVectors:
    """Vectors of one or several documents' pages, stored as float16 and scored as float32.

    Attributes:
        vectors: all pages' vectors one after the other, shape (n_vectors, dim), float16.
        offsets: where each page starts in `vectors`, shape (n_pages + 1,); a page may have none.
        made_with: model, revision, batch size, precision and the loader's check, as the file's header keeps them.
    """

    vectors: NDArray[np.float16]
    offsets: Ints
    made_with: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_pages(
        cls, pages: Sequence[NDArray[np.floating[Any]] | None], made_with: Mapping[str, Any] | None = None
    ) -> PageVectors:
        """From an array (n_vectors, dim) a page, in order; None for a page without vectors."""
        lengths = [0 if page is None else len(page) for page in pages]
        kept = [page.astype(np.float16) for page in pages if page is not None]
        vectors = np.concatenate(kept) if kept else np.zeros((0, 0), np.float16)
        return cls(vectors, np.cumsum([0, *lengths], dtype=np.int64), made_with or {})

    @classmethod
    def merge(cls, parts: Sequence[PageVectors]) -> PageVectors:
        """Several documents as one, pages in the order given.

        Raises:
            ArtifactError: if different models made them.
        """
        identities = {str(part.made_with.get("revision")) for part in parts if len(part.vectors)}
        if len(identities) > 1:
            raise ArtifactError(
                "The documents' pages were embedded by different models.", remedy="Run again to embed them anew."
            )
        lengths = [np.diff(part.offsets) for part in parts]
        kept = [part.vectors for part in parts if len(part.vectors)]
        vectors = np.concatenate(kept) if kept else np.zeros((0, 0), np.float16)
        return cls(vectors, np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64), parts[0].made_with)

    @property
    def n_pages(self) -> int:
        """Pages, with and without vectors."""
        return len(self.offsets) - 1

    @cached_property
    def _by_columns(self) -> Floats32:
        return by_columns(self.vectors)

    def scores(self, query: Floats32) -> Floats:
        """MaxSim of each page, shape (n_pages,); NaN for a page without vectors.

        Raises:
            ArtifactError: if the query's vectors have another dimension, as those of another model do.
        """
        if len(self.vectors) and query.shape[1] != self.vectors.shape[1]:
            raise ArtifactError(
                f"The query has vectors of dimension {query.shape[1]}, the pages of {self.vectors.shape[1]}.",
                remedy="Run `dvc repro embed`.",
            )
        return maxsim(query, self._by_columns, self.offsets)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file keeps."""
        return {"page_vectors": self.vectors, "vector_offsets": self.offsets}

    @classmethod
    def load(cls, path: Path) -> PageVectors:
        """Read the vectors of a file that the embed step wrote.

        Raises:
            ArtifactError: if it is missing or damaged, or holds no page vectors.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                header = json.loads((file.metadata() or {}).get("docmemo", "{}"))
                names = set(file.keys())
                if not {"page_vectors", "vector_offsets"} <= names:
                    raise ArtifactError(f"{path} holds no page vectors.", remedy="Run `dvc repro embed`.")
                return cls(
                    file.get_tensor("page_vectors"), file.get_tensor("vector_offsets"), header.get("vectors", {})
                )
        except (OSError, SafetensorError, ValueError) as error:
            raise ArtifactError(f"{path} cannot be read: {error}.", remedy="Run `dvc repro embed`.") from error


class QueryEncoder(Protocol):
    """What embeds queries. Called from several threads at once."""

    def encode(self, query: str) -> Floats32:
        """Finite vectors, shape (n_query, dim)."""


class VisualScorer:
    """MaxSim of a document's pages, each query embedded and scored once. Safe for several threads.

    Args:
        load: gives the pages' vectors; called at the first query.
        encoder: embeds queries.
    """

    def __init__(self, load: Callable[[], PageVectors], encoder: QueryEncoder) -> None:
        self._load = load
        self._encoder = encoder
        self._lock = threading.Lock()
        self._vectors: PageVectors | None = None
        self._scores: OrderedDict[str, Floats] = OrderedDict()

    @property
    def vectors(self) -> PageVectors:
        """The pages' vectors."""
        with self._lock:
            if self._vectors is None:
                self._vectors = self._load()
            return self._vectors

    def scores(self, query: str) -> Floats:
        """MaxSim of each page, shape (n_pages,); NaN for a page without vectors.

        Raises:
            ArtifactError: if the vectors cannot be read.
            ModelError: if the query cannot be embedded.
        """
        with self._lock:
            known = self._scores.get(query)
        if known is not None:
            return known
        made = self.vectors.scores(self._encoder.encode(query))
        with self._lock:
            self._scores[query] = made
            while len(self._scores) > _REMEMBERED:
                self._scores.popitem(last=False)
        return made
