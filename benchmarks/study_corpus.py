"""What the studies of retrieval control share: documents, questions with gold pages, runs of the real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmemo.artifacts import artifact_name, read_json, read_pages
from docmemo.config import DatasetParams, EmbedParams, Params, RetrievalParams, SchemaParams
from docmemo.datasets import mmlongbench
from docmemo.memory.schema import build_schema
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.qa.evidence import EmbeddedReranker
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import Reader
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.retrieval.tokenize import document_language
from docmemo.types import AnswerRecord, Question, SchemaMemory


@dataclass
class RememberingRetriever:
    """A retriever that scores a query once."""

    inner: PageRetriever
    _known: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def score(self, query: str, pages: Sequence[int]) -> NDArray[np.float64]:
        """As PageRetriever.score; the pages are always the whole document here."""
        if query not in self._known:
            self._known[query] = self.inner.score(query, pages)
        return self._known[query]


@dataclass(frozen=True)
class StudyCorpus:
    """Questions that have gold pages, and the views of their documents."""

    questions: list[Question]
    views: dict[str, DocumentView]

    @property
    def gold(self) -> dict[str, frozenset[int]]:
        """Gold pages of each question."""
        return {q.question_id: frozenset(q.evidence_pages) for q in self.questions}


def open_view(doc_id: str, archive: Path, schema: Path | None) -> DocumentView:
    """A view made from a page archive alone; the schema from its artifact where there is one."""
    page_set = read_pages(archive)
    texts, embed = [page.text for page in page_set.pages], EmbedParams()
    index = LexicalIndex.build(
        texts,
        document_language(texts, page_set.language),
        window_tokens=embed.window_tokens,
        window_stride=embed.window_stride,
    )
    if schema is not None and schema.exists():
        memory = read_json(schema, SchemaMemory)
    else:
        memory = build_schema(page_set, None, None, SchemaParams())
    view = DocumentView(doc_id, Artifacts(archive, archive, archive, archive), RetrievalParams())
    view.__dict__.update(
        page_set=page_set,
        index=index,
        schema=memory,
        retriever=RememberingRetriever(PageRetriever(page_set, index, RetrievalParams())),
    )
    return view


def load_corpus(pages: Path, dataset: Path, schemas: Path | None) -> StudyCorpus:
    """The questions of an MMLongBench-Doc folder that have gold pages and whose document has a page archive."""
    views: dict[str, DocumentView] = {}
    questions = []
    for question in mmlongbench.read(dataset, DatasetParams(format="mmlongbench")).questions:
        archive = pages / artifact_name(question.doc_id, ".pages.zip")
        if not question.evidence_pages or not archive.exists():
            continue
        if question.doc_id not in views:
            schema = schemas / artifact_name(question.doc_id, ".json") if schemas else None
            views[question.doc_id] = open_view(question.doc_id, archive, schema)
        questions.append(question)
    return StudyCorpus(questions, views)


def run_loop(corpus: StudyCorpus, params: Params, reader: Reader, seed: int) -> dict[str, AnswerRecord]:
    """The real loop over all questions of a corpus, by question id."""
    loop = Loop(EmbeddedReranker(params), reader, Policy(params.loop, params.belief, seed))

    async def every() -> dict[str, AnswerRecord]:
        records = {}
        for question in corpus.questions:
            record, _ = await loop.answer(question.without_gold(), corpus.views[question.doc_id])
            records[question.question_id] = record
        return records

    return asyncio.run(every())


def study_params(overlay: Mapping[str, Mapping[str, Any]], pages: int) -> Params:
    """The defaults with `pages` pages a round, without crops, and with `overlay` over that."""
    loop = {"evidence": pages, "crops": 0, **overlay.get("loop", {})}
    return Params.model_validate({**overlay, "loop": loop})


def slices(corpus: StudyCorpus) -> dict[str, NDArray[np.bool_]]:
    """Masks over the questions: text documents, single- and multi-page, financial reports; scanned documents; all."""
    scanned = np.array([corpus.views[q.doc_id].page_set.is_scanned for q in corpus.questions])
    several = np.array([len(set(q.evidence_pages)) > 1 for q in corpus.questions])
    financial = np.array([q.doc_type == "Financial report" for q in corpus.questions])
    return {
        "text": ~scanned,
        "text, single-page": ~scanned & ~several,
        "text, multi-page": ~scanned & several,
        "text, financial reports": ~scanned & financial,
        "scanned": scanned,
        "all": np.ones(len(scanned), dtype=bool),
    }
