"""Everything needed to answer questions with one configuration: parts, documents, and the key of each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from docmemo.config import Params
from docmemo.errors import AccessDeniedError, DocumentError
from docmemo.fingerprint import code_digest, digest
from docmemo.models.registry import is_plugin, resolve
from docmemo.qa.corpus import Corpus, may_read
from docmemo.qa.journal import Journal
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import Reader, Reranker
from docmemo.qa.replay import JournaledReader, JournaledReranker
from docmemo.qa.trace import Trace
from docmemo.types import AnswerRecord, Document, Failure, Question
from docmemo.usage import Usage

WORKING_MODULES = (
    "docmemo.artifacts",
    "docmemo.documents.captions",
    "docmemo.documents.language",
    "docmemo.documents.passages",
    "docmemo.memory.belief",
    "docmemo.memory.episodic",
    "docmemo.qa.ablations",
    "docmemo.qa.controller",
    "docmemo.qa.corpus",
    "docmemo.qa.crops",
    "docmemo.qa.evidence",
    "docmemo.qa.loop",
    "docmemo.qa.protocols",
    "docmemo.retrieval.candidates",
    "docmemo.retrieval.fusion",
    "docmemo.retrieval.instructions",
    "docmemo.retrieval.lexical",
    "docmemo.retrieval.references",
    "docmemo.retrieval.retriever",
    "docmemo.retrieval.snippets",
    "docmemo.retrieval.stopwords",
    "docmemo.retrieval.tokenize",
    "docmemo.qa.trace",
    "docmemo.types",
)
"""Modules whose code decides an answer."""


@dataclass
class Answering:
    """One configuration of the question-answering loop.

    Args:
        params: all parameters.
        models: lock entries of the roles embedder (queries are analysed with it), reranker and reasoner.
        documents: the manifest by doc_id.
        failed: doc_id to the reason why an offline stage has no artifact of it.
        content: doc_id to what its artifacts contain (digests by stage), part of every key.
        corpus: opens documents.
    """

    params: Params
    models: Mapping[str, Any]
    documents: Mapping[str, Document]
    failed: Mapping[str, str]
    content: Mapping[str, Mapping[str, str]]
    corpus: Corpus

    def __post_init__(self) -> None:
        params = self.params
        self._reader = cast(Reader, resolve("reader", params.answer.reader)(params))
        self._reranker = cast(Reranker, resolve("reranker", params.answer.reranker)(params))
        self._policy = Policy(params.loop, params.belief, params.answer.seed)
        self.code = code_digest(WORKING_MODULES)
        """Digest of the code that decides an answer."""
        self._has_plugin = is_plugin(params.answer.reader) or is_plugin(params.answer.reranker)
        self._configuration = digest(
            {
                "retrieval": params.retrieval.model_dump(mode="json"),
                "belief": params.belief.model_dump(mode="json"),
                "loop": params.loop.model_dump(mode="json"),
                "answer": params.answer.model_dump(mode="json"),
                "models": dict(self.models),
                "all": params.model_dump(mode="json", exclude={"dataset", "report"}) if self._has_plugin else None,
                "code": self.code,
            }
        )

    def key(self, question: Question) -> str:
        """What an answer is filed under: the question without its gold, the document's content, the configuration.

        Left out on purpose: gold answers and pages (they must not decide anything), concurrency, endpoints, paths.
        """
        document = self.documents[question.doc_id]
        return digest(
            {
                "question": question.without_gold().model_dump(mode="json"),
                "document": document.sha256,
                "document_labels": document.access_labels,
                "failed": self._document_failure(document),
                "content": dict(self.content.get(question.doc_id, {})),
                "configuration": self._configuration,
            }
        )

    def _document_failure(self, document: Document) -> str:
        return document.reason if document.status != "ok" else self.failed.get(document.doc_id, "")

    async def answer(
        self, question: Question, journal: Journal | None = None, key: str = ""
    ) -> tuple[AnswerRecord, Trace]:
        """Answer one question; with a journal, replies of an interrupted attempt are used again.

        Raises:
            DocMemoError: when the question cannot be answered; says whether a retry can help.
        """
        document = self.documents[question.doc_id]
        if not may_read(document.access_labels, question.access_labels):
            raise AccessDeniedError(f"The asker of {question.question_id} may not read {question.doc_id}.")
        if reason := self._document_failure(document):
            raise DocumentError(f"{question.doc_id}: {reason}")
        reader, reranker = self._reader, self._reranker
        if journal is not None and getattr(reader, "costly", True):
            reader = JournaledReader(reader, journal, key)
        if journal is not None and getattr(reranker, "costly", True):
            reranker = JournaledReranker(reranker, journal, key)
        loop = Loop(reranker, reader, self._policy)
        return await loop.answer(question.without_gold(), self.corpus.view(question.doc_id))


def failed_record(question: Question, failure: Failure, usage: Usage) -> AnswerRecord:
    """A question that has no answer: never an answer, never "not answerable", never absent."""
    return AnswerRecord(
        question_id=question.question_id,
        doc_id=question.doc_id,
        question=question.question,
        outcome="failed",
        usage=usage,
        error=failure,
    )
