"""LongDocURL: image files count from 0, pages from 1, and a question sees a window of its document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docmemo.datasets import base
from docmemo.datasets.base import count_quirks
from docmemo.documents.ocr import read_lines
from docmemo.documents.pdf import image_files, open_source
from docmemo.documents.render import pixels
from docmemo.errors import DatasetError
from docmemo.types import Document, Question
from tests.datasets.helpers import BENCHMARKS, load, make_files, needs_benchmarks, write_lines

ROOT_ELSEWHERE = "/mnt/somewhere/pdf_pngs/4000-4999"


def row(
    doc_no: str = "4000001", window: tuple[int, int] = (3, 5), n_pages: int = 6, **changes: Any
) -> dict[str, Any]:
    """A row as the benchmark writes it; `images` are the window's files."""
    values = {
        "question_id": f"free_{doc_no}_{window[0]}_{window[1]}_1",
        "doc_no": doc_no,
        "total_pages": n_pages,
        "start_end_idx": list(window),
        "question_type": "extract",
        "question": f"How many pages has {doc_no}?",
        "answer": 6,
        "detailed_evidences": "",
        "evidence_pages": [4],
        "evidence_sources": ["Table", "Layout"],
        "answer_format": "Integer",
        "task_tag": "Reasoning",
        "images": [f"{ROOT_ELSEWHERE}/{doc_no[:4]}/{doc_no}_{i - 1}.png" for i in range(window[0], window[1] + 1)],
        "pdf_path": f"/mnt/somewhere/ccpdf_zip/4000-4999/{doc_no}.pdf",
    }
    return {**values, **changes}


def make(root: Path, *rows: dict[str, Any], name: str = "LongDocURL.jsonl") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    write_lines(root / name, *rows)
    return root


def make_images(root: Path, doc_no: str, indices: range, folder: str = "pdf_pngs/4000-4999/4000") -> None:
    make_files(root, *(f"{folder}/{doc_no}_{i}.png" for i in indices))


def one(root: Path) -> tuple[Document, Question]:
    dataset = load(root, "longdocurl")
    return dataset.documents[0], dataset.questions[0]


def test_a_row_becomes_a_question_in_its_window(tmp_path: Path) -> None:
    make_images(make(tmp_path, row()), "4000001", range(6))
    document, question = one(tmp_path)
    assert (document.doc_id, document.kind, document.status) == ("4000001", "images", "ok")
    assert document.path == "pdf_pngs/4000-4999/4000"
    assert question.question_id == "free_4000001_3_5_1"
    assert (question.page_window, question.evidence_pages) == ((3, 5), [4])
    assert (question.answer, question.answer_format, question.answerable) == ("6", "Int", True)
    assert question.evidence_sources == ["table", "layout"]
    assert question.quirks == []
    assert load(tmp_path, "longdocurl").scorer == "longdocurl"


def test_page_n_of_the_document_is_the_file_numbered_one_less(tmp_path: Path) -> None:
    make_images(make(tmp_path, row(n_pages=12)), "4000001", range(12))
    document, question = one(tmp_path)
    files = image_files(tmp_path / document.path)
    assert [path.name for path in files] == [f"4000001_{i}.png" for i in range(12)]
    assert question.page_window is not None
    first, last = question.page_window
    assert [path.name for path in files[first - 1 : last]] == [Path(path).name for path in row()["images"]]


def test_documents_that_share_a_folder_have_their_own_pages(tmp_path: Path) -> None:
    make(tmp_path, row("4000001", n_pages=6), row("4000002", n_pages=11))
    make_images(tmp_path, "4000001", range(6))
    make_images(tmp_path, "4000002", range(11))
    dataset = load(tmp_path, "longdocurl")
    pages = {d.doc_id: [p.name for p in image_files(tmp_path / d.path)] for d in dataset.documents}
    assert pages == {
        "4000001": [f"4000001_{i}.png" for i in range(6)],
        "4000002": [f"4000002_{i}.png" for i in range(11)],
    }


