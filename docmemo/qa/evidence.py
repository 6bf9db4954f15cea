"""The embedded reader, an evidence finder: ranked pages, highlighted snippets, and a low-confidence extract.

It is not question answering (docs/design.md, section 3): no model reads the pages, and no score of it tells an
answerable question from an unanswerable one, so it abstains only where no page holds any term of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docmemo.config import Params
from docmemo.qa.protocols import ReadReply, ReadRequest, RerankReply, RerankRequest
from docmemo.retrieval.snippets import Snippet, SnippetFinder
from docmemo.retrieval.tokenize import analyzer
from docmemo.types import Citation

_NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:[.,]\d+)*%?(?![\w])")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ASKS_YEAR = re.compile(r"\b(year|when|jahr|wann)\b|年", re.IGNORECASE)
_ASKS_NUMBER = re.compile(
    r"\b(how many|how much|what percent\w*|percentage|number of|what year|which year|in what year|total|rate)\b"
    r"|\b(wie viele|wie viel|wie hoch|anteil|prozent)\b|多少|几",
    re.IGNORECASE,
)
MAX_EXTRACT = 300
"""Characters of an extract."""


class EmbeddedReranker:
    """Keeps the best candidates in the order retrieval gave them."""

    costly = False
    """Its replies are cheaper to make again than to keep."""

    def __init__(self, params: Params) -> None:
        del params

    async def rerank(self, request: RerankRequest) -> RerankReply:
        """The first `keep` candidates."""
        return RerankReply(pages=[candidate.page for candidate in request.candidates[: request.keep]])


@dataclass(frozen=True)
class PageEvidence:
    """What one page holds for the question."""

    page: int
    snippets: Sequence[Snippet]
    coverage: float
    """Share (by idf) of the question's rare terms that the best snippet covers, 0..1."""

    @property
    def score(self) -> float:
        """Of the best snippet, 0..1; 0 without one."""
        return self.snippets[0].score if self.snippets else 0.0


class EmbeddedReader:
    """Calls pages whose best snippet covers the question's rare terms useful, and those covering none irrelevant.

    Unless the top page stands clear of the rest, it uses all rounds: the next query is the question plus the terms
    no useful page covers and the labels of the sections useful pages stand in. What it cites comes from all pages
    read, those of earlier rounds first: it keeps no memory of them but looks again, which costs milliseconds.
    """

    costly = False
    """Its replies are cheaper to make again than to keep."""

    def __init__(self, params: Params) -> None:
        self._params = params.answer
        self._finders: dict[str, SnippetFinder] = {}

    def _finder(self, request: ReadRequest) -> SnippetFinder:
        name = request.view.doc_id
        if name not in self._finders:
            self._finders = {name: SnippetFinder(request.view.page_set, request.view.index)}
        return self._finders[name]

    async def read(self, request: ReadRequest) -> ReadReply:
        """One round: evidence of each page, then decide or ask for more."""
        finder = self._finder(request)
        question = request.question.question
        rare = {term.term: term.idf for term in finder.rare_terms(question, self._params.rare_terms)}
        seen = [self._page(finder, page, question, rare) for page in (*request.earlier, *request.evidence)]
        good = [e.page for e in seen if e.coverage >= self._params.useful_coverage and e.snippets]
        useful = [page for page in good if page in request.evidence]
        irrelevant = [e.page for e in seen if e.coverage == 0.0 and e.page in request.evidence]
        clear = request.round == 1 and request.margin >= self._params.clear_margin
        missing = self._missing(rare, seen, good)
        note = self._note(seen, useful)
        if not request.last_round and not clear:
            return ReadReply(
                outcome="query_update",
                query=self._next_query(request, missing, good),
                note=note,
                missing=", ".join(missing),
                useful=useful,
                irrelevant=irrelevant,
            )
        found = [e for e in seen if e.snippets]
        if not found:
            return ReadReply(
                outcome="not_answerable",
                reason="No page read holds any term of the question; that does not show that there is no answer.",
                useful=useful,
                irrelevant=irrelevant,
            )
        best = max(found, key=lambda e: e.score)
        return ReadReply(
            outcome="answer",
            answer=extract(question, best.snippets[0], request.view.index.language),
            confidence="low",
            citations=self._citations(seen),
            query=self._next_query(request, missing, good),
            note=note,
            missing=", ".join(missing),
            useful=useful,
            irrelevant=irrelevant,
        )

    def _page(self, finder: SnippetFinder, page: int, question: str, rare: dict[str, float]) -> PageEvidence:
        snippets = finder.snippets(page, question, self._params.snippets)
        total = sum(rare.values())
        covered = set(snippets[0].covered) if snippets else set()
        share = sum(idf for term, idf in rare.items() if term in covered) / total if total else 0.0
        return PageEvidence(page, snippets, share)

    @staticmethod
    def _missing(rare: dict[str, float], evidence: Sequence[PageEvidence], useful: Sequence[int]) -> list[str]:
        """Rare terms of the question that no useful page's snippets cover, rarest first."""
        covered = {t for e in evidence if e.page in useful for snippet in e.snippets for t in snippet.covered}
        return sorted((term for term in rare if term not in covered), key=lambda term: -rare[term])

    def _next_query(self, request: ReadRequest, missing: Sequence[str], useful: Sequence[int]) -> str:
        sections = request.schema.sections if request.schema is not None else []
        labels = [s.label for s in sections if any(s.first_page <= page <= s.last_page for page in useful)]
        extra = [*missing, *dict.fromkeys(labels)][: self._params.query_terms]
        return " ".join([request.question.question, *extra])

    @staticmethod
    def _note(evidence: Sequence[PageEvidence], useful: Sequence[int]) -> str:
        best = [e for e in evidence if e.page in useful and e.snippets]
        if not best:
            return "No page covers the question's rare terms."
        return "; ".join(f"page {e.page} covers {e.coverage:.0%} of the rare terms" for e in best)

    @staticmethod
    def _citations(evidence: Sequence[PageEvidence]) -> list[Citation]:
        """Pages in evidence order with their snippets; a page without a snippet is cited as a whole."""
        cited = []
        for item in evidence:
            if not item.snippets:
                cited.append(Citation(page=item.page))
            cited.extend(Citation(page=item.page, bbox=s.bbox, quote=s.text) for s in item.snippets)
        return cited


def _number(question: str, text: str, covered: Sequence[str], language: str) -> str | None:
    """The number of `text` next to the words the snippet was found by, leaving out those the question names."""
    asked = set(_NUMBER.findall(question))
    words = [m.start() for w, term in analyzer(language).words(text) if term in covered for m in _word(w, text)]
    found = [m for m in _NUMBER.finditer(text) if m.group() not in asked]
    if not _ASKS_YEAR.search(question):
        found = [m for m in found if not _YEAR.fullmatch(m.group())] or found
    if not found:
        return None
    return min(found, key=lambda m: min((abs(m.start() - at) for at in words), default=m.start())).group()


def _word(word: str, text: str) -> Iterable[re.Match[str]]:
    return re.finditer(re.escape(word), text, re.IGNORECASE)


def extract(question: str, snippet: Snippet, language: str) -> str:
    """A short span of a snippet: a number where the question asks for one, else the snippet, shortened."""
    if _ASKS_NUMBER.search(question):
        number = _number(question, snippet.text, snippet.covered, language)
        if number is not None:
            return number
    flat = " ".join(snippet.text.split())
    return flat if len(flat) <= MAX_EXTRACT else flat[: MAX_EXTRACT - 1].rsplit(" ", 1)[0] + "…"
