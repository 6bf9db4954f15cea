"""Ingest: a dataset becomes a manifest of documents, usable or not, and questions in one schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from pydantic import Field

from docmemo.artifacts import write_json, write_jsonl
from docmemo.config import DatasetParams
from docmemo.datasets.base import (
    Quirk,
    annotate_page_bounds,
    count_quirks,
    dataset_root,
    load_dataset,
)
from docmemo.errors import DocumentError, PageError
from docmemo.fingerprint import digest
from docmemo.types import Document, Question, Record

DOCUMENTS = "documents.jsonl"
QUESTIONS = "questions.jsonl"
SUMMARY = "dataset.json"

Inspect = Callable[[Path, Literal["pdf", "images"]], tuple[int, str]]
"""(path, kind) -> (page count, sha256); raises DocumentError, or PageError from a worker pool."""


class QuirkCount(Record):
    """Something odd about the dataset."""

    count: int
    explanation: str


class IngestSummary(Record):
    """`dataset.json`: what was found."""

    format: str
    root: str
    """As given in params.yaml."""
    scorer: str
    """Name of the dataset's own rule scorer."""
    n_documents: int
    n_documents_failed: int
    n_pages: int
    """Pages of usable documents."""
    n_questions: int
    n_questions_on_failed_documents: int
    quirks: dict[str, QuirkCount] = Field(default_factory=dict)
    digest: str
    """sha256 over all documents (by content) and questions; independent of where the dataset lies."""


DatasetInfo = IngestSummary
"""The same, for those who read `dataset.json` later."""


def _inspect_one(document: Document, root: Path, inspect: Inspect) -> Document:
    if document.status == "failed":
        return document
    try:
        n_pages, sha256 = inspect(root / document.path, document.kind)
    except (DocumentError, PageError) as error:
        return document.model_copy(update={"status": "failed", "reason": str(error)})
    return document.model_copy(update={"n_pages": n_pages, "sha256": sha256})


def _same_content(documents: Sequence[Document]) -> dict[str, Quirk]:
    by_digest: dict[str, list[str]] = {}
    for document in documents:
        if document.sha256:
            by_digest.setdefault(document.sha256, []).append(document.doc_id)
    groups = [names for names in by_digest.values() if len(names) > 1]
    if not groups:
        return {}
    named = "; ".join(" = ".join(names) for names in groups[:5]) + ("; ..." if len(groups) > 5 else "")
    extra = sum(len(names) - 1 for names in groups)
    return {"same content under two names": Quirk(extra, f"Kept as documents of their own: {named}.")}


def _failures(documents: Sequence[Document]) -> dict[str, Quirk]:
    failed = Counter(document.status for document in documents)["failed"]
    if not failed:
        return {}
    return {"document failed": Quirk(failed, f"Cannot be used; the reason is in {DOCUMENTS} with each.")}


def content_digest(documents: Sequence[Document], questions: Sequence[Question]) -> str:
    """sha256 of a dataset's content.

    Left out: reasons of failures, since their wording may name places, and fields that hold their default, so that a
    field added to the records later does not make the same dataset another one.
    """
    return digest(
        {
            "documents": [d.model_dump(mode="json", exclude={"reason"}, exclude_defaults=True) for d in documents],
            "questions": [q.model_dump(mode="json", exclude_defaults=True) for q in questions],
        }
    )


def ingest(
    params: DatasetParams,
    project: Path,
    out: Path,
    inspect: Inspect,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> IngestSummary:
    """Read a dataset, open every document, and write documents.jsonl, questions.jsonl and dataset.json.

    The result does not depend on `jobs`, nor on the order in which the file system lists names.

    Args:
        params: section `dataset` of params.yaml.
        project: the folder that a relative root starts from.
        out: folder to write to; made if needed.
        inspect: opens one document (through a worker pool, since a broken PDF can end or hang a process).
        jobs: documents inspected at once, from threads.
        progress: called with (documents done, documents in all).

    Raises:
        DatasetError: if the dataset as a whole cannot be used. A document that cannot be opened is no error:
            it is recorded as failed with the reason.
    """
    root = dataset_root(params, project)
    dataset = load_dataset(params, project)
    documents: list[Document] = []
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as threads:
        results = threads.map(lambda document: _inspect_one(document, root, inspect), dataset.documents)
        for done, document in enumerate(results, 1):
            documents.append(document)
            if progress is not None:
                progress(done, len(dataset.documents))
    usable = {d.doc_id: d.n_pages for d in documents if d.status == "ok"}
    questions = annotate_page_bounds(dataset.questions, usable)

    notes = {**dataset.notes, **_same_content(documents), **_failures(documents)}
    quirks = count_quirks(type(dataset)(dataset.name, dataset.scorer, documents, questions, notes))
    summary = IngestSummary(
        format=dataset.name,
        root=params.root,
        scorer=dataset.scorer,
        n_documents=len(documents),
        n_documents_failed=len(documents) - len(usable),
        n_pages=sum(usable.values()),
        n_questions=len(questions),
        n_questions_on_failed_documents=sum(q.doc_id not in usable for q in questions),
        quirks={name: QuirkCount(count=q.count, explanation=q.explanation) for name, q in quirks.items()},
        digest=content_digest(documents, questions),
    )
    write_jsonl(out / DOCUMENTS, documents)
    write_jsonl(out / QUESTIONS, questions)
    write_json(out / SUMMARY, summary)
    return summary
