"""Any folder: what is a document, what is passed over, and how questions find their document."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from docmemo.datasets.base import DUPLICATE, OUTSIDE_WINDOW, PAGE_ZERO, count_quirks
from docmemo.errors import DatasetError
from tests.datasets.helpers import BENCHMARKS, load, make_files, needs_benchmarks, write_lines


def ids(root: Path) -> list[str]:
    return [d.doc_id for d in load(root).documents]


def test_every_pdf_is_a_document_whatever_the_case_of_its_ending(tmp_path: Path) -> None:
    make_files(tmp_path, "b.PDF", "a.pdf", "deep/er/c.Pdf")
    assert ids(tmp_path) == ["a.pdf", "b.PDF", "deep/er/c.Pdf"]


def test_a_folder_that_directly_holds_images_is_one_document(tmp_path: Path) -> None:
    make_files(tmp_path, "book/p1.png", "book/p2.JPG", "book/notes/p.webp", "a.pdf")
    dataset = load(tmp_path)
    assert [(d.doc_id, d.kind) for d in dataset.documents] == [
        ("a.pdf", "pdf"),
        ("book", "images"),
        ("book/notes", "images"),
    ]


def test_images_in_the_root_go_by_the_name_of_the_folder(tmp_path: Path) -> None:
    make_files(tmp_path / "scan", "1.tif", "2.tif")
    (document,) = load(tmp_path / "scan").documents
    assert (document.doc_id, document.path, document.kind) == ("scan", ".", "images")


def test_other_files_are_counted_and_hidden_ones_are_not(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf", "notes.txt", "sub/data.csv", ".hidden.pdf", ".git/x.pdf", "sub/.DS_Store")
    dataset = load(tmp_path)
    assert [d.doc_id for d in dataset.documents] == ["a.pdf"]
    assert dataset.notes["file ignored"].count == 2
    assert "notes.txt" in dataset.notes["file ignored"].explanation


def test_a_file_that_only_claims_to_be_a_pdf_is_still_listed(tmp_path: Path) -> None:
    (tmp_path / "page.pdf").write_text("<html></html>")
    assert ids(tmp_path) == ["page.pdf"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_in_a_circle_end_and_double_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_files(root, "z/a.pdf")
    make_files(tmp_path / "elsewhere", "b.pdf")
    (root / "z/up").symlink_to(root, target_is_directory=True)
    (root / "alias").symlink_to(root / "z", target_is_directory=True)
    (root / "outside").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (root / "gone.pdf").symlink_to(root / "nowhere.pdf")
    assert ids(root) == ["gone.pdf", "outside/b.pdf", "z/a.pdf"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_not_utf8_is_a_failed_document(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    (tmp_path / os.fsdecode(b"caf\xe9.pdf")).write_bytes(b"x")
    document = load(tmp_path).documents[1]
    assert (document.doc_id, document.status) == ("caf\\xe9.pdf", "failed")
    assert "Rename" in document.reason


def test_an_empty_folder_and_a_missing_one_are_errors_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no documents.*Put \*\.pdf"):
        load(tmp_path)
    with pytest.raises(DatasetError, match=r"does not exist.*dataset\.root"):
        load(tmp_path / "nope")


def test_questions_find_their_document_by_path_name_or_stem(tmp_path: Path) -> None:
    make_files(tmp_path, "x/a.pdf", "y/b.pdf", "scans/1.png")
    names = ["x/a.pdf", "./x/a.pdf", "a.pdf", "a", "x\\a.pdf", "scans"]
    write_lines(tmp_path / "questions.jsonl", *({"question": f"q{i}?", "doc_id": n} for i, n in enumerate(names)))
    assert [q.doc_id for q in load(tmp_path).questions] == ["scans", *["x/a.pdf"] * 5]


def test_an_ambiguous_name_is_an_error_that_lists_what_it_may_mean(tmp_path: Path) -> None:
    make_files(tmp_path, "x/a.pdf", "y/a.pdf")
    write_lines(tmp_path / "questions.jsonl", {"question": "q?", "doc_id": "a.pdf"})
    with pytest.raises(DatasetError, match=r"line 1: doc_id 'a.pdf' is ambiguous: x/a.pdf, y/a.pdf"):
        load(tmp_path)


def test_every_field_is_read_from_csv_as_from_json_lines(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_files(tmp_path / name, "a.pdf")
    write_lines(
        tmp_path / "one/questions.jsonl",
        {
            "question": "How much, in €?",
            "doc_id": "a.pdf",
            "question_id": "q-1",
            "answer": 8,
            "answer_format": "int",
            "evidence_pages": [3, 5],
            "evidence_sources": ["table", "Chart"],
            "page_window": [1, 9],
            "access_labels": ["staff", "board"],
            "doc_type": "Report",
        },
    )
    header = (
        "question,doc_id,question_id,answer,answer_format,evidence_pages,evidence_sources,page_window,"
        "access_labels,doc_type"
    )
    (tmp_path / "two/questions.csv").write_bytes(
        b"\xef\xbb\xbf"
        + f'{header}\r\n"How much, in €?",a.pdf,q-1,8,Int,3;5,table;chart,1-9,staff;board,Report\r\n'.encode()
    )
    (from_json,), (from_csv,) = load(tmp_path / "one").questions, load(tmp_path / "two").questions
    assert from_json == from_csv
    assert (from_csv.answer, from_csv.answer_format, from_csv.answerable) == ("8", "Int", True)
    assert (from_csv.evidence_pages, from_csv.page_window) == ([3, 5], (1, 9))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_may_use_the_delimiter_of_its_spreadsheet(tmp_path: Path, delimiter: str) -> None:
    make_files(tmp_path, "a.pdf")
    (tmp_path / "questions.csv").write_text(
        f'question{delimiter}doc_id{delimiter}evidence_pages\n"multi\nline?"{delimiter}a.pdf{delimiter}"[3, 5]"\n\n'
    )
    (question,) = load(tmp_path).questions
    assert (question.question, question.evidence_pages) == ("multi\nline?", [3, 5])


def test_all_problems_of_a_file_come_in_one_error_with_line_numbers(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf", "b.pdf")
    write_lines(
        tmp_path / "questions.jsonl",
        {"question": "fine?", "doc_id": "a.pdf", "question_id": "x"},
        "{not json",
        "[1]",
        {"question": "  ", "doc_id": "a.pdf"},
        {"question": "where?", "doc_id": "zzz.pdf"},
        {"question": "again?", "doc_id": "a.pdf", "question_id": "x"},
        {"question": "pages?", "doc_id": "a.pdf", "evidence_pages": "three"},
        {"question": "format?", "doc_id": "a.pdf", "answer_format": "Roman"},
        {"question": "half \\ud800?", "doc_id": "a.pdf"} | {"answer": {"a": 1}},
        {"question": "none?"},
        {"question": "window?", "doc_id": "a.pdf", "page_window": [5, 2]},
        {"question": "many?", "doc_id": "a.pdf", "evidence_sources": ["song"]},
        '{"question": "q \\ud800", "doc_id": "a.pdf"}',
    )
    with pytest.raises(DatasetError) as caught:
        load(tmp_path)
    text = str(caught.value)
    assert "12 problems" in text
    assert "... and 2 more" in text
    assert "nothing has been processed" in text
    for expected in (
        "line 2: not JSON",
        "line 3: a JSON object is wanted",
        "line 4: the question is empty",
        "line 5: unknown document 'zzz.pdf' (there are: a.pdf, b.pdf)",
        "line 6: question_id 'x' is already used in line 1",
        "line 7: evidence_pages must hold page numbers, not 'three'",
        "line 8: unknown answer_format 'Roman' (known: Str, Int, Float, List, None)",
        "line 9: answer must be text",
        "line 10: doc_id is missing",
        "line 11: page_window",
    ):
        assert expected in text


def test_csv_problems_name_the_line_a_row_starts_in(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf", "b.pdf")
    (tmp_path / "questions.csv").write_text('question,doc_id\n"two\nlines",a.pdf\nq?,no.pdf\nq, with comma?,a.pdf\n')
    with pytest.raises(
        DatasetError, match=r"line 4: unknown document 'no.pdf'(.|\n)*line 5: 3 cells under 2 columns"
    ):
        load(tmp_path)


def test_half_a_character_in_json_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    write_lines(tmp_path / "questions.jsonl", '{"question": "q \\ud800", "doc_id": "a.pdf"}')
    with pytest.raises(DatasetError, match="line 1: question holds half of a character"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("question\nq?\n".encode("utf-16"), "UTF-16"),
        (b"question\nfine\ncaf\xe9?\n", "byte 0xe9 in line 3"),
    ],
)
def test_another_encoding_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    make_files(tmp_path, "a.pdf")
    (tmp_path / "questions.csv").write_bytes(data)
    with pytest.raises(DatasetError, match=rf"{message}.*Save it as UTF-8"):
        load(tmp_path)


def test_a_column_with_a_slip_is_an_error_and_one_without_meaning_is_counted(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    path = tmp_path / "questions.csv"
    path.write_text("question,evidence_page\nq?,3\n")
    with pytest.raises(DatasetError, match=r"unknown column 'evidence_page'. Did you mean 'evidence_pages'"):
        load(tmp_path)
    path.write_text("question,author\nq?,me\n")
    assert load(tmp_path).notes["column ignored"].count == 1


def test_columns_that_are_missing_are_one_problem_that_names_those_found(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf", "b.pdf")
    path = tmp_path / "questions.csv"
    path.write_text("Question,document\nq?,a.pdf\nr?,b.pdf\n")
    with pytest.raises(DatasetError) as caught:
        load(tmp_path)
    text = str(caught.value)
    assert f"{path} has 1 problem" in text
    assert "no column 'question'. Columns found: 'Question', 'document'. Columns needed: question" in text
    assert "known: question, doc_id" in text
    assert "Rename 'Question' to 'question'?" in text
    path.write_text("question,document\nq?,a.pdf\nr?,b.pdf\n")
    with pytest.raises(
        DatasetError, match=r"1 problem(.|\n)*no column 'doc_id'. Columns found: 'question', 'document'"
    ):
        load(tmp_path)
    path.unlink()
    write_lines(tmp_path / "questions.jsonl", {"text": "q?", "doc_id": "a.pdf"}, {"text": "r?", "doc_id": "b.pdf"})
    with pytest.raises(DatasetError, match=r"1 problem(.|\n)*no column 'question'. Columns found: 'text', 'doc_id'"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('"[""St. Louis, Missouri"", ""the city; there""]"', ["St. Louis, Missouri", "the city; there"]),
        ('"St. Louis, Missouri | the city; there"', ["St. Louis, Missouri", "the city; there", " "]),
    ],
)
def test_further_reference_answers_may_be_a_list_or_cells_with_a_bar(
    tmp_path: Path, cell: str, value: list[str]
) -> None:
    for name in ("csv", "json"):
        make_files(tmp_path / name, "a.pdf")
    (tmp_path / "csv/questions.csv").write_text(f"question,answer,references\nwhere?,St. Louis,{cell}\n")
    write_lines(tmp_path / "json/questions.jsonl", {"question": "where?", "answer": "St. Louis", "references": value})
    (from_csv,), (from_json,) = load(tmp_path / "csv").questions, load(tmp_path / "json").questions
    assert from_csv.answer == from_json.answer == "St. Louis"
    assert from_csv.references == from_json.references == ["St. Louis, Missouri", "the city; there"]


def test_the_first_reference_is_the_answer_where_none_is_given(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    write_lines(tmp_path / "questions.jsonl", {"question": "q?", "references": ["one", "two", "one"]})
    (question,) = load(tmp_path).questions
    assert (question.answer, question.references, question.answerable) == ("one", ["two"], True)


def test_evidence_outside_the_page_window_is_named(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    rows = [
        {"question": q, "page_window": "3-8", "evidence_pages": p} for q, p in (("in?", "3;8"), ("out?", "[2, 5]"))
    ]
    write_lines(tmp_path / "questions.jsonl", *rows)
    assert [q.quirks for q in load(tmp_path).questions] == [[], [OUTSIDE_WINDOW]]


def test_correcting_an_answer_changes_no_id(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    rows = [{"question": "q?", "answer": "b", "page_window": "4-6"}, {"question": "q?", "answer": "a"}]
    write_lines(tmp_path / "questions.jsonl", *rows)
    before = [(q.question_id, q.page_window) for q in load(tmp_path).questions]
    corrected = [rows[0] | {"answer": "A", "references": ["x"]}, rows[1] | {"answer": "z", "evidence_pages": [1]}]
    write_lines(tmp_path / "questions.jsonl", *corrected)
    assert [(q.question_id, q.page_window) for q in load(tmp_path).questions] == before
    write_lines(tmp_path / "questions.jsonl", *reversed(corrected))
    assert [(q.question_id, q.page_window) for q in load(tmp_path).questions] == before[::-1]


def test_two_default_question_files_need_a_choice(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    (tmp_path / "questions.csv").write_text("question\nfrom csv?\n")
    write_lines(tmp_path / "questions.jsonl", {"question": "from json?"})
    with pytest.raises(DatasetError, match="holds both"):
        load(tmp_path)
    (question,) = load(tmp_path, questions="questions.csv").questions
    assert question.question == "from csv?"
    with pytest.raises(DatasetError, match=r"other.csv does not exist"):
        load(tmp_path, questions="other.csv")
    (tmp_path / "q.xlsx").write_text("")
    with pytest.raises(DatasetError, match=r"neither .jsonl nor .csv"):
        load(tmp_path, questions="q.xlsx")


def test_repeated_questions_and_page_zero_are_kept_and_counted(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf")
    row = {"question": "q?", "answer": "x", "evidence_pages": [0], "evidence_sources": "text"}
    write_lines(tmp_path / "questions.jsonl", row, row)
    dataset = load(tmp_path)
    first, second = dataset.questions
    assert second.question_id == f"{first.question_id}-2"
    counts = {name: quirk.count for name, quirk in count_quirks(dataset).items()}
    assert counts == {DUPLICATE: 1, PAGE_ZERO: 2}


def test_the_same_question_about_documents_of_one_name_gets_different_ids(tmp_path: Path) -> None:
    make_files(tmp_path, "x/a.pdf", "y/a.pdf")
    rows = [{"question": "q?", "doc_id": f"{folder}/a.pdf"} for folder in "xy"]
    write_lines(tmp_path / "questions.jsonl", *rows)
    forward = {q.doc_id: q.question_id for q in load(tmp_path).questions}
    write_lines(tmp_path / "questions.jsonl", *reversed(rows))
    assert forward == {q.doc_id: q.question_id for q in load(tmp_path).questions}
    assert len(set(forward.values())) == 2


def test_limit_keeps_the_first_documents_by_name_and_their_questions(tmp_path: Path) -> None:
    make_files(tmp_path, "a.pdf", "b.pdf", "c.pdf")
    write_lines(tmp_path / "questions.jsonl", *({"question": f"{n}?", "doc_id": n} for n in "cab"))
    dataset = load(tmp_path, limit=2)
    assert [d.doc_id for d in dataset.documents] == ["a.pdf", "b.pdf"]
    assert [q.question for q in dataset.questions] == ["a?", "b?"]


@needs_benchmarks
def test_the_hard_pdfs_are_all_listed() -> None:
    assert len(load(BENCHMARKS / "hard-pdfs").documents) == 28


@pytest.mark.parametrize("name", ["../q.csv", "/tmp/q.csv", "a/../../q.csv"])
def test_questions_outside_the_folder_are_refused_since_their_changes_would_go_unnoticed(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(DatasetError, match="outside the dataset's folder"):
        load(tmp_path, "folder", questions=name)
