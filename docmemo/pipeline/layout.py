"""The layout stage: one archive a document with regions and crops."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from docmemo.artifacts import LAYOUT_MEMBER, read_pages, write_archive
from docmemo.config import LayoutParams
from docmemo.documents.mineru import analyze_mineru_pages, as_pdf, run_mineru
from docmemo.documents.mineru_output import read_output
from docmemo.documents.pdf import Kind
from docmemo.documents.regions import Found, analyze_pages, set_levels
from docmemo.fingerprint import digest
from docmemo.models.mineru_command import find_mineru
from docmemo.pipeline.pool import PageFailure, WorkPool
from docmemo.pipeline.render import check_unchanged
from docmemo.pipeline.step import Job, StepResult
from docmemo.settings import load_settings
from docmemo.types import LayoutSet, Page, Region

_MODULES = (
    "docmemo.documents.captions",
    "docmemo.documents.crops",
    "docmemo.documents.layout",
    "docmemo.documents.pdf",
    "docmemo.documents.regions",
    "docmemo.documents.render",
    "docmemo.pipeline.layout",
)
_MINERU_MODULES = ("docmemo.documents.mineru", "docmemo.documents.mineru_output")
_one_model = threading.Lock()
"""MinerU's tiers with weights load them in each process; two at once do not fit on many a GPU."""


@dataclass(frozen=True)
class LayoutStep:
    """Step "layout": document and its text lines -> `.layout.zip` (a LayoutSet and one JPEG a table or figure)."""

    params: LayoutParams
    models: Mapping[str, Any] = field(default_factory=dict)
    """Lock entry of the role "layout"."""

    name: ClassVar[str] = "layout"
    suffix: ClassVar[str] = ".layout.zip"
    needs: ClassVar[tuple[str, ...]] = ("render",)

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules whose code decides the result: MinerU's only where it is chosen."""
        return (*_MODULES, *_MINERU_MODULES) if self.params.backend == "mineru" else _MODULES

    def key(self, job: Job) -> Mapping[str, Any]:
        """The document's bytes and name, the lines that are used, the parameters, and the model.

        Of the page archive only the lines count: another image resolution leaves the layout as it is. The tier of a
        MinerU that is not chosen does not count.
        """
        return {
            "doc_id": job.document.doc_id,
            "document": job.document.sha256,
            "kind": job.document.kind,
            "lines": digest([_used(page) for page in read_pages(job.inputs["render"]).pages]),
            "params": self.params.model_dump(
                mode="json", exclude={"mineru_tier"} if self.params.backend == "pymupdf" else None
            ),
            "models": {"layout": self.models.get("layout")},
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Analyse every page that was rendered and write `target`.

        Raises:
            DocumentChangedError: if the file is not the one the manifest recorded.
            DocumentError: if the document cannot be opened at all, or MinerU cannot parse it.
            PageTimeoutError, WorkerDiedError: if MinerU took too long or was killed.
            ModelLockError: if MinerU is chosen and not installed.
            ConfigError: if MinerU lacks model weights.
        """
        check_unchanged(job)
        outcome = StepResult()
        with tempfile.TemporaryDirectory(prefix="docmemo-layout-") as folder:
            results = map_layout(job.source, job.document.kind, job.inputs["render"], self.params, Path(folder), pool)
            found: list[Found] = []
            for number, result in sorted(results.items()):
                if isinstance(result, PageFailure):
                    outcome.failures[number] = result.reason
                    outcome.storable &= not result.retryable
                else:
                    found += result
            set_levels(found)
            header = LayoutSet(
                doc_id=job.document.doc_id,
                regions=[item.region for item in found],
                failures=outcome.failures,
            )
            write_archive(target, LAYOUT_MEMBER, header, _crops(header.regions, Path(folder)))
        return outcome


def map_layout(
    source: Path,
    kind: Kind,
    archive: Path,
    params: LayoutParams,
    folder: Path,
    pool: WorkPool,
    pages: Sequence[int] | None = None,
) -> dict[int, list[Found] | PageFailure]:
    """Regions of a document's pages (all, or the given handful), by page; crops go to files below `folder`.

    Heading levels are not set: call `set_levels` on what belongs together. A page whose rendering failed is a
    failure here too. MinerU reads the whole document, whatever pages are asked for.
    """
    results: dict[int, list[Found] | PageFailure] = {}
    good = []
    for record in read_pages(archive).pages:
        if pages is not None and record.page not in pages:
            continue
        if record.failure:
            results[record.page] = PageFailure(f"not rendered: {record.failure}", retryable=False)
        else:
            good.append(record.page)
    shared = (str(source), kind, str(archive), params, str(folder))
    if params.backend == "pymupdf" or not good:
        return results | pool.map_pages(analyze_pages, shared, good)
    output = _ask_mineru(source, kind, params, folder, pool, max(good))
    return results | pool.map_pages(analyze_mineru_pages, (*shared, str(output)), good)


def _ask_mineru(source: Path, kind: Kind, params: LayoutParams, folder: Path, pool: WorkPool, n_pages: int) -> Path:
    """MinerU's zip for a document, validated; it may take a quarter of the page limit for each page."""
    command = find_mineru(load_settings().mineru).path
    pdf, made = folder / "document.pdf", folder / "mineru"
    made.mkdir()
    limit = pool.page_timeout * (1 + n_pages / 4)
    pool.call(as_pdf, str(source), kind, str(pdf), timeout=limit)
    with contextlib.nullcontext() if params.mineru_tier == "flash" else _one_model:
        output = run_mineru(command, pdf, made, params.mineru_tier, limit)
    read_output(output)
    return output


def _used(page: Page) -> Any:
    return [page.page, page.failure, page.text_source, [line.model_dump(mode="json") for line in page.lines]]


def _crops(regions: Sequence[Region], folder: Path) -> Iterator[tuple[str, bytes]]:
    """One crop at a time, each file removed once it was read."""
    for region in regions:
        if region.crop:
            path = folder / region.crop
            yield region.crop, path.read_bytes()
            path.unlink()
