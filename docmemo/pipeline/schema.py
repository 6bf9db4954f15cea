"""The schema step, structural: a document's type, topic, sections, and what each page carries.

By a model: docmemo/pipeline/schema_vlm.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_json, read_layout, read_pages, write_json
from docmemo.config import SchemaParams
from docmemo.fingerprint import digest
from docmemo.memory.schema import build_schema
from docmemo.pipeline.digests import lines_digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.types import LayoutSet, SummarySet

PAGES_A_SECOND = 10
"""Slower than this on average and the time limit ends the work."""


def schema_document(
    archive: Path, layout: Path | None, summaries: Path | None, target: Path, params: SchemaParams
) -> None:
    """Write the schema memory of a document to `target`; layout and summaries may be absent."""
    schema = build_schema(
        read_pages(archive),
        read_layout(layout) if layout is not None else None,
        read_json(summaries, SummarySet) if summaries is not None else None,
        params,
    )
    write_json(target, schema)


def _regions(layout: LayoutSet) -> list[dict[str, Any]]:
    return [region.model_dump(mode="json", exclude={"crop"}) for region in layout.regions]


@dataclass(frozen=True)
class SchemaStep:
    """Structural schema memory. Without a layout artifact (`docmemo ask`) headings are told from type sizes."""

    params: SchemaParams
    models: Mapping[str, Any]
    name: str = "schema"
    suffix: str = ".json"
    needs: tuple[str, ...] = ("render", "layout", "summarize")
    modules: tuple[str, ...] = field(
        default=(
            "docmemo.documents.captions",
            "docmemo.documents.headings",
            "docmemo.documents.passages",
            "docmemo.memory.doc_type",
            "docmemo.memory.schema",
            "docmemo.pipeline.schema",
        )
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """Lines, regions, keywords, parameters and model; pictures of pages and crops do not count.

        Left out: the parameters of backend vlm, which decide nothing here.
        """
        layout, summaries = job.inputs.get("layout"), job.inputs.get("summarize")
        keywords = {s.page: s.keywords for s in read_json(summaries, SummarySet).summaries} if summaries else {}
        return {
            "lines": lines_digest(read_pages(job.inputs["render"])),
            "regions": digest(_regions(read_layout(layout))) if layout else None,
            "keywords": digest({str(page): words for page, words in keywords.items()}) if summaries else None,
            "params": self.params.model_dump(mode="json", exclude={"model"}),
            "schema": self.models["schema"],
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Write the schema to `target`, in a worker.

        Raises:
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
        """
        limit = pool.page_timeout + job.document.n_pages / PAGES_A_SECOND
        inputs = (job.inputs["render"], job.inputs.get("layout"), job.inputs.get("summarize"))
        pool.call(schema_document, *inputs, target, self.params, timeout=limit)
        return StepResult()
