"""Everything the loop reads of a document, loaded when first asked for and kept for a few documents only."""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docmemo.artifacts import read_json, read_layout, read_pages
from docmemo.config import RetrievalParams
from docmemo.qa.images import ImageCache, Picture
from docmemo.retrieval.late_interaction import PageVectors, QueryEncoder, VisualScorer
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.types import LayoutSet, Page, PageCrop, PageSet, Question, SchemaMemory, SummarySet


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
    query_encoder: QueryEncoder | None = None
    """Embeds queries where page images are scored; None where words alone decide."""

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
        return PageRetriever(self.page_set, self.index, self.retrieval, self.visual)

    def page_vectors(self) -> PageVectors:
        """The vectors of the page images, read anew."""
        return PageVectors.load(self.artifacts.embedding)

    @cached_property
    def visual(self) -> VisualScorer | None:
        """Scores page images; None where they are not embedded."""
        return VisualScorer(self.page_vectors, self.query_encoder) if self.query_encoder is not None else None

    async def prepare(self, queries: Sequence[str]) -> None:
        """Before pages are scored: let a model embed the queries, in a thread, since that can take seconds."""
        if self.query_encoder is not None:
            await asyncio.to_thread(self.retriever.prepare, queries)

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

    @cached_property
    def images(self) -> ImageCache:
        """Pictures of this document as they are sent to models, each encoded once."""
        return ImageCache()

    def page_picture(self, page: int) -> Picture | None:
        """The picture of a page; None for a page that could not be rendered."""
        record = self.by_number[page]
        if not record.image:
            return None
        return Picture(self.images, self.artifacts.pages, record.image, record.image_width, record.image_height)

    def crop_picture(self, crop: PageCrop) -> Picture | None:
        """The picture of a table or figure; None where the layout has none of it."""
        for region in self.layout.regions:
            if region.crop and (region.page, region.kind, region.bbox) == (crop.page, crop.kind, crop.bbox):
                assert self.artifacts.layout is not None, "regions come from a layout archive"
                width, height = self.images.size(self.artifacts.layout, region.crop)
                return Picture(self.images, self.artifacts.layout, region.crop, width, height)
        return None

    def source(self, page: int) -> str:
        """The file a page is of, where the view spans several; '' for a single document."""
        del page
        return ""

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
        self._in_use: weakref.WeakValueDictionary[str, DocumentView] = weakref.WeakValueDictionary()
        """Also those that had to make room while a question still reads them: they are not opened a second time."""

    def view(self, doc_id: str) -> DocumentView:
        """The view of a document."""
        view = self._views.pop(doc_id, None) or self._in_use.get(doc_id) or self._open(doc_id)
        self._views[doc_id] = self._in_use[doc_id] = view
        while len(self._views) > self._keep:
            self._views.popitem(last=False)
        return view


def may_read(document_labels: Sequence[str], asker_labels: Sequence[str]) -> bool:
    """A document without labels is open to all; else the asker needs one of its labels."""
    return not document_labels or bool(set(document_labels) & set(asker_labels))
