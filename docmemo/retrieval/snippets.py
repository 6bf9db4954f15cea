"""Evidence finder: the passages of a page that cover a query's terms best, with the lines to highlight."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from docmemo.documents.passages import Passage, passages, union
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.tokenize import analyzer, query_terms
from docmemo.types import Box, Page, PageSet

LONG = 60
"""Terms from which on a snippet's score is divided by sqrt(length / LONG): short evidence is easier to check."""
HEADING_GAP = 0.05
"""Most of the page's height between a heading and what it stands over."""
PAIR = 0.9
"""Factor for two neighbouring sentences together, so that the second must bring something."""


@dataclass(frozen=True)
class QueryTerm:
    """A term of a query: as analysed, as written, and how rare it is in the document (BM25 idf over pages)."""

    term: str
    word: str
    idf: float


@dataclass(frozen=True)
class Snippet:
    """A span of a page that covers terms of the query.

    Attributes:
        page: 1-based.
        text: the span; a table row stands under its header.
        covered: terms of the query it holds, rarest first (analysed, as `rare_terms` names them).
        score: idf of the covered terms over the idf of all query terms the document holds, damped for length; 0..1.
        boxes: one a line.
        bbox: around all of them.
    """

    page: int
    text: str
    covered: tuple[str, ...]
    score: float
    boxes: tuple[Box, ...]
    bbox: Box


@dataclass(frozen=True)
class _Analysed:
    passage: Passage
    terms: frozenset[str]
    length: int


class SnippetFinder:
    """Finds snippets in one document.

    Args:
        page_set: the document's pages.
        index: its lexical index, which gives language and idf.
        keep: pages whose passages stay in memory.
    """

    def __init__(self, page_set: PageSet, index: LexicalIndex, keep: int = 256) -> None:
        self._pages = {page.page: page for page in page_set.pages}
        self._index = index
        self._keep = keep
        self._analysed: OrderedDict[int, list[_Analysed]] = OrderedDict()

    def query_terms(self, query: str) -> list[QueryTerm]:
        """Different terms of the query in its order; idf 0 marks a term no page holds."""
        written: dict[str, str] = {}
        for word, term in analyzer(self._index.language).words(query):
            written.setdefault(term, word)
        terms = dict.fromkeys(query_terms(query, self._index.language))
        return [QueryTerm(term, written.get(term, term), self._index.idf_of(term)) for term in terms]

    def rare_terms(self, query: str, limit: int = 3) -> list[QueryTerm]:
        """The rarest of the query's terms that the document holds at all, rarest first; at most `limit`."""
        known = [term for term in self.query_terms(query) if term.idf > 0]
        return sorted(known, key=lambda term: -term.idf)[:limit]

    def _passages(self, page: Page) -> list[_Analysed]:
        found = self._analysed.pop(page.page, None)
        if found is None:
            analyse = analyzer(self._index.language)
            found = []
            for passage in passages(page):
                terms = analyse.terms(passage.text)
                if terms:
                    found.append(_Analysed(passage, frozenset(terms), len(terms)))
        self._analysed[page.page] = found
        while len(self._analysed) > self._keep:
            self._analysed.popitem(last=False)
        return found

    def snippets(self, page: int, query: str, limit: int = 3) -> list[Snippet]:
        """The page's best snippets for `query`, best first, none overlapping; [] where it covers no term.

        Raises:
            ValueError: if the document has no such page.
        """
        if page not in self._pages:
            raise ValueError(f"The document has no page {page}.")
        weights = {term.term: term.idf for term in self.query_terms(query) if term.idf > 0}
        if not weights:
            return []
        total = sum(weights.values())
        record = self._pages[page]
        units = self._passages(record)
        spans: list[tuple[float, int, Sequence[_Analysed]]] = []
        scores = [self._score([unit], weights, total) for unit in units]
        for at, unit in enumerate(units):
            if scores[at] > 0:
                spans.append((scores[at], at, [unit]))
            if at + 1 < len(units) and self._pairs(unit, units[at + 1], record):
                both = PAIR * self._score([unit, units[at + 1]], weights, total)
                if both > max(scores[at], scores[at + 1]):
                    spans.append((both, at, [unit, units[at + 1]]))
        spans.sort(key=lambda span: (-span[0], span[1]))
        chosen: list[Snippet] = []
        used: set[int] = set()
        for score, _, parts in spans:
            if len(chosen) == limit:
                break
            own = {line for part in parts for line in self._own_lines(part.passage, record)}
            if own & used:
                continue
            used |= own
            chosen.append(self._snippet(record, parts, weights, score))
        return chosen

    @staticmethod
    def _own_lines(passage: Passage, page: Page) -> Sequence[int]:
        """Lines without a row's header, which rows share."""
        if passage.kind == "sentence":
            return passage.lines
        cells = passage.text.rsplit("\n", 1)[-1].count(" | ") + 1
        return passage.lines[-cells:] if len(page.lines) else ()

    @staticmethod
    def _pairs(first: _Analysed, second: _Analysed, page: Page) -> bool:
        """Two sentences of a paragraph, or a short line (a heading) and what follows right below it."""
        a, b = first.passage, second.passage
        if a.kind != "sentence" or b.kind != "sentence":
            return False
        if a.paragraph == b.paragraph:
            return True
        gap = page.lines[b.lines[0]].bbox[1] - page.lines[a.lines[-1]].bbox[3]
        return b.paragraph == a.paragraph + 1 and first.length <= 10 and -0.01 <= gap <= HEADING_GAP

    @staticmethod
    def _score(parts: Sequence[_Analysed], weights: dict[str, float], total: float) -> float:
        terms = frozenset[str]().union(*(part.terms for part in parts))
        covered = sum(weight for term, weight in weights.items() if term in terms)
        length = sum(part.length for part in parts)
        return covered / total / math.sqrt(max(1.0, length / LONG))

    @staticmethod
    def _snippet(page: Page, parts: Sequence[_Analysed], weights: dict[str, float], score: float) -> Snippet:
        terms = frozenset[str]().union(*(part.terms for part in parts))
        covered = sorted((term for term in weights if term in terms), key=lambda term: -weights[term])
        lines = dict.fromkeys(line for part in parts for line in part.passage.lines)
        boxes = tuple(page.lines[line].bbox for line in lines)
        text = " ".join(part.passage.text for part in parts)
        return Snippet(page.page, text, tuple(covered), score, boxes, union(boxes))
