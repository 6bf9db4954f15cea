"""The summarize step, extractive: a summary and keywords for each page.

By a model: docmemo/pipeline/summarize_vlm.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_pages, write_json
from docmemo.config import SummarizeParams
from docmemo.pipeline.digests import lines_digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.retrieval.summary import summarize_pages

PAGES_A_SECOND = 10
"""Slower than this on average and the time limit ends the work."""


def summarize_document(archive: Path, target: Path, params: SummarizeParams) -> None:
    """Write the summaries of a page archive to `target`."""
    write_json(target, summarize_pages(read_pages(archive), params))


@dataclass(frozen=True)
class SummarizeStep:
    """Extractive page summaries."""

    params: SummarizeParams
    models: Mapping[str, Any]
    name: str = "summarize"
    suffix: str = ".json"
    needs: tuple[str, ...] = ("render",)
    modules: tuple[str, ...] = field(
        default=(
            "docmemo.documents.captions",
            "docmemo.documents.headings",
            "docmemo.documents.language",
            "docmemo.documents.passages",
            "docmemo.pipeline.summarize",
            "docmemo.retrieval.lexical",
            "docmemo.retrieval.stopwords",
            "docmemo.retrieval.summary",
            "docmemo.retrieval.tokenize",
        )
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """Lines with their boxes and sizes (with the document's name, which the file holds), parameters, model.

        Left out: the parameters of backend vlm, which decide nothing here.
        """
        return {
            "lines": lines_digest(read_pages(job.inputs["render"])),
            "params": self.params.model_dump(mode="json", exclude={"model", "page_side", "text_chars"}),
            "summarizer": self.models["summarizer"],
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Write the summaries to `target`, in a worker.

        Raises:
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
        """
        limit = pool.page_timeout + job.document.n_pages / PAGES_A_SECOND
        pool.call(summarize_document, job.inputs["render"], target, self.params, timeout=limit)
        return StepResult()
