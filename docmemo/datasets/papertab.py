"""PaperTab and PaperText of UDA: questions about papers, answered from a table or from prose, in up to three ways.

The questions come as `paper_tab_qa.csv` (`paper_text_qa.csv`) with `|` between cells, or as the JSON file of the
same name that UDA keeps beside it. There are no gold pages. An answer is scored by token F1 against the best
reference. A file also read from a spreadsheet (other separators) is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docmemo.config import DatasetParams
from docmemo.datasets import fields
from docmemo.datasets.base import NO_PAGES, Dataset, Quirk
from docmemo.datasets.fields import Problems
from docmemo.datasets.locate import Found, find_documents, find_questions, missing_note
from docmemo.datasets.questions import Row, build_questions, read_csv, unrepeated_ids
from docmemo.errors import DatasetError
from docmemo.types import Document, EvidenceSource

HOME = "huggingface.co/datasets/qinchuanhui/UDA-QA"

_STEMS = {"papertab": "paper_tab_qa", "papertext": "paper_text_qa"}
_SOURCES: dict[str, EvidenceSource] = {"papertab": "table", "papertext": "text"}
"""UDA's own definition of the two: the annotators' evidence is a table, or prose."""

FOLDERS = ("", "qa", "dataset/qa", "extended_qa_info", "dataset/extended_qa_info", "dataset/extended_qa_info_bench")
_NO_ANSWER = frozenset({"", "nan", "none", "null"})
"""What a reference that is not there looks like once a spreadsheet or data frame had the file."""

_NO_EVIDENCE = Quirk(1, "UDA names no evidence pages: recall and all-hit have no value here.")

_NEEDED = ("doc_name", "question")
_REFERENCE = re.compile(r"answer_\d+")


def question_files(form: str) -> tuple[str, ...]:
    """Names that UDA's questions of this format go by."""
    stem = _STEMS[form]
    return f"{stem}.csv", f"{stem}.json", f"bench_{stem}.json"


def _from_json(problems: Problems) -> Iterator[Row]:
    """Rows of UDA's JSON file, numbered from 1: an object of documents, each with a list of its questions."""
    problems.unit = "question"
    try:
        value = fields.parse_json(fields.read_text(problems.path))
    except ValueError as error:
        problems.add(0, f"{error}.")
        return
    if not isinstance(value, dict):
        problems.add(0, f"a JSON object of documents is wanted, not {type(value).__name__}.")
        return
    number = 0
    for doc_name, questions in value.items():
        for question in questions if isinstance(questions, list) else [questions]:
            number += 1
            if not isinstance(question, dict) or not isinstance(question.get("answers", []), list):
                problems.add(number, f"a JSON object with a list of answers is wanted (document {doc_name!r}).")
                continue
            answers = [a.get("answer") if isinstance(a, dict) else a for a in question.get("answers", [])]
            cells = {f"answer_{i}": answer for i, answer in enumerate(answers, 1)}
            yield number, {**question, "doc_name": doc_name, **cells}


def _as_row(values: Mapping[str, Any], form: str) -> dict[str, Any]:
    """One row of the file in our columns.

    Raises:
        ValueError: saying what is wrong with it.
    """
    missing = [name for name in _NEEDED if not str(values.get(name) or "").strip()]
    if missing:
        raise ValueError(f"missing: {', '.join(missing)}")
    columns = sorted((name for name in values if _REFERENCE.fullmatch(name)), key=lambda name: (len(name), name))
    answers = [str(values[name]).strip() for name in columns if values[name] is not None]
    return {
        "doc_id": str(values["doc_name"]).strip().removesuffix(".pdf"),
        "question_id": values.get("q_uid"),
        "question": values["question"],
        "references": [answer for answer in answers if answer.lower() not in _NO_ANSWER],
        "answer_format": "Str",
        "evidence_sources": [_SOURCES[form]],
    }


def _locate(doc_id: str, found: Found) -> Document:
    """The paper's PDF, or a failed document with the reason."""
    pdfs = sorted(found.pdfs.get(doc_id, []), key=lambda path: (path.count("/"), path))
    if pdfs:
        return Document(doc_id=doc_id, path=pdfs[0])
    return Document(
        doc_id=doc_id,
        path=f"documents/{doc_id}.pdf",
        status="failed",
        reason=f"There is no {doc_id}.pdf below the folder. Download it from the benchmark ({HOME}, "
        "src_doc_files/paper_docs.zip) or set dataset.questions to a file without its questions.",
    )


def read(root: Path, params: DatasetParams) -> Dataset:
    """The questions of the benchmark's file, or of `dataset.questions`, and the papers they are about.

    Raises:
        DatasetError: if the file of questions is missing or holds what UDA's files do not. A missing PDF is no
            error: such a document is recorded as failed.
    """
    name = find_questions(root, params, question_files(params.format), FOLDERS)
    problems = Problems(root / name)
    ending = problems.path.suffix.lower()
    if ending not in (".csv", ".tsv", ".txt", ".json"):
        raise DatasetError(
            f"The questions file {problems.path} is neither CSV nor JSON.",
            remedy="Save the sheet as CSV (UTF-8), and name that file in dataset.questions.",
        )
    raw = _from_json(problems) if ending == ".json" else read_csv(problems.path, problems, (*_NEEDED, "answer_1"))
    rows: list[Row] = []
    for number, values in raw:
        try:
            rows.append((number, _as_row(values, params.format)))
        except ValueError as error:
            problems.add(number, f"{error}.")
    if not rows and not problems:
        problems.add(0, "it holds no questions.")
    questions = build_questions(unrepeated_ids(rows), str, problems)
    problems.raise_if_any()
    # that no pages are named is true of all of them, so it is a note and no oddity of a row
    questions = [q.model_copy(update={"quirks": [x for x in q.quirks if x != NO_PAGES]}) for q in questions]
    found = find_documents(root)
    documents = [_locate(doc_id, found) for doc_id in sorted({q.doc_id for q in questions})]
    notes = {"benchmark without evidence pages": _NO_EVIDENCE, **missing_note(documents)}
    return Dataset(params.format, "token_f1", documents, questions, notes, name)
