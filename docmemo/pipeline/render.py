"""The render stage: one archive a document with page images, text, labels and printed numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from docmemo.artifacts import PAGES_MEMBER, write_archive
from docmemo.config import RenderParams
from docmemo.documents.language import detect_language
from docmemo.documents.numbering import printed_numbers
from docmemo.documents.pdf import digest_source
from docmemo.documents.render import document_outline, render_pages
from docmemo.errors import DocumentChangedError
from docmemo.pipeline.pool import PageFailure, WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.types import Page, PageSet


@dataclass(frozen=True)
class RenderStep:
    """Step "render": document -> `.pages.zip` (a PageSet and one JPEG a page)."""

    params: RenderParams
    models: Mapping[str, Any] = field(default_factory=dict)
    """Lock entries of the roles "renderer" and "ocr"."""

    name: ClassVar[str] = "render"
    suffix: ClassVar[str] = ".pages.zip"
    needs: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = (
        "docmemo.documents.language",
        "docmemo.documents.numbering",
        "docmemo.documents.ocr",
        "docmemo.documents.pdf",
        "docmemo.documents.render",
        "docmemo.documents.text",
        "docmemo.pipeline.render",
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """The document's bytes and name (it stands in the archive), the parameters, and the models."""
        return {
            "doc_id": job.document.doc_id,
            "document": job.document.sha256,
            "kind": job.document.kind,
            "params": self.params.model_dump(mode="json"),
            "models": {role: self.models.get(role) for role in ("renderer", "ocr")},
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Render every page into `target`.

        Raises:
            DocumentChangedError: if the file is not the one the manifest recorded.
            DocumentError: if the document cannot be opened at all.
        """
        document = job.document
        check_unchanged(job)
        n_pages, outline = pool.call(document_outline, str(job.source), document.kind, timeout=pool.page_timeout)
        numbers = list(range(1, n_pages + 1))
        with tempfile.TemporaryDirectory(prefix="docmemo-render-") as folder:
            shared = (str(job.source), document.kind, self.params, folder)
            results = pool.map_pages(render_pages, shared, numbers)
            pages = []
            outcome = StepResult()
            for number in numbers:
                result = results[number]
                if isinstance(result, PageFailure):
                    outcome.failures[number] = result.reason
                    outcome.storable &= not result.retryable
                    result = Page(page=number, failure=result.reason)
                pages.append(result)
            for page, printed in zip(pages, printed_numbers(pages), strict=True):
                page.printed = printed
            header = PageSet(
                doc_id=document.doc_id,
                sha256=document.sha256,
                outline=outline,
                language=detect_language("\n".join(page.text for page in pages)),
                pages=pages,
            )
            write_archive(target, PAGES_MEMBER, header, _pictures(pages, Path(folder)))
        return outcome


def check_unchanged(job: Job) -> None:
    """Refuse to work on other bytes than those the manifest recorded.

    Raises:
        DocumentChangedError: if they differ.
        UnreadableDocumentError: if the file cannot be read.
    """
    if digest_source(job.source, job.document.kind) != job.document.sha256:
        raise DocumentChangedError(
            f"{job.source.name!r} is no longer the file that was taken in.",
            remedy="Run `dvc repro ingest` to take in the new version.",
        )


def _pictures(pages: list[Page], folder: Path) -> Iterator[tuple[str, bytes]]:
    """One picture at a time, each file removed once it was read."""
    for page in pages:
        if page.image:
            path = folder / page.image
            yield page.image, path.read_bytes()
            path.unlink()
