"""Everything the loop reads of a document, loaded when first asked for and kept for a few documents only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docmemo.artifacts import read_json, read_layout, read_pages
from docmemo.config import RetrievalParams
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.types import LayoutSet, Page, PageSet, Question, SchemaMemory, SummarySet


@dataclass(frozen=True)
class Artifacts:
    """Where a document's artifacts are."""

    pages: Path
    embedding: Path
    summaries: Path
    schema: Path
    layout: Path | None = None


@dataclass
class DocumentView:
    """One document as the loop sees it. Loading happens on first use of each part."""

    doc_id: str
    artifacts: Artifacts
    retrieval: RetrievalParams

    @cached_property
    def page_set(self) -> PageSet:
        """All pages with their text."""
        return read_pages(self.artifacts.pages)

    @cached_property
    def by_number(self) -> Mapping[int, Page]:
        """Pages by their 1-based index."""
        return {page.page: page for page in self.page_set.pages}

    @cached_property
    def index(self) -> LexicalIndex:
        """Lexical statistics."""
        return LexicalIndex.load(self.artifacts.embedding)

    @cached_property
    def retriever(self) -> PageRetriever:
        """Scores pages against a query."""
        return PageRetriever(self.page_set, self.index, self.retrieval)

    @cached_property
    def summaries(self) -> Mapping[int, str]:
        """Page summaries by page."""
        return {s.page: s.summary for s in read_json(self.artifacts.summaries, SummarySet).summaries}

    @cached_property
    def schema(self) -> SchemaMemory:
        """Schema memory."""
        return read_json(self.artifacts.schema, SchemaMemory)

    @cached_property
    def layout(self) -> LayoutSet:
        """Regions; none when there is no layout artifact."""
        if self.artifacts.layout is None:
            return LayoutSet(doc_id=self.doc_id)
        return read_layout(self.artifacts.layout)

    def scope(self, question: Question) -> list[int]:
        """Pages the question may use, ascending: the whole document or the question's window."""
        first, last = question.page_window or (1, max(self.by_number, default=0))
        return [number for number in sorted(self.by_number) if first <= number <= last]

    def documents_of(self, pages: Sequence[int]) -> list[int] | None:
        """Which document each page is of, where the view spans several; None for a single document."""
        del pages
        return None

    def citation_label(self, page: int) -> str:
        """How the page calls itself, where that differs from its index: the printed number, else the PDF label."""
        record = self.by_number[page]
        name = record.printed or record.label
        return "" if name == str(page) else name


class Corpus:
    """Views of documents, the most recently used few of them in memory."""

    def __init__(self, opener: Callable[[str], DocumentView], keep: int = 4) -> None:
        self._open = opener
        self._keep = keep
        self._views: OrderedDict[str, DocumentView] = OrderedDict()

    def view(self, doc_id: str) -> DocumentView:
        """The view of a document."""
        view = self._views.pop(doc_id, None) or self._open(doc_id)
        self._views[doc_id] = view
        while len(self._views) > self._keep:
            self._views.popitem(last=False)
        return view


def may_read(document_labels: Sequence[str], asker_labels: Sequence[str]) -> bool:
    """A document without labels is open to all; else the asker needs one of its labels."""
    return not document_labels or bool(set(document_labels) & set(asker_labels))
