"""Everything needed to answer questions with one configuration: parts, documents, and the key of each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docmemo.config import Params
from docmemo.errors import AccessDeniedError, DocumentError
from docmemo.fingerprint import code_digest, digest
from docmemo.models.registry import is_plugin
from docmemo.qa.corpus import Corpus, may_read
from docmemo.qa.journal import Journal
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.parts import limited, make_reader, make_reranker
from docmemo.qa.replay import JournaledReader, JournaledReranker
from docmemo.qa.trace import Trace
from docmemo.settings import Settings
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
    "docmemo.retrieval.late_interaction",
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
VISUAL_MODULES = ("docmemo.models.colqwen", "docmemo.models.colqwen_queries")
"""The same, where queries are embedded to score page images."""
SERVED_MODULES = (
    "docmemo.models.budget",
    "docmemo.models.images",
    "docmemo.models.rendering",
    "docmemo.models.structured",
    "docmemo.models.tokens",
    "docmemo.prompts",
    "docmemo.qa.citations",
    "docmemo.qa.fitting",
    "docmemo.qa.images",
    "docmemo.qa.material",
    "docmemo.qa.reasoner",
    "docmemo.qa.rerank",
)
"""The same, where a model behind a server reads or reranks. Sending and retrying decide nothing."""


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
        settings: where servers are, for parts that need one; read from the environment when None.
    """

    params: Params
    models: Mapping[str, Any]
    documents: Mapping[str, Document]
    failed: Mapping[str, str]
    content: Mapping[str, Mapping[str, str]]
    corpus: Corpus
    settings: Settings | None = None

    def __post_init__(self) -> None:
        params = self.params
        self._reader = make_reader(params, self.models, self.settings)
        self._reranker = make_reranker(params, self.models, self.settings)
        self._policy = Policy(params.loop, params.belief, params.answer.seed)
        served = "vlm" in (params.answer.reader, params.answer.reranker)
        visual = params.embed.backend == "colqwen"
        self.code = code_digest(
            (*WORKING_MODULES, *(SERVED_MODULES if served else ()), *(VISUAL_MODULES if visual else ()))
        )
        """Digest of the code that decides an answer."""
        self._has_plugin = is_plugin(params.answer.reader) or is_plugin(params.answer.reranker)
        self._configuration = digest(
            {
                "retrieval": params.retrieval.model_dump(mode="json"),
                "belief": params.belief.model_dump(mode="json"),
                "loop": params.loop.model_dump(mode="json"),
                "answer": params.answer.model_dump(mode="json"),
                "models": dict(self.models),
                "prompts": self._prompts(),
                "all": params.model_dump(mode="json", exclude={"dataset", "report"}) if self._has_plugin else None,
                "code": self.code,
            }
        )

    def _prompts(self) -> dict[str, str]:
        """Digests of the prompts that reader and reranker send."""
        if "vlm" not in (self.params.answer.reader, self.params.answer.reranker):
            return {}
        from docmemo.prompts import digests_for

        return {name: value for name, value in digests_for(self.params).items() if name in ("rerank", "reason")}

    async def prepare(self) -> None:
        """Before a run asks anything: let reader and reranker check what they need.

        Raises:
            DocMemoError: if one of them cannot work; no question would fare better.
        """
        for part in (self._reader, self._reranker):
            prepare = getattr(part, "prepare", None)
            if prepare is not None:
                await prepare()

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
        with limited(self.params.answer):
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
