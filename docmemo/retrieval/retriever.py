"""Scores the pages of one document, or of several together, against a query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from docmemo.config import RetrievalParams
from docmemo.errors import ArtifactError
from docmemo.retrieval.fusion import fuse
from docmemo.retrieval.late_interaction import VisualScorer
from docmemo.retrieval.lexical import LexicalIndex, LexicalScores
from docmemo.retrieval.references import ReferenceIndex, find_references
from docmemo.retrieval.tokenize import query_terms
from docmemo.types import PageSet


class PageRetriever:
    """Page retrieval: BM25 over pages, best windows and bigrams, explicit references, and MaxSim over page images.

    Args:
        page_set: the document's pages.
        index: its lexical index, a row for each page of `page_set` in the same order.
        params: weights and BM25 parameters.
        visual: scores page images, in the same order; None where pages are not embedded.

    Raises:
        ArtifactError: if index and pages do not belong together.
    """

    def __init__(
        self,
        page_set: PageSet,
        index: LexicalIndex,
        params: RetrievalParams | None = None,
        visual: VisualScorer | None = None,
    ) -> None:
        self._setup([page_set], index, [index.language], params, visual)
        self._rows = {page.page: row for row, page in enumerate(page_set.pages)}

    def _setup(
        self,
        documents: Sequence[PageSet],
        index: LexicalIndex,
        languages: Sequence[str],
        params: RetrievalParams | None,
        visual: VisualScorer | None,
    ) -> None:
        n_pages = sum(len(document.pages) for document in documents)
        if index.n_pages != n_pages:
            raise ArtifactError(
                f"The lexical index has {index.n_pages} pages, the documents {n_pages}.", remedy="Run `dvc repro`."
            )
        self.index = index
        self.params = params if params is not None else RetrievalParams()
        self._visual = visual if self.params.visual_weight > 0 else None
        self._documents = list(documents)
        self._languages = list(dict.fromkeys(languages))
        self.locations = [(document.doc_id, page.page) for document in documents for page in document.pages]
        """(doc_id, page) of each row."""

    @classmethod
    def joint(
        cls,
        documents: Sequence[tuple[PageSet, LexicalIndex]],
        params: RetrievalParams | None = None,
        visual: VisualScorer | None = None,
    ) -> PageRetriever:
        """One retriever over several documents: the union of their pages with joint statistics.

        Pages are then numbered 1..N through all documents, in the order given; `locate` says which page of which
        document a number is. References ("page 3") are resolved in each document by its own numbers. `visual` scores
        the pages of all documents, in the same order.
        """
        made = cls.__new__(cls)
        indexes = [index for _, index in documents]
        made._setup(
            [pages for pages, _ in documents],
            LexicalIndex.merge(indexes),
            [i.language for i in indexes],
            params,
            visual,
        )
        made._rows = {row + 1: row for row in range(len(made.locations))}
        return made

    @property
    def pages(self) -> list[int]:
        """All page numbers that `score` understands."""
        return list(self._rows)

    def locate(self, page: int) -> tuple[str, int]:
        """(doc_id, page in that document) of a page number.

        Raises:
            ValueError: if there is no such page.
        """
        return self.locations[self._row(page)]

    def _row(self, page: int) -> int:
        if page not in self._rows:
            raise ValueError(
                f"There is no page {page}; pages are {min(self._rows, default=0)}..{max(self._rows, default=0)}."
            )
        return self._rows[page]

    @cached_property
    def _references(self) -> list[ReferenceIndex]:
        return [ReferenceIndex(document) for document in self._documents]

    def reference(self, query: str) -> NDArray[np.float64]:
        """Strength 0..1 with which the query names each row's page, shape (n_rows,)."""
        strengths = np.zeros(len(self.locations))
        if not find_references(query):
            return strengths
        start = 0
        for document, references in zip(self._documents, self._references, strict=True):
            rows = {page.page: start + i for i, page in enumerate(document.pages)}
            for page, strength in references.strengths(query).items():
                strengths[rows[page]] = strength
            start += len(document.pages)
        return strengths

    def _terms(self, query: str) -> list[str]:
        """The query's terms in the documents' language; with several languages, what the others add comes after."""
        terms: list[str] = []
        for language in self._languages:
            seen = set(terms)
            terms += [term for term in query_terms(query, language) if term not in seen]
        return terms

    def prepare(self, queries: Sequence[str]) -> None:
        """Do the part of scoring these queries that takes long: the model's embedding of each, and MaxSim.

        `score` does it by itself otherwise; an event loop calls this in a thread first. Does nothing where pages are
        not embedded.

        Raises:
            ModelError: if a query cannot be embedded.
        """
        for query in queries:
            self._visual_scores(query)

    def _visual_scores(self, query: str) -> NDArray[np.float64] | None:
        """MaxSim of each row, shape (n_rows,); None where it plays no part."""
        if self._visual is None:
            return None
        scores = self._visual.scores(query)
        if len(scores) != len(self.locations):
            raise ArtifactError(
                f"{len(scores)} pages were embedded, the documents have {len(self.locations)}.",
                remedy="Run `dvc repro`.",
            )
        return scores

    def score(self, query: str, pages: Sequence[int]) -> NDArray[np.float64]:
        """Score of each of `pages`, shape (len(pages),), in the order given; finite.

        z-scores are over `pages` alone, so that pages out of scope decide nothing but the terms' idf.

        Raises:
            ValueError: if a page is not in the document.
            ModelError: if the query cannot be embedded.
        """
        rows = np.array([self._row(page) for page in pages], dtype=np.int64)
        raw = self.index.scores(self._terms(query), k1=self.params.k1, b=self.params.b)
        scope = LexicalScores(page=raw.page[rows], window=raw.window[rows], bigram=raw.bigram[rows])
        visual = self._visual_scores(query)
        return fuse(scope, self.reference(query)[rows], self.params, None if visual is None else visual[rows])
