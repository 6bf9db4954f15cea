"""PaperTab and PaperText of UDA: several references, no gold pages, one folder of papers for both."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from docmemo.datasets.base import count_quirks
from docmemo.errors import DatasetError
from tests.datasets.helpers import BENCHMARKS, load, make_files, needs_benchmarks

HEADER = "doc_name|q_uid|question|answer_1|answer_2|answer_3"
LINES = (
    "1912.01214|uid1|which ones?|red, blue|Blue and red| ",
    "1801.05147|uid2|how many?|12| | ",
    '1801.05147|uid3|which?|"two\nlines, and a | sign"|say ""so""|no',
)


def make(root: Path, *lines: str, name: str = "paper_tab_qa.csv", header: str = HEADER) -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return root


def test_rows_become_questions_with_up_to_three_references(tmp_path: Path) -> None:
    make_files(make(tmp_path, *LINES[:2]), "documents/1912.01214.pdf", "documents/1801.05147.pdf")
    dataset = load(tmp_path, "papertab")
    single, several = dataset.questions
    assert (several.question_id, several.doc_id, several.question) == ("uid1", "1912.01214", "which ones?")
    assert (several.answer, several.references) == ("red, blue", ["Blue and red"])
    assert (single.answer, single.references) == ("12", [])
    assert (several.answer_format, several.answerable, several.evidence_pages) == ("Str", True, [])
    assert several.evidence_sources == ["table"]
    assert dataset.scorer == "token_f1"
    assert [(d.doc_id, d.path, d.status) for d in dataset.documents] == [
        ("1801.05147", "documents/1801.05147.pdf", "ok"),
        ("1912.01214", "documents/1912.01214.pdf", "ok"),
    ]


def test_cells_in_quotes_may_hold_line_ends_and_the_separator(tmp_path: Path) -> None:
    make(tmp_path, LINES[2].replace('say ""so""', '"say ""so"""'))
    (question,) = load(tmp_path, "papertab").questions
    assert question.answer == "two\nlines, and a | sign"
    assert question.references == ['say "so"', "no"]


def test_the_missing_pages_are_said_once_and_not_of_every_question(tmp_path: Path) -> None:
    make_files(make(tmp_path, *LINES[:2]), "documents/1912.01214.pdf", "documents/1801.05147.pdf")
    dataset = load(tmp_path, "papertab")
    assert all(question.quirks == [] for question in dataset.questions)
    assert list(count_quirks(dataset)) == ["benchmark without evidence pages"]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("papertab", "dataset/qa/paper_tab_qa.csv"),
        ("papertext", "paper_text_qa.csv"),
        ("papertext", "qa/paper_text_qa.csv"),
    ],
)
def test_the_layout_of_the_authors_repository_is_understood(tmp_path: Path, form: str, name: str) -> None:
    make_files(make(tmp_path, LINES[0], name=name), "dataset/src_doc_files/paper_docs/1912.01214.pdf")
    dataset = load(tmp_path, form)
    assert dataset.documents[0].path == "dataset/src_doc_files/paper_docs/1912.01214.pdf"
    assert (dataset.name, dataset.questions_file) == (form, name)
    assert dataset.questions[0].evidence_sources == [{"papertab": "table", "papertext": "text"}[form]]


@pytest.mark.parametrize("name", ["extended_qa_info/paper_tab_qa.json", "bench_paper_tab_qa.json"])
def test_the_json_file_of_the_benchmark_says_the_same(tmp_path: Path, name: str) -> None:
    make(tmp_path / "csv", *LINES[:2])
    values = {
        "1912.01214": [
            {
                "question": "which ones?",
                "q_uid": "uid1",
                "answers": [
                    {"answer": "red, blue", "type": "extractive"},
                    {"answer": "Blue and red", "type": "abstractive"},
                ],
                "evidence": [],
            }
        ],
        "1801.05147": [
            {"question": "how many?", "q_uid": "uid2", "answers": [{"answer": "12", "type": "extractive"}]}
        ],
    }
    path = tmp_path / "json" / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(values), encoding="utf-8")
    by_csv, by_json = load(tmp_path / "csv", "papertab"), load(tmp_path / "json", "papertab")
    assert list(by_csv.questions) == list(by_json.questions)


