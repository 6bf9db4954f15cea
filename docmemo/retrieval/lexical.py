"""Lexical index of one or several documents: BM25 over pages, over windows inside pages, and over term bigrams.

The file keeps what parameters of retrieval cannot change: the vocabulary and the term ids in reading order. The three
BM25 matrices (bm25s, eager sparse scoring, Lù 2024, arXiv 2407.03618) are built from them at first use, so that
`retrieval.k1` and `retrieval.b` can change without embedding anything anew.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from docmemo.artifacts import write_atomic
from docmemo.errors import ArtifactError
from docmemo.fingerprint import canonical_json
from docmemo.retrieval.tokenize import analyzer

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets DEBUG on import

VERSION = "1"
"""Of the file's layout."""

_ARRAYS = ("vocabulary", "vocabulary_offsets", "tokens", "page_offsets", "window")
"""Of the index itself; a file may hold page vectors beside them."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LexicalScores:
    """Raw BM25 scores of a query, each of shape (n_pages,)."""

    page: Floats
    window: Floats
    bigram: Floats


class Bm25Field:
    """BM25 (Lucene's variant, idf = ln(1 + (N - df + 0.5) / (df + 0.5))) over rows of term ids.

    Args:
        rows: term ids of each row; a row may be empty.
        n_terms: size of the vocabulary.
    """

    def __init__(self, rows: Sequence[NDArray[np.int32]], n_terms: int, k1: float, b: float) -> None:
        self.n_rows = len(rows)
        self._bm25: Any = None
        if n_terms and any(len(row) for row in rows):
            self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
            vocabulary = {str(i): i for i in range(n_terms)}
            self._bm25.index(
                ([row.tolist() for row in rows], vocabulary), create_empty_token=False, show_progress=False
            )

    def scores(self, term_ids: Sequence[int]) -> Floats:
        """Score of each row, shape (n_rows,); an id that occurs twice counts twice."""
        if self._bm25 is None or not len(term_ids):
            return np.zeros(self.n_rows)
        return np.asarray(self._bm25.get_scores_from_ids(list(term_ids)), dtype=np.float64)


@dataclass(eq=False)
class LexicalIndex:
    """Terms of a document's pages in reading order.

    Attributes:
        language: ISO 639-1 code the pages were analysed in.
        vocabulary: sorted terms.
        tokens: ids into the vocabulary, shape (n_tokens,), page after page.
        offsets: where each page starts in `tokens`, shape (n_pages + 1,).
        window_tokens: length of a window in terms.
        window_stride: step between windows in terms.
        model: identity of the encoder, as in models.lock.json.
    """

    language: str
    vocabulary: list[str]
    tokens: NDArray[np.int32]
    offsets: Ints
    window_tokens: int = 120
    window_stride: int = 60
    model: str = ""
    _fields: dict[tuple[str, float, float], Bm25Field] = field(default_factory=dict, repr=False)

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        language: str = "",
        *,
        window_tokens: int = 120,
        window_stride: int = 60,
        model: str = "",
    ) -> LexicalIndex:
        """Index page texts (`Page.text`), one a page; a page without text stays as an empty row."""
        analyse = analyzer(language)
        pages = [analyse.terms(text) for text in texts]
        return cls._from_terms(pages, analyse.language, window_tokens, window_stride, model)

    @classmethod
    def _from_terms(
        cls, pages: Sequence[Sequence[str]], language: str, window_tokens: int, window_stride: int, model: str
    ) -> LexicalIndex:
        vocabulary = sorted({term for page in pages for term in page})
        ids = {term: i for i, term in enumerate(vocabulary)}
        tokens = np.array([ids[term] for page in pages for term in page], dtype=np.int32)
        offsets = np.cumsum([0, *(len(page) for page in pages)], dtype=np.int64)
        return cls(language, vocabulary, tokens, offsets, window_tokens, window_stride, model)

    @classmethod
    def merge(cls, indexes: Sequence[LexicalIndex]) -> LexicalIndex:
        """One index over several documents, pages in the order given; statistics (idf, lengths) are joint.

        The language is that of the most pages: a query is put to all documents alike.
        """
        if len(indexes) == 1:
            return indexes[0]
        vocabulary = sorted({term for index in indexes for term in index.vocabulary})
        ids = {term: i for i, term in enumerate(vocabulary)}
        tokens, lengths, votes = [], [np.zeros(1, np.int64)], dict[str, int]()
        for index in indexes:
            renumber = np.array([ids[term] for term in index.vocabulary], dtype=np.int32)
            tokens.append(renumber[index.tokens] if len(index.tokens) else index.tokens)
            lengths.append(np.diff(index.offsets))
            votes[index.language] = votes.get(index.language, 0) + index.n_pages
        first = indexes[0] if indexes else cls("", [], np.zeros(0, np.int32), np.zeros(1, np.int64))
        return cls(
            max(votes, key=lambda code: votes[code], default=""),
            vocabulary,
            np.concatenate([first.tokens[:0], *tokens]),
            np.cumsum(np.concatenate(lengths)),
            first.window_tokens,
            first.window_stride,
            first.model,
        )

    @property
    def n_pages(self) -> int:
        """Pages in the index."""
        return len(self.offsets) - 1

    @cached_property
    def term_ids(self) -> dict[str, int]:
        """Term to its id."""
        return {term: i for i, term in enumerate(self.vocabulary)}

    def page_tokens(self, row: int) -> NDArray[np.int32]:
        """Term ids of the page in `row` (0-based)."""
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    @cached_property
    def idf(self) -> Floats:
        """ln(1 + (N - df + 0.5) / (df + 0.5)) of each term over pages, shape (n_terms,)."""
        pages = np.repeat(np.arange(self.n_pages), np.diff(self.offsets))
        pairs = np.unique(self.tokens.astype(np.int64) * max(1, self.n_pages) + pages)
        df = np.bincount(pairs // max(1, self.n_pages), minlength=len(self.vocabulary))
        return np.asarray(np.log(1.0 + (self.n_pages - df + 0.5) / (df + 0.5)), dtype=np.float64)

    def idf_of(self, term: str) -> float:
        """idf of a term; 0 for one that no page holds."""
        row = self.term_ids.get(term)
        return 0.0 if row is None else float(self.idf[row])

    @cached_property
    def window_bounds(self) -> tuple[Ints, Ints]:
        """(start and end of each window in `tokens`, shape (n_windows, 2); first window of each page, (n_pages,)).

        Windows start every `window_stride` terms; the last one ends at the page's end. Each page has at least one.
        """
        bounds: list[tuple[int, int]] = []
        first = np.zeros(self.n_pages, dtype=np.int64)
        for row in range(self.n_pages):
            first[row] = len(bounds)
            start, end = int(self.offsets[row]), int(self.offsets[row + 1])
            bounds.append((start, min(end, start + self.window_tokens)))
            while bounds[-1][1] < end:
                start += self.window_stride
                bounds.append((start, min(end, start + self.window_tokens)))
        return np.array(bounds, dtype=np.int64).reshape(-1, 2), first

    @cached_property
    def _bigrams(self) -> tuple[Ints, NDArray[np.int32], Ints]:
        """(sorted keys of the bigrams, id of the bigram at each position, offsets of the pages).

        A key is first id * vocabulary size + second id. Bigrams never span two pages.
        """
        size = max(1, len(self.vocabulary))
        keys = self.tokens[:-1].astype(np.int64) * size + self.tokens[1:]
        inside = np.ones(len(keys), dtype=bool)
        borders = self.offsets[1:-1]
        inside[borders[(borders > 0) & (borders < len(self.tokens))] - 1] = False
        known, ids = np.unique(keys[inside], return_inverse=True)
        lengths = np.maximum(np.diff(self.offsets) - 1, 0)
        return known, ids.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)])

    def _field(self, name: str, k1: float, b: float) -> Bm25Field:
        """The BM25 matrix `name` (page, window or bigram), built at first use."""
        made = self._fields.get((name, k1, b))
        if made is not None:
            return made
        n_terms = len(self.vocabulary)
        if name == "page":
            rows = [self.page_tokens(row) for row in range(self.n_pages)]
        elif name == "window":
            rows = [self.tokens[start:end] for start, end in self.window_bounds[0]]
        else:
            known, ids, offsets = self._bigrams
            n_terms = len(known)
            rows = [ids[offsets[row] : offsets[row + 1]] for row in range(self.n_pages)]
        made = Bm25Field(rows, n_terms, k1, b)
        self._fields[name, k1, b] = made
        return made

    def _bigram_ids(self, terms: Sequence[str]) -> list[int]:
        known = self._bigrams[0]
        ids = [self.term_ids.get(term, -1) for term in terms]
        size = max(1, len(self.vocabulary))
        keys = np.array([a * size + c for a, c in pairwise(ids) if a >= 0 and c >= 0])
        if not len(keys) or not len(known):
            return []
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return [int(i) for i, key in zip(at, keys, strict=True) if known[i] == key]

    def scores(self, terms: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> LexicalScores:
        """Raw scores of every page for analysed query terms (`tokenize.query_terms`).

        `window` is the best window's score of each page. All zeros where the pages hold none of the terms.
        """
        ids = [self.term_ids[term] for term in terms if term in self.term_ids]
        windows = self._field("window", k1, b).scores(ids)
        best = np.maximum.reduceat(windows, self.window_bounds[1]) if self.n_pages else windows
        return LexicalScores(
            page=self._field("page", k1, b).scores(ids),
            window=best,
            bigram=self._field("bigram", k1, b).scores(self._bigram_ids(terms)),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file keeps, beside the header."""
        blob = [term.encode() for term in self.vocabulary]
        return {
            "vocabulary": np.frombuffer(b"".join(blob), dtype=np.uint8),
            "vocabulary_offsets": np.cumsum([0, *map(len, blob)], dtype=np.int64),
            "tokens": self.tokens.astype(np.int32),
            "page_offsets": self.offsets.astype(np.int64),
            "window": np.array([self.window_tokens, self.window_stride], dtype=np.int64),
        }

    def to_bytes(
        self, more: Mapping[str, NDArray[Any]] | None = None, about: Mapping[str, Any] | None = None
    ) -> bytes:
        """The index as a safetensors file, perhaps with page vectors beside it; equal contents give equal bytes.

        Args:
            more: further arrays of the file.
            about: what the header says of them.
        """
        header = {"kind": "lexical", "version": VERSION, "language": self.language, "model": self.model}
        # one entry only: safetensors writes several in an order that changes from run to run
        return save(
            {**self.arrays(), **(more or {})}, metadata={"docmemo": canonical_json({**header, **(about or {})})}
        )

    def save(self, path: Path) -> None:
        """Write the file in one go."""
        write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> LexicalIndex:
        """Read a file that `save` wrote.

        Raises:
            ArtifactError: if it is missing, damaged, or of another kind or version.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = json.loads((file.metadata() or {}).get("docmemo", "{}"))
                if (metadata.get("kind"), metadata.get("version")) != ("lexical", VERSION):
                    raise ArtifactError(
                        f"{path} is not a lexical index of version {VERSION}.", remedy="Run `dvc repro`."
                    )
                arrays = {name: file.get_tensor(name) for name in _ARRAYS if name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise ArtifactError(f"{path} cannot be read: {error}.", remedy="Run `dvc repro`.") from error
        try:
            blob = arrays["vocabulary"].tobytes()
            ends = arrays["vocabulary_offsets"].tolist()
            window, stride = arrays["window"].tolist()
            return cls(
                metadata.get("language", ""),
                [blob[a:z].decode() for a, z in pairwise(ends)],
                arrays["tokens"],
                arrays["page_offsets"],
                window,
                stride,
                metadata.get("model", ""),
            )
        except (KeyError, ValueError) as error:
            raise ArtifactError(f"{path} is incomplete: {error}.", remedy="Run `dvc repro`.") from error
