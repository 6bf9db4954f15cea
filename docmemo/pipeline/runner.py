"""Runs a step over a dataset: takes finished artifacts from the store, computes the rest, removes what left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from docmemo.artifacts import artifact_name, read_json, write_json
from docmemo.errors import ArtifactError, DocumentError, PageError
from docmemo.fingerprint import code_digest, digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import WHOLE, Job, Step, StepResult
from docmemo.store import Entry, Store, describe
from docmemo.types import Document, Record
from docmemo.usage import Usage

INDEX = "index.json"

log = logging.getLogger(__name__)


class IndexEntry(Record):
    """One document in an out folder's index."""

    file: str
    key: str
    sha256: str
    failures: dict[str, str] = Field(default_factory=dict)
    """Page (as text; "0" is the whole document) to the reason why it is missing or made in another way."""
    complete: bool = True
    """False when a timeout, a worker's death or a model's absence left a hole: this artifact is never reused."""
    usage: Usage | None = None
    """What models cost, the replies of earlier runs included; None where none was asked."""


class Index(Record):
    """`index.json` of a stage's out folder: which file is whose, and which documents failed here."""

    step: str
    code: str = ""
    """Digest of the step's working modules."""
    documents: dict[str, IndexEntry] = Field(default_factory=dict)
    failed: dict[str, str] = Field(default_factory=dict)
    """doc_id to the reason and remedy."""

    @property
    def usage(self) -> Usage:
        """What models cost for all documents, summed in their order."""
        spent = [self.documents[doc_id].usage for doc_id in sorted(self.documents)]
        return sum((usage for usage in spent if usage is not None), Usage())


@dataclass
class Summary:
    """What a step did."""

    computed: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)
    """Documents with a hole that a timeout or a died worker left, or that failed for such a reason."""
    waiting: dict[str, str] = field(default_factory=dict)
    """doc_id to why a model did not do its part this time: the stage must not be taken as finished."""
    removed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """doc_id to wall seconds of its computation, whenever that was."""

    def line(self, name: str) -> str:
        """One line for the log."""
        parts = [f"{len(self.computed)} computed", f"{len(self.reused)} reused"]
        if self.failed:
            parts.append(f"{len(self.failed)} failed")
        if self.removed:
            parts.append(f"{self.removed} removed")
        return f"{name}: " + ", ".join(parts)


def artifact_key(step: Step, job: Job, used: Mapping[str, Any] | None = None) -> str:
    """The store key of a document's artifact: the step, its inputs, parameters and models, and the working code.

    `used` replaces entries of the step's key by what was really used (StepResult.used).
    """
    inputs = {**step.key(job), **(used or {})}
    return digest({"step": step.name, "inputs": inputs, "code": code_digest(step.modules)})


@dataclass(frozen=True)
class Ensured:
    """An artifact brought to its place."""

    entry: Entry
    computed: bool
    """Whether it was computed now rather than taken from the store."""
    complete: bool = True
    waiting: str = ""
    """Why a model did not do its part this time."""

    def remarks(self) -> list[str]:
        """What is not as it was asked for, page by page."""
        return [
            f"{'the document as a whole' if page == str(WHOLE) else f'page {page}'}: {reason}"
            for page, reason in self.entry.failures.items()
        ]


def ensure(step: Step, job: Job, target: Path, store: Store, pool: WorkPool) -> Ensured:
    """Bring the artifact of `job` to `target`, from the store or by computing it.

    Raises:
        DocumentError: if the document cannot be processed.
    """
    key = artifact_key(step, job)
    found = store.fetch(step.name, key, target)
    if found is not None:
        return Ensured(found, computed=False)
    with store.workspace() as folder:
        temporary = folder / f"artifact{step.suffix}"
        start = time.perf_counter()
        result: StepResult = step.compute(job, temporary, pool)
        seconds = time.perf_counter() - start
        key = artifact_key(step, job, result.used) if result.used else key
        failures = {str(page): reason for page, reason in sorted(result.failures.items())}
        keeper = store if result.storable else Store(folder)
        usage = result.usage.model_dump(mode="json") if result.usage is not None else None
        keeper.add(step.name, key, temporary, seconds=seconds, failures=failures, usage=usage)
        entry = keeper.fetch(step.name, key, target)
        if entry is None:
            raise ArtifactError(f"{target} could not be written.", remedy="Check the disk.")
        return Ensured(entry, computed=True, complete=result.storable, waiting=result.waiting)


