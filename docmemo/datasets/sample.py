"""The project's own sample corpus: documents.jsonl, questions.jsonl and documents/ in one folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from docmemo.config import DatasetParams
from docmemo.datasets import fields
from docmemo.datasets.base import Dataset
from docmemo.datasets.fields import Problems
from docmemo.datasets.questions import build_questions, read_rows, unknown_columns
from docmemo.types import Document

DOCUMENT_COLUMNS = ("doc_id", "path", "kind", "doc_type", "title", "language", "access_labels")


def inner_path(value: Any) -> str:
    """A path relative to the dataset's folder, with forward slashes. Raises ValueError if it leads out."""
    text = fields.as_text(value, "path").strip()
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text:
        raise ValueError(f"path must be relative to the dataset's folder and stay inside it, not {value!r}")
    return str(path)


def _read_documents(root: Path) -> list[Document]:
    problems = Problems(root / "documents.jsonl")
    rows = list(fields.read_json_lines(problems.path, problems))
    for column in sorted(unknown_columns(rows, problems, DOCUMENT_COLUMNS)):
        problems.add(0, f"unknown column {column!r} (known: {', '.join(DOCUMENT_COLUMNS)}).")
    documents: dict[str, Document] = {}
    for number, row in rows:
        try:
            doc_id = fields.as_text(row.get("doc_id"), "doc_id").strip()
            path = inner_path(row.get("path"))
            doc_type = fields.as_text(row.get("doc_type"), "doc_type")
            labels = [fields.as_text(v, "access_labels") for v in fields.as_list(row.get("access_labels"), "")]
        except ValueError as error:
            problems.add(number, f"{error}.")
            continue
        source = root / path
        if not doc_id or doc_id in documents:
            problems.add(number, f"doc_id {doc_id!r} is used twice." if doc_id else "doc_id is missing.")
        elif not source.exists():
            problems.add(number, f"the document {path} is missing.")
        else:
            documents[doc_id] = Document(
                doc_id=doc_id,
                path=path,
                kind="images" if source.is_dir() else "pdf",
                doc_type=doc_type,
                access_labels=labels,
            )
    if not rows:
        problems.add(0, "it lists no documents.")
    problems.raise_if_any()
    return list(documents.values())


def read(root: Path, params: DatasetParams) -> Dataset:
    """The documents listed in documents.jsonl and the questions about them.

    Raises:
        DatasetError: if a file is missing or anything in it is wrong, a missing document included.
    """
    documents = _read_documents(root)
    types = {document.doc_id: document.doc_type for document in documents}

    def resolve(value: Any) -> str:
        if value not in types:
            raise ValueError(f"unknown document {value!r}: not in documents.jsonl")
        return str(value)

    problems = Problems(root / (params.questions or "questions.jsonl"))
    rows = list(read_rows(problems.path, problems))
    for column in sorted(unknown_columns(rows, problems)):
        problems.add(0, f"unknown column {column!r}.")
    questions = build_questions(rows, resolve, problems)
    problems.raise_if_any()
    typed = [q.model_copy(update={"doc_type": q.doc_type or types[q.doc_id]}) for q in questions]
    return Dataset("sample", "mmlongbench", documents, typed)
