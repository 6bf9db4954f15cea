"""The sample corpus' layout, and formats by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docmemo.datasets.base import reader_of
from docmemo.errors import DatasetError
from tests.datasets.helpers import load, make_files, write_lines

QUESTION: dict[str, Any] = {
    "question_id": "plan-1",
    "doc_id": "plan",
    "question": "How long?",
    "answer": "3 years",
    "answer_format": "Str",
    "evidence_pages": [2],
    "evidence_sources": ["table"],
    "answerable": True,
}


def make_sample(root: Path, *questions: dict[str, Any]) -> None:
    make_files(root, "documents/plan.pdf")
    write_lines(
        root / "documents.jsonl",
        {"doc_id": "plan", "path": "documents/plan.pdf", "doc_type": "Plan", "title": "A plan", "language": "en"},
    )
    write_lines(root / "questions.jsonl", *(questions or (QUESTION,)))


def test_documents_and_questions_are_read(tmp_path: Path) -> None:
    make_sample(tmp_path)
    dataset = load(tmp_path, "sample")
    (document,), (question,) = dataset.documents, dataset.questions
    assert (document.doc_id, document.path, document.doc_type) == ("plan", "documents/plan.pdf", "Plan")
    assert (question.question_id, question.doc_type, question.quirks) == ("plan-1", "Plan", [])
    assert dataset.scorer == "mmlongbench"


def test_a_listed_document_must_be_there(tmp_path: Path) -> None:
    make_sample(tmp_path)
    (tmp_path / "documents/plan.pdf").unlink()
    with pytest.raises(DatasetError, match=r"line 1: the document documents/plan.pdf is missing"):
        load(tmp_path, "sample")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.pdf", "", "documents\\plan.pdf"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    make_sample(tmp_path)
    write_lines(tmp_path / "documents.jsonl", {"doc_id": "plan", "path": path})
    with pytest.raises(DatasetError, match="path must be relative"):
        load(tmp_path, "sample")


def test_questions_about_unknown_documents_and_unknown_columns_are_refused(tmp_path: Path) -> None:
    make_sample(tmp_path, QUESTION | {"doc_id": "other"})
    with pytest.raises(DatasetError, match="unknown document 'other'"):
        load(tmp_path, "sample")
    make_sample(tmp_path, QUESTION | {"mood": "good"})
    with pytest.raises(DatasetError, match="unknown column 'mood'"):
        load(tmp_path, "sample")


def test_an_unknown_format_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DatasetError, match=r"Unknown dataset format 'nope'.*folder, .*mmlongbench, .*sample"):
        reader_of("nope")