def read_index(folder: Path) -> Index:
    """The index of a stage's out folder.

    Raises:
        ArtifactError: if the folder was not written by a finished stage.
    """
    return read_json(folder / INDEX, Index)


def seed(store: Store, folders: Iterable[Path]) -> int:
    """Put artifacts of existing out folders (after `dvc pull`, say) into the store; returns how many were new."""
    added = 0
    for folder in folders:
        try:
            index = read_index(folder)
        except ArtifactError:
            continue
        for item in index.documents.values():
            path = folder / item.file
            if item.complete and path.is_file() and not store.has(index.step, item.key):
                usage = item.usage.model_dump(mode="json") if item.usage is not None else None
                entry = store.add(index.step, item.key, path, failures=item.failures, usage=usage)
                if entry.sha256 != item.sha256:
                    store.discard(index.step, item.key)
                else:
                    added += 1
    return added


def jobs_for(
    documents: Sequence[Document], root: Path, upstream: Mapping[str, Path]
) -> tuple[list[Job], dict[str, str]]:
    """Jobs of the documents that are still good after the upstream steps, and those that failed there."""
    failed: dict[str, str] = {}
    indexes = {name: read_index(folder) for name, folder in upstream.items()}
    jobs = []
    for document in documents:
        if document.status != "ok":
            continue
        reasons = [index.failed[document.doc_id] for index in indexes.values() if document.doc_id in index.failed]
        if reasons:
            failed[document.doc_id] = reasons[0]
            continue
        inputs = {n: upstream[n] / indexes[n].documents[document.doc_id].file for n in upstream}
        jobs.append(Job(document, root / document.path, inputs))
    return jobs, failed


def run_step(
    step: Step,
    jobs: Sequence[Job],
    out: Path,
    *,
    store: Store,
    pool: WorkPool,
    parallel: int,
    failed_before: Mapping[str, str] | None = None,
    progress: Callable[[], Any] = lambda: None,
) -> Summary:
    """Fill `out` with one artifact a document and an index, and nothing else."""
    out.mkdir(parents=True, exist_ok=True)
    summary = Summary(failed=dict(failed_before or {}))
    index = Index(step=step.name, code=code_digest(step.modules))

    def work(job: Job) -> Ensured:
        return ensure(step, job, out / artifact_name(job.document.doc_id, step.suffix), store, pool)

    with ThreadPoolExecutor(max_workers=max(1, parallel)) as executor:
        waiting: dict[Future[Ensured], Job] = {executor.submit(work, job): job for job in jobs}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    _collect(step, waiting.pop(future), future, index, summary)
                    progress()
        except BaseException:
            pool.close()  # the threads wait for its workers, which may be in the middle of a long document
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    summary.removed = _remove_others(out, {entry.file for entry in index.documents.values()})
    index.documents = dict(sorted(index.documents.items()))
    index.failed = dict(sorted(summary.failed.items()))
    write_json(out / INDEX, index)
    return summary


def _collect(step: Step, job: Job, future: Future[Ensured], index: Index, summary: Summary) -> None:
    doc_id = job.document.doc_id
    try:
        ensured = future.result()
    except (DocumentError, PageError) as error:
        summary.failed[doc_id] = str(error)
        if error.retryable:
            summary.incomplete.append(doc_id)
        log.warning("%s: %s failed: %s", step.name, doc_id, error)
        return
    entry = ensured.entry
    if ensured.waiting:
        summary.waiting[doc_id] = ensured.waiting
    elif not ensured.complete:
        summary.incomplete.append(doc_id)
    (summary.computed if ensured.computed else summary.reused).append(doc_id)
    summary.seconds[doc_id] = entry.seconds
    for remark in ensured.remarks():
        log.warning("%s: %s, %s", step.name, doc_id, remark)
    index.documents[doc_id] = IndexEntry(
        file=artifact_name(doc_id, step.suffix), complete=ensured.complete, **describe(entry)
    )


def _remove_others(out: Path, keep: set[str]) -> int:
    removed = 0
    for path in out.iterdir():
        if path.name not in keep and path.name != INDEX and path.is_file():
            path.unlink()
            removed += 1
    return removed
