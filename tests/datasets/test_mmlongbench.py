"""MMLongBench-Doc's own files: kept as they are, with what is odd named and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.datasets import base
from docmemo.datasets.base import count_quirks, question_ids
from docmemo.errors import DatasetError
from tests.datasets.helpers import BENCHMARKS, load, make_benchmark, needs_benchmarks, sample_row


def test_a_row_becomes_a_question(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row())
    (question,) = load(tmp_path, "mmlongbench").questions
    assert question.doc_id == "report.pdf"
    assert question.evidence_pages == [2, 3]
    assert question.evidence_sources == ["table", "text"]
    assert (question.answer, question.answer_format, question.answerable) == ("8", "Int", True)
    assert question.quirks == []


def test_lists_may_be_lists_or_text_but_never_code(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(evidence_pages=[4]))
    assert load(tmp_path, "mmlongbench").questions[0].evidence_pages == [4]
    for bad in ("[__import__('os')]", "[1, 2", "[" * 5000, "[1.5]", "['a']", "[True]", "[-1]"):
        make_benchmark(tmp_path, sample_row(evidence_pages=bad))
        with pytest.raises(DatasetError, match="row 1: evidence_pages"):
            load(tmp_path, "mmlongbench")


def test_unknown_evidence_sources_are_listed_with_the_known(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(), sample_row(question="b", evidence_sources="['Map']"))
    with pytest.raises(DatasetError, match=r"row 2: unknown evidence source 'Map' \(known: .*table"):
        load(tmp_path, "mmlongbench")


@pytest.mark.parametrize(
    ("changes", "quirk"),
    [
        ({"evidence_pages": "[0, 2]"}, base.PAGE_ZERO),
        ({"evidence_pages": "[2, 2]"}, base.REPEATED_PAGE),
        ({"evidence_pages": "[]"}, base.NO_PAGES),
        ({"evidence_sources": "[]"}, base.NO_SOURCES),
        ({"answer": "Not answerable", "answer_format": "None", "evidence_sources": "[]"}, base.SOME_PAGES),
        ({"answer": "Not answerable", "answer_format": "None", "evidence_pages": "[]"}, base.SOME_SOURCES),
        ({"answer_format": "None"}, base.FORMAT_CLASH),
    ],
)
def test_each_quirk_is_named_and_the_gold_kept(tmp_path: Path, changes: dict[str, str], quirk: str) -> None:
    make_benchmark(tmp_path, sample_row(**changes))
    dataset = load(tmp_path, "mmlongbench")
    assert dataset.questions[0].quirks == [quirk]
    assert count_quirks(dataset)[quirk].count == 1
    assert count_quirks(dataset)[quirk].explanation


def test_pages_past_the_end_show_once_page_counts_are_known(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(evidence_pages="[1418]"))
    questions = load(tmp_path, "mmlongbench").questions
    assert base.annotate_page_bounds(questions, {"report.pdf": 1418})[0].quirks == []
    assert base.annotate_page_bounds(questions, {})[0].quirks == []
    once = base.annotate_page_bounds(questions, {"report.pdf": 40})
    assert once[0].quirks == [base.PAST_END]
    assert base.annotate_page_bounds(once, {"report.pdf": 40}) == once


def test_a_missing_pdf_is_a_failed_document_and_not_an_abort(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(), sample_row(doc_id="gone.pdf"))
    dataset = load(tmp_path, "mmlongbench")
    gone = dataset.documents[0]
    assert (gone.doc_id, gone.status) == ("gone.pdf", "failed")
    assert "documents/gone.pdf is missing. Download it" in gone.reason
    assert len(dataset.questions) == 2
    assert dataset.notes["document missing"].count == 1


def test_documents_nobody_asks_about_are_prepared_unless_the_questions_are_a_cut(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(), documents=("report.pdf", "other.pdf"))
    dataset = load(tmp_path, "mmlongbench")
    assert [d.doc_id for d in dataset.documents] == ["other.pdf", "report.pdf"]
    assert dataset.notes["document without questions"].count == 1
    (tmp_path / "samples.json").rename(tmp_path / "cut.json")
    dataset = load(tmp_path, "mmlongbench", questions="cut.json")
    assert [d.doc_id for d in dataset.documents] == ["report.pdf"]
    assert dataset.notes["document without questions"].count == 1


def test_a_document_outside_the_folder_is_refused(tmp_path: Path) -> None:
    make_benchmark(tmp_path, sample_row(doc_id="../secret.pdf"))
    with pytest.raises(DatasetError, match="stay inside"):
        load(tmp_path, "mmlongbench")


def test_what_is_no_list_of_rows_is_one_clear_error(tmp_path: Path) -> None:
    make_benchmark(tmp_path)
    for text, message in [
        ("{}", "a JSON list of questions"),
        ("[]", "a JSON list of questions"),
        ("[3]", "row 1: a JSON object"),
        ('[{"doc_id": "a.pdf"}]', "row 1: missing: question, answer"),
        ("[", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ]:
        (tmp_path / "samples.json").write_text(text)
        with pytest.raises(DatasetError, match=message):
            load(tmp_path, "mmlongbench")


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_ids_survive_reordering(questions: list[str], random: object) -> None:
    rows = [("report.pdf", q, str(i)) for i, q in enumerate(questions)]
    expected = dict(zip(rows, question_ids(rows), strict=True))
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dict(zip(shuffled, question_ids(shuffled), strict=True)) == expected
    assert len(set(expected.values())) == len(rows)


def test_ids_survive_leaving_other_questions_out() -> None:
    rows = [("report.pdf", q, "") for q in ("one", "two", "three")]
    assert question_ids(rows[1:2]) == question_ids(rows)[1:2]


def test_long_names_that_start_alike_do_not_share_ids() -> None:
    ids = question_ids([(f"{'long' * 20}{n}.pdf", "q?", "") for n in "12"])
    assert len(set(ids)) == 2


@needs_benchmarks
def test_the_real_folder_has_its_questions_documents_and_quirks() -> None:
    dataset = load(BENCHMARKS / "mmlongbench", "mmlongbench")
    rows = json.loads((BENCHMARKS / "mmlongbench/samples.json").read_text())
    assert len(dataset.questions) == 339
    assert len(dataset.documents) == 37
    assert all(d.status == "ok" for d in dataset.documents)
    assert len({q.question_id for q in dataset.questions}) == 339
    unanswerable = [r["answer"] == "Not answerable" for r in rows]
    counts = {name: quirk.count for name, quirk in count_quirks(dataset).items()}
    assert counts == {
        base.PAGE_ZERO: sum(r["evidence_pages"] == "[0]" for r in rows),
        base.NO_PAGES: sum(r["evidence_pages"] == "[]" and not u for r, u in zip(rows, unanswerable, strict=True)),
        base.SOME_PAGES: sum(r["evidence_pages"] != "[]" and u for r, u in zip(rows, unanswerable, strict=True)),
        base.NO_SOURCES: sum(
            r["evidence_sources"] == "[]" and not u for r, u in zip(rows, unanswerable, strict=True)
        ),
        base.SOME_SOURCES: sum(r["evidence_sources"] != "[]" and u for r, u in zip(rows, unanswerable, strict=True)),
    }
    assert sum(q.answerable is False for q in dataset.questions) == 69


@needs_benchmarks
def test_a_cut_of_the_real_questions_keeps_their_ids() -> None:
    root = BENCHMARKS / "mmlongbench"
    everything = {(q.doc_id, q.question): q.question_id for q in load(root, "mmlongbench").questions}
    smoke = load(root, "mmlongbench", questions="samples-smoke.json")
    assert (len(smoke.documents), len(smoke.questions)) == (6, 35)
    assert all(everything[q.doc_id, q.question] == q.question_id for q in smoke.questions)
