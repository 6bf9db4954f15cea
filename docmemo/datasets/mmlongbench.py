"""MMLongBench-Doc as its authors publish it: samples.json and documents/.

The benchmark's rows are kept as they are. What is odd about them is named in each question's `quirks`,
counted and explained in the manifest, and never repaired, so that figures stay comparable with others'.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docmemo.config import DatasetParams
from docmemo.datasets import fields
from docmemo.datasets.base import Dataset, Quirk
from docmemo.datasets.fields import Problems
from docmemo.datasets.questions import Row, build_questions
from docmemo.datasets.sample import inner_path
from docmemo.types import Document

DEFAULT_QUESTIONS = "samples.json"
FOLDER = "documents"
_REQUIRED = ("doc_id", "question", "answer", "evidence_pages", "evidence_sources", "answer_format")
COLUMNS = (*_REQUIRED, "doc_type", "question_id")


def _read_rows(problems: Problems) -> list[Row]:
    """The benchmark's rows, numbered from 1, without fields that mean nothing here."""
    try:
        values = fields.parse_json(fields.read_text(problems.path))
    except ValueError as error:
        problems.add(0, f"{error}.")
        return []
    if not isinstance(values, list) or not values:
        problems.add(0, "a JSON list of questions is wanted, with at least one question.")
        return []
    rows: list[Row] = []
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            problems.add(number, f"a JSON object is wanted, not {type(value).__name__}.")
            continue
        missing = [name for name in _REQUIRED if name not in value]
        if missing:
            problems.add(number, f"missing: {', '.join(missing)}.")
            continue
        rows.append((number, {name: value[name] for name in COLUMNS if name in value}))
    return rows


def _resolve(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"doc_id must be a file name, not {value!r}")
    return inner_path(value)


def _documents(root: Path, doc_types: Mapping[str, str], only_asked: bool) -> tuple[list[Document], dict[str, Quirk]]:
    """The documents that have questions, those whose file is missing as "failed"; else also the folder's others."""
    present = root / FOLDER
    names = {p.name for p in present.iterdir() if p.suffix.lower() == ".pdf"} if present.is_dir() else set()
    unasked = names - doc_types.keys()
    documents = []
    missing = 0
    for doc_id in sorted(doc_types if only_asked else {*doc_types, *names}):
        path = f"{FOLDER}/{doc_id}"
        failed = not (root / path).is_file()
        missing += failed
        reason = (
            f"{path} is missing. Download it from the benchmark "
            "(huggingface.co/datasets/yubo2333/MMLongBench-Doc) "
            "or set dataset.questions to a file without its questions."
        )
        documents.append(
            Document(
                doc_id=doc_id,
                path=path,
                doc_type=doc_types.get(doc_id, ""),
                status="failed" if failed else "ok",
                reason=reason if failed else "",
            )
        )
    notes = {}
    if missing:
        notes["document missing"] = Quirk(
            missing,
            f"Named by questions but not in {FOLDER}/; its questions fail with that reason and are counted.",
        )
    if unasked:
        what = "left out, since dataset.questions names a cut" if only_asked else "prepared like the others"
        notes["document without questions"] = Quirk(len(unasked), f"In {FOLDER}/ but asked nothing; {what}.")
    return documents, notes


def read(root: Path, params: DatasetParams) -> Dataset:
    """The questions of samples.json and all documents, or those of `dataset.questions` and only their documents.

    Raises:
        DatasetError: if the file of questions is missing or holds what the benchmark's files do not. A
            missing PDF is no error: partial downloads are common, and such a document is recorded as failed.
    """
    name = params.questions or DEFAULT_QUESTIONS
    problems = Problems(root / name, unit="row")
    rows = _read_rows(problems)
    questions = build_questions(rows, _resolve, problems)
    problems.raise_if_any()
    doc_types: dict[str, str] = {}
    for question in questions:
        doc_types[question.doc_id] = doc_types.get(question.doc_id) or question.doc_type
    documents, notes = _documents(root, doc_types, only_asked=params.questions is not None)
    return Dataset("mmlongbench", "mmlongbench", documents, questions, notes, name)
