"""LongDocURL as its authors publish it: a file of JSON lines and page images `DOC_INDEX.png`, or the PDFs.

Image files count from 0, evidence pages and `start_end_idx` from 1; pages here are those of the whole document,
from 1. A question is about a part of its document: the benchmark's own evaluation shows the pages that `images`
lists (30, or all of a shorter document), and `start_end_idx` names the pages the question was written from, which
may be fewer. Those it shows are in scope.

Where both page images and a PDF are there, the page images are used, as the benchmark does.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from docmemo.config import DatasetParams
from docmemo.datasets import fields
from docmemo.datasets.base import OTHER_SOURCE, WIDER_WINDOW, Dataset
from docmemo.datasets.fields import Problems
from docmemo.datasets.locate import Found, find_documents, find_questions, missing_note, page_image
from docmemo.datasets.questions import Row, build_questions, unrepeated_ids
from docmemo.types import Document

QUESTION_FILES = (
    "LongDocURL.jsonl",
    "LongDocURL_public.jsonl",
    "LongDocURL_public_with_subtask_category.jsonl",
)
"""Names the authors have used; the first that is there is read."""

FOLDERS = ("", "data")
"""Where it is looked for."""

HOME = "huggingface.co/datasets/dengchao/LongDocURL"

_REQUIRED = ("doc_no", "question")
_OTHER_SOURCES = frozenset({"others", "other"})


def _values(problems: Problems) -> list[tuple[int, dict[str, Any]]]:
    """Numbered JSON objects of the file: one a line, or a JSON list of them in a .json file."""
    if problems.path.suffix.lower() != ".json":
        return list(fields.read_json_lines(problems.path, problems))
    problems.unit = "row"
    try:
        values = fields.parse_json(fields.read_text(problems.path))
    except ValueError as error:
        problems.add(0, f"{error}.")
        return []
    if not isinstance(values, list):
        problems.add(0, f"a JSON list of questions is wanted, not {type(values).__name__}.")
        return []
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            problems.add(number, f"a JSON object is wanted, not {type(value).__name__}.")
    return [(number, value) for number, value in enumerate(values, 1) if isinstance(value, dict)]


def _doc_no(row: Mapping[str, Any]) -> str:
    value = row.get("doc_no")
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise ValueError(f"doc_no must be the document's number, not {value!r}")
    return name.strip()


def _shown_pages(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """First and last page of `images`; None when it is absent or not a run of pages of this document."""
    parts = [page_image(PurePosixPath(str(path)).name) for path in fields.as_list(row.get("images"), "images")]
    indices = [part[1] for part in parts if part is not None and part[0] == _doc_no(row)]
    if not indices or len(indices) != len(parts) or indices != list(range(indices[0], indices[0] + len(indices))):
        return None
    return indices[0] + 1, indices[-1] + 1


def _window(row: Mapping[str, Any]) -> tuple[tuple[int, int] | None, bool]:
    """Pages in scope, and whether they are more than `start_end_idx` names."""
    try:
        own = fields.as_window(row.get("start_end_idx"))
    except ValueError as error:
        raise ValueError(str(error).replace("page_window", "start_end_idx")) from error
    shown = _shown_pages(row)
    if own is None or shown is None or not (shown[0] <= own[0] and own[1] <= shown[1]):
        return own or shown, False
    return shown, shown != own


def _answer(value: Any) -> Any:
    """Gold answers that only this benchmark has: one dict is a list of one."""
    return [value] if isinstance(value, dict) else value


def _as_row(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """One object of the file in our columns, and its quirks.

    Raises:
        ValueError: saying what is wrong with it.
    """
    missing = [name for name in _REQUIRED if name not in values]
    if missing:
        raise ValueError(f"missing: {', '.join(missing)}")
    window, wider = _window(values)
    sources = fields.as_list(values.get("evidence_sources"), "evidence_sources")
    known = [source for source in sources if str(source).strip().lower() not in _OTHER_SOURCES]
    row = {
        "doc_id": _doc_no(values),
        "question_id": values.get("question_id"),
        "question": values["question"],
        "answer": _answer(values.get("answer")),
        "answer_format": values.get("answer_format"),
        "evidence_pages": values.get("evidence_pages"),
        "evidence_sources": known,
        "page_window": list(window) if window else None,
    }
    return row, [WIDER_WINDOW] * wider + [OTHER_SOURCE] * (len(known) != len(sources))


def _locate(doc_no: str, n_pages: int, found: Found) -> Document:
    """The document's complete page images, else its PDF, else a failed document with the reason."""
    reasons = []
    for images in found.images.get(doc_no, []):
        missing = images.missing(n_pages)
        if not missing and not images.repeated:
            alone = found.documents_in[images.folder] == 1
            some = f"{glob.escape(doc_no)}_[0-9]*"
            path = images.folder if alone else f"{images.folder}/{some}" if images.folder else some
            return Document(doc_id=doc_no, path=path or ".", kind="images")
        total = len(missing) + len(images.names)
        reasons.append(
            f"{len(missing)} of its {total} page images are missing (the first: {doc_no}_{missing[0]}.png)"
            if missing
            else f"{images.repeated} of its pages have two images"
        )
    pdfs = found.pdfs.get(doc_no, [])
    if pdfs:
        return Document(doc_id=doc_no, path=pdfs[0], kind="pdf")
    images_of = next(iter(found.images.get(doc_no, [])), None)
    last = f" to {doc_no}_{n_pages - 1}.png" if n_pages > 1 else ""
    nothing = f"There are no page images ({doc_no}_0.png{last}) and no {doc_no}.pdf below the folder"
    why = reasons[0] if reasons else nothing
    return Document(
        doc_id=doc_no,
        path=images_of.folder or "." if images_of else f"{doc_no}.pdf",
        kind="images" if images_of else "pdf",
        status="failed",
        reason=f"{why}. Download it from the benchmark ({HOME}) "
        "or set dataset.questions to a file without its questions.",
    )


def read(root: Path, params: DatasetParams) -> Dataset:
    """The questions of the benchmark's file, or of `dataset.questions`, and the documents they are about.

    Raises:
        DatasetError: if the file of questions is missing or holds what the benchmark's files do not. Missing
            pages are no error: such a document is recorded as failed.
    """
    name = find_questions(root, params, QUESTION_FILES, FOLDERS)
    problems = Problems(root / name)
    rows: list[Row] = []
    quirks: list[list[str]] = []
    n_pages: dict[str, int] = {}
    for number, values in _values(problems):
        try:
            row, odd = _as_row(values)
        except ValueError as error:
            problems.add(number, f"{error}.")
            continue
        rows.append((number, row))
        quirks.append(odd)
        total = values.get("total_pages")
        known = total if isinstance(total, int) and not isinstance(total, bool) else 0
        last = row["page_window"][1] if row["page_window"] else 0
        n_pages[row["doc_id"]] = max(n_pages.get(row["doc_id"], 0), known or last)
    if not rows and not problems:
        problems.add(0, "it holds no questions.")
    questions = build_questions(unrepeated_ids(rows), str, problems)
    problems.raise_if_any()
    questions = [q.model_copy(update={"quirks": [*q.quirks, *odd]}) for q, odd in zip(questions, quirks, strict=True)]
    found = find_documents(root)
    documents = [_locate(doc_no, n_pages[doc_no], found) for doc_no in sorted(n_pages)]
    return Dataset("longdocurl", "longdocurl", documents, questions, missing_note(documents), name)
