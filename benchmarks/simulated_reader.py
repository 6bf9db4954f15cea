"""A simulated reader for studying retrieval control. It knows the gold pages, so nothing it gives is a result.

It calls a gold page it reads useful with probability `right_gold` (else irrelevant) and another page irrelevant with
probability `right_other` (else useful). Its next query is the question with the strongest terms of the pages it
called useful; with `hint` it is sometimes the question with terms of a missing page instead, as a reader's would be
that knows what it looks for. It answers once it has read all gold pages and called each useful at least once, or
when it must.

A verdict depends on (seed, question, page, round) alone, so that two policies meet the same errors on the same page
in the same round and can be compared in pairs; with `stubborn` the round is left out, and an error once made stays.

Every figure from it is titled "simulated reader" and kept out of metrics/. A run cannot be configured to use it: it
needs the gold, which the loop does not hand out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from docmemo.qa.corpus import DocumentView
from docmemo.qa.protocols import ReadReply, ReadRequest
from docmemo.retrieval.lexical import LexicalIndex


def chance(*key: object) -> float:
    """A number in [0, 1) that depends on `key` alone."""
    digest = hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


@dataclass
class SimulatedReader:
    """A reader that is right as often as it is told.

    Attributes:
        gold: gold pages of each question.
        right_gold: p, how often a gold page is called useful.
        right_other: q, how often another page is called irrelevant.
        seed: of its errors.
        terms: terms of useful pages put into the next query.
        hint: how often the next query has the two strongest terms of a gold page not read yet.
        stubborn: whether a page gets the same verdict whenever it is read.
    """

    gold: Mapping[str, frozenset[int]]
    right_gold: float = 0.9
    right_other: float = 0.8
    seed: int = 0
    terms: int = 5
    hint: float = 0.0
    stubborn: bool = False
    costly = False
    _useful: dict[int, None] = field(default_factory=dict, repr=False)
    _read: set[int] = field(default_factory=set, repr=False)

    async def read(self, request: ReadRequest) -> ReadReply:
        """The verdict on the pages, and an answer or the next query."""
        if request.round == 1:
            self._useful, self._read = {}, set()
        gold = self.gold[request.question.question_id]
        useful = [page for page in request.evidence if self.calls_useful(request, page, page in gold)]
        irrelevant = [page for page in request.evidence if page not in useful]
        self._useful |= dict.fromkeys(useful)
        self._read |= set(request.evidence)
        query = self._query(request)
        if request.last_round or gold <= self._useful.keys():
            return ReadReply(outcome="answer", answer="?", query=query, useful=useful, irrelevant=irrelevant)
        return ReadReply(outcome="query_update", query=query, useful=useful, irrelevant=irrelevant)

    def calls_useful(self, request: ReadRequest, page: int, is_gold: bool) -> bool:
        """The verdict on one page."""
        key = (self.seed, request.question.question_id, page, 0 if self.stubborn else request.round)
        return chance(*key) < (self.right_gold if is_gold else 1.0 - self.right_other)

    def _query(self, request: ReadRequest) -> str:
        key = (self.seed, request.question.question_id, request.round)
        inside = request.view.by_number
        missing = sorted(page for page in self.gold[key[1]] - self._read if page in inside)
        if missing and self.hint and chance("hint", *key) < self.hint:
            wanted = missing[int(chance("which", *key) * len(missing))]
            extra = strongest_terms(request.view, (wanted,), 2)
        else:
            extra = strongest_terms(request.view, tuple(self._useful), self.terms)
        return " ".join([request.question.question, *extra])


def strongest_terms(view: DocumentView, pages: tuple[int, ...], limit: int) -> list[str]:
    """The terms with the highest sum of tf / (tf + 1) * idf over `pages`; ties by term."""
    if not pages or not limit:
        return []
    index: LexicalIndex = view.index
    row = {page.page: i for i, page in enumerate(view.page_set.pages)}
    weights = np.zeros(len(index.vocabulary))
    for page in pages:
        ids, counts = np.unique(index.page_tokens(row[page]), return_counts=True)
        weights[ids] += counts / (counts + 1.0) * index.idf[ids]
    best = np.lexsort((np.arange(len(weights)), -weights))[:limit]
    return [index.vocabulary[i] for i in best if weights[i] > 0]