@pytest.mark.parametrize(
    ("answer", "answer_format", "text", "kind"),
    [
        (5, "Integer", "5", "Int"),
        (23.73, "Float", "23.73", "Float"),
        ("A title", "String", "A title", "Str"),
        (["one", "two"], "List", "['one', 'two']", "List"),
        ([{"a": 1}, {"a": 2}], "List", "[{'a': 1}, {'a': 2}]", "List"),
        ({"a": 1}, "List", "[{'a': 1}]", "List"),
        ("Not answerable", "None", "Not answerable", "None"),
    ],
)
def test_every_kind_of_gold_answer_is_read(
    tmp_path: Path, answer: Any, answer_format: str, text: str, kind: str
) -> None:
    make_images(make(tmp_path, row(answer=answer, answer_format=answer_format)), "4000001", range(6))
    question = one(tmp_path)[1]
    assert (question.answer, question.answer_format) == (text, kind)
    assert question.answerable == (kind != "None")


def test_the_pages_that_the_benchmark_shows_are_in_scope_though_the_question_names_fewer(tmp_path: Path) -> None:
    shown = [f"{ROOT_ELSEWHERE}/4000/4000001_{i}.png" for i in range(30)]
    make_images(make(tmp_path, row(window=(5, 9), n_pages=40, images=shown)), "4000001", range(40))
    question = one(tmp_path)[1]
    assert question.page_window == (1, 30)
    assert question.quirks == [base.WIDER_WINDOW]


@pytest.mark.parametrize(
    "images",
    [
        [],
        None,
        ["4000001_2.png"],  # fewer than the window
        ["4000001_0.png", "4000001_9.png"],  # no run of pages
        ["4000002_2.png", "4000002_3.png", "4000002_4.png"],  # another document
        ["a", "b", "c"],
    ],
)
def test_without_a_usable_list_of_images_the_window_is_start_end_idx(tmp_path: Path, images: Any) -> None:
    make_images(make(tmp_path, row(images=images)), "4000001", range(6))
    assert one(tmp_path)[1].page_window == (3, 5)


def test_evidence_outside_the_window_and_unknown_sources_are_counted_and_kept(tmp_path: Path) -> None:
    make_images(make(tmp_path, row(evidence_pages=[2], evidence_sources=["Others", "Figure"])), "4000001", range(6))
    dataset = load(tmp_path, "longdocurl")
    (question,) = dataset.questions
    assert (question.evidence_pages, question.evidence_sources) == ([2], ["figure"])
    assert {name: quirk.count for name, quirk in count_quirks(dataset).items()} == {
        base.OUTSIDE_WINDOW: 1,
        base.OTHER_SOURCE: 1,
    }


def test_missing_pages_fail_the_document_and_keep_its_questions(tmp_path: Path) -> None:
    make(tmp_path, row("4000001"), row("4000002"))
    make_images(tmp_path, "4000001", range(6))
    make_files(tmp_path, *(f"pdf_pngs/4000-4999/4000/4000002_{i}.png" for i in (0, 1, 4, 5)))
    dataset = load(tmp_path, "longdocurl")
    whole, torn = dataset.documents
    assert (whole.status, torn.status) == ("ok", "failed")
    assert "2 of its 6 page images are missing (the first: 4000002_2.png)" in torn.reason
    assert "Download it" in torn.reason
    assert len(dataset.questions) == 2
    assert dataset.notes["document missing"].count == 1


def test_pages_must_not_be_counted_from_the_first_file_that_is_there(tmp_path: Path) -> None:
    make_images(make(tmp_path, row()), "4000001", range(2, 6))
    assert "the first: 4000001_0.png" in one(tmp_path)[0].reason


def test_a_pdf_stands_in_for_page_images_that_are_not_there(tmp_path: Path) -> None:
    make_files(make(tmp_path, row()), "pdfs/4000/4000001.pdf", "pngs/4000001_3.png")
    document, question = one(tmp_path)
    assert (document.path, document.kind, document.status) == ("pdfs/4000/4000001.pdf", "pdf", "ok")
    assert question.page_window == (3, 5)


@pytest.mark.parametrize("folder", ["", "data", "4000", "some/where/else"])
def test_images_are_found_wherever_they_lie(tmp_path: Path, folder: str) -> None:
    make_images(make(tmp_path, row()), "4000001", range(6), folder or ".")
    document = one(tmp_path)[0]
    assert (document.status, document.path) == ("ok", folder or ".")