def test_a_file_from_a_spreadsheet_is_understood(tmp_path: Path) -> None:
    header = HEADER.replace("|", ",")
    make(tmp_path, '1912.01214,uid1,"which, ones?","red, blue",NaN,nan', header=header)
    (question,) = load(tmp_path, "papertab").questions
    assert (question.answer, question.references) == ("red, blue", [])


def test_a_missing_paper_is_a_failed_document_with_its_questions_kept(tmp_path: Path) -> None:
    make_files(make(tmp_path, *LINES[:2]), "documents/1801.05147.pdf")
    dataset = load(tmp_path, "papertab")
    gone = dataset.documents[1]
    assert (gone.doc_id, gone.status) == ("1912.01214", "failed")
    assert "no 1912.01214.pdf below the folder. Download it" in gone.reason
    assert len(dataset.questions) == 2
    assert dataset.notes["document missing"].count == 1


def test_papers_of_the_other_part_are_left_out(tmp_path: Path) -> None:
    make_files(make(tmp_path, LINES[0]), "documents/1912.01214.pdf", "documents/2001.03131.pdf")
    assert [d.doc_id for d in load(tmp_path, "papertab").documents] == ["1912.01214"]


def test_columns_that_are_missing_are_named_with_those_found(tmp_path: Path) -> None:
    make(tmp_path, "a|b|c", header="document|question|answer_1")
    with pytest.raises(
        DatasetError,
        match=r"paper_tab_qa.csv has 1 problem(.|\n)*no column 'doc_name'. Columns found: 'document', 'question', "
        r"'answer_1'. Columns needed: doc_name, question, answer_1",
    ):
        load(tmp_path, "papertab")


def test_a_row_without_document_or_question_is_named(tmp_path: Path) -> None:
    make(tmp_path, LINES[0], "|uid|q?|a||", "1801.05147|uid|  |a||")
    with pytest.raises(DatasetError) as caught:
        load(tmp_path, "papertab")
    assert "line 3: missing: doc_name" in str(caught.value)
    assert "line 4: missing: question" in str(caught.value)


def test_a_folder_without_the_questions_lists_what_was_looked_for(tmp_path: Path) -> None:
    make(tmp_path, LINES[0])
    with pytest.raises(
        DatasetError, match=r"no questions of papertext: none of paper_text_qa.csv, paper_text_qa.json"
    ):
        load(tmp_path, "papertext")


def test_a_spreadsheet_itself_is_refused_with_the_remedy(tmp_path: Path) -> None:
    make_files(make(tmp_path, LINES[0]), "questions.xlsx")
    with pytest.raises(DatasetError, match=r"questions.xlsx is neither CSV nor JSON. Save the sheet as CSV"):
        load(tmp_path, "papertab", questions="questions.xlsx")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_papers_are_found_through_links_and_links_in_a_circle_end(tmp_path: Path) -> None:
    make_files(tmp_path / "disk", "papers/1912.01214.pdf")
    root = make(tmp_path / "root", LINES[0])
    (root / "linked").symlink_to(tmp_path / "disk", target_is_directory=True)
    (tmp_path / "disk/up").symlink_to(root, target_is_directory=True)
    (document,) = load(root, "papertab").documents
    assert (document.path, document.status) == ("linked/papers/1912.01214.pdf", "ok")


@needs_benchmarks
@pytest.mark.parametrize(("form", "n_documents", "n_questions"), [("papertab", 4, 4), ("papertext", 7, 13)])
def test_the_real_folder_has_its_papers_and_questions(form: str, n_documents: int, n_questions: int) -> None:
    dataset = load(BENCHMARKS / "papertab", form)
    assert (len(dataset.documents), len(dataset.questions)) == (n_documents, n_questions)
    assert all(d.status == "ok" for d in dataset.documents)
    assert all(q.answer and q.answerable for q in dataset.questions)
    assert any(q.references for q in dataset.questions)
