"""The embed step: a document's pages to the representations that retrieval scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_pages
from docmemo.config import EmbedParams
from docmemo.pipeline.digests import texts_digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.tokenize import document_language

PAGES_A_SECOND = 10
"""Slower than this on average and the time limit ends the work."""


def embed_document(archive: Path, target: Path, params: EmbedParams, model: str) -> None:
    """Write the lexical index of a page archive to `target`."""
    page_set = read_pages(archive)
    texts = [page.text for page in page_set.pages]
    index = LexicalIndex.build(
        texts,
        document_language(texts, page_set.language),
        window_tokens=params.window_tokens,
        window_stride=params.window_stride,
        model=model,
    )
    index.save(target)


@dataclass(frozen=True)
class EmbedStep:
    """Lexical page representations. Keyed by the pages' texts: a change of images alone computes nothing."""

    params: EmbedParams
    models: Mapping[str, Any]
    name: str = "embed"
    suffix: str = ".safetensors"
    needs: tuple[str, ...] = ("render",)
    modules: tuple[str, ...] = field(
        default=(
            "docmemo.documents.language",
            "docmemo.pipeline.embed",
            "docmemo.retrieval.lexical",
            "docmemo.retrieval.stopwords",
            "docmemo.retrieval.tokenize",
        )
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """Texts, language, parameters and encoder."""
        page_set = read_pages(job.inputs["render"])
        return {
            "texts": texts_digest(page_set),
            "language": page_set.language,
            "params": self.params.model_dump(mode="json"),
            "embedder": self.models["embedder"],
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Write the index to `target`, in a worker.

        Raises:
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
        """
        limit = pool.page_timeout + job.document.n_pages / PAGES_A_SECOND
        model = str(self.models["embedder"].get("id", ""))
        pool.call(embed_document, job.inputs["render"], target, self.params, model, timeout=limit)
        return StepResult()