@pytest.mark.parametrize(
    "name", ["LongDocURL_public.jsonl", "data/LongDocURL.jsonl", "LongDocURL_public_with_subtask_category.jsonl"]
)
def test_the_authors_file_names_are_all_known(tmp_path: Path, name: str) -> None:
    make_images(make(tmp_path, row(subTask=["SP_Table_Reasoning"]), name=name), "4000001", range(6))
    dataset = load(tmp_path, "longdocurl")
    assert (len(dataset.questions), dataset.questions_file) == (1, name)


def test_a_json_list_of_rows_may_be_named(tmp_path: Path) -> None:
    make_images(tmp_path, "4000001", range(6))
    (tmp_path / "cut.json").write_text(json.dumps([row()]), encoding="utf-8")
    assert len(load(tmp_path, "longdocurl", questions="cut.json").questions) == 1


def test_an_id_used_twice_stays_with_the_first_question(tmp_path: Path) -> None:
    make_images(make(tmp_path, row(), row(question="Another?")), "4000001", range(6))
    first, second = load(tmp_path, "longdocurl").questions
    assert first.question_id == "free_4000001_3_5_1"
    assert second.question_id.startswith("4000001-")


def test_a_folder_without_the_benchmark_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"no questions of longdocurl: none of LongDocURL.jsonl.*data get longdocurl"
    ):
        load(tmp_path, "longdocurl")


def test_everything_wrong_with_the_file_is_in_one_error(tmp_path: Path) -> None:
    make(
        tmp_path,
        {"question": "no document?"},
        row(doc_no=""),
        row(start_end_idx=[5, 2]),
        row(evidence_pages=["four"]),
        row(answer_format="Roman"),
        "{",
    )
    with pytest.raises(DatasetError) as caught:
        load(tmp_path, "longdocurl")
    for expected in (
        "line 1: missing: doc_no",
        "line 2: doc_no must be the document's number",
        "line 3: start_end_idx must be a first and a last page",
        "line 4: evidence_pages must hold page numbers",
        "line 5: unknown answer_format 'Roman'",
        "line 6: not JSON",
    ):
        assert expected in str(caught.value)


@needs_benchmarks
def test_the_three_real_questions_have_their_windows() -> None:
    dataset = load(BENCHMARKS / "longdocurl", "longdocurl")
    rows = [
        json.loads(line) for line in (BENCHMARKS / "longdocurl/LongDocURL.jsonl").read_text().splitlines() if line
    ]
    by_id = {r["question_id"]: r for r in rows}
    assert len(dataset.questions) == 3
    for question in dataset.questions:
        values = by_id[question.question_id]
        assert question.page_window == tuple(values["start_end_idx"])
        shown = [int(re.findall(r"_(\d+)\.png", path)[0]) for path in values["images"]]
        assert question.page_window == (shown[0] + 1, shown[-1] + 1)
        assert question.quirks == []
    assert {d.doc_id: d.status for d in dataset.documents} == {
        "4055915": "ok",
        "4127644": "failed",
        "4151603": "failed",
    }


@needs_benchmarks
def test_the_real_image_of_an_evidence_page_shows_what_the_question_asks_about() -> None:
    """Read with OCR, the evidence page holds the question's words, and the pages a slip of one would give do not."""
    root = BENCHMARKS / "longdocurl"
    dataset = load(root, "longdocurl")
    document = next(d for d in dataset.documents if d.status == "ok")
    (question,) = [q for q in dataset.questions if q.doc_id == document.doc_id]
    (evidence,) = question.evidence_pages
    assert question.page_window is not None
    assert question.page_window[0] < evidence < question.page_window[1]
    assert image_files(root / document.path)[evidence - 1].name == f"{document.doc_id}_{evidence - 1}.png"
    words = {word for word in re.findall(r"[a-z]+", question.question.lower()) if len(word) > 5}
    found = {}
    with open_source(root / document.path, "images") as source:
        for page in (evidence - 1, evidence, evidence + 1):
            image = pixels(source.page(page), 1.0)
            upper_half = image[: image.shape[0] // 2]
            text = " ".join(line.text for line in read_lines(upper_half, 1280, 0.5)).lower()
            found[page] = sum(word in text for word in words) / len(words)
    assert found[evidence] > 0.5
    assert found[evidence] > max(found[evidence - 1], found[evidence + 1])
