"""The committed sample corpus keeps its promises: size, pages, questions, gold pages, and byte-stable making."""

from __future__ import annotations

import ast
import json
import re
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf
import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "data" / "sample"
SCANNED = {"service_manual.pdf"}
SCANNED_PAGES = {("lab_handbook.pdf", 6)}
ANSWER_KEYS = {"question_id", "doc_id", "question", "answer", "answer_format"}
EVIDENCE_KEYS = {"evidence_pages", "evidence_sources", "answerable"}
SOURCES = {"text", "layout", "table", "chart", "figure"}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


DOCUMENTS = rows("documents.jsonl")
QUESTIONS = rows("questions.jsonl")
ANSWERABLE = [q for q in QUESTIONS if q["answerable"]]


@cache
def page_texts(doc_id: str) -> list[str]:
    with pymupdf.open(SAMPLE / "documents" / doc_id) as document:
        return [page.get_text() for page in document]


def squeezed(text: str) -> str:
    """Ligatures undone, line-end hyphens joined, and white space dropped, as a person reads."""
    text = unicodedata.normalize("NFKC", text)
    return re.sub(r"\s+", "", re.sub(r"(?<=\w)-\n", "", text)).casefold()


def answer_parts(question: dict[str, Any]) -> list[str]:
    if question["answer_format"] == "List":
        return [str(part) for part in ast.literal_eval(question["answer"])]
    return [question["answer"]]


def test_there_are_enough_documents_pages_and_questions() -> None:
    assert len(DOCUMENTS) >= 10
    assert sum(len(page_texts(d["doc_id"])) for d in DOCUMENTS) >= 150
    assert len(QUESTIONS) >= 60
    assert {d["language"] for d in DOCUMENTS} >= {"en", "zh", "de"}


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 4_000_000


def test_every_document_listed_is_there_and_no_other() -> None:
    assert {d["path"] for d in DOCUMENTS} == {f"documents/{p.name}" for p in (SAMPLE / "documents").iterdir()}
    assert all(d["path"] == f"documents/{d['doc_id']}" and d["title"] and d["doc_type"] for d in DOCUMENTS)


def test_question_ids_are_unique_and_fields_are_as_documented() -> None:
    assert len({q["question_id"] for q in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert set(question) == ANSWER_KEYS | EVIDENCE_KEYS
        assert question["answer_format"] in {"Str", "Int", "Float", "List", "None"}
        assert set(question["evidence_sources"]) <= SOURCES
        assert "{" not in question["question"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["question_id"])
def test_evidence_pages_are_pages_of_the_document(question: dict[str, Any]) -> None:
    pages = question["evidence_pages"]
    assert pages == sorted(set(pages))
    assert all(1 <= page <= len(page_texts(question["doc_id"])) for page in pages)
    assert bool(pages) == question["answerable"] == bool(question["evidence_sources"])


def test_numbers_are_written_so_that_they_can_be_read_as_numbers() -> None:
    for question in ANSWERABLE:
        if question["answer_format"] == "Int":
            assert str(int(question["answer"])) == question["answer"]
        elif question["answer_format"] == "Float":
            float(question["answer"])
        elif question["answer_format"] == "List":
            assert len(ast.literal_eval(question["answer"])) >= 2


def test_about_a_fifth_of_the_questions_cannot_be_answered() -> None:
    unanswerable = [q for q in QUESTIONS if not q["answerable"]]
    assert 0.17 <= len(unanswerable) / len(QUESTIONS) <= 0.23
    assert all(q["answer"] == "Not answerable" and q["answer_format"] == "None" for q in unanswerable)


def test_all_kinds_of_evidence_and_several_page_questions_occur() -> None:
    counts = {s: sum(s in q["evidence_sources"] for q in QUESTIONS) for s in SOURCES}
    assert min(counts.values()) >= 6, counts
    assert sum(len(q["evidence_pages"]) > 1 for q in QUESTIONS) >= 12


@pytest.mark.parametrize(
    "question",
    [q for q in ANSWERABLE if set(q["evidence_sources"]) <= {"text"} and q["doc_id"] not in SCANNED],
    ids=lambda q: q["question_id"],
)
def test_the_answer_to_a_text_question_is_printed_on_its_gold_pages(question: dict[str, Any]) -> None:
    texts = page_texts(question["doc_id"])
    gold = squeezed("\n".join(texts[page - 1] for page in question["evidence_pages"]))
    for part in answer_parts(question):
        assert squeezed(part) in gold, part


@pytest.mark.parametrize("doc_id", sorted(d["doc_id"] for d in DOCUMENTS if d["doc_id"] not in SCANNED))
def test_documents_with_a_text_layer_have_text_on_every_page(doc_id: str) -> None:
    for number, text in enumerate(page_texts(doc_id), start=1):
        assert (len(text.strip()) > 10) != ((doc_id, number) in SCANNED_PAGES)


def test_printed_numbers_of_the_annual_report_differ_from_physical_pages() -> None:
    with pymupdf.open(SAMPLE / "documents" / "annual_report.pdf") as document:
        assert len(document) == 40
        labels = [page.get_label() for page in document]
        assert labels[:6] == ["i", "ii", "iii", "iv", "v", "vi"]
        assert labels[6:] == [str(n) for n in range(1, 35)]
        assert document.get_toc()
        for page in list(document)[7:]:
            foot = page.get_text(clip=pymupdf.Rect(400, 780, 595, 842)).split()
            assert foot == [page.get_label()]


def test_the_budget_has_lettered_page_labels() -> None:
    with pymupdf.open(SAMPLE / "documents" / "city_budget.pdf") as document:
        assert {page.get_label()[:2] for page in document} == {"A-", "B-", "C-"}


def test_the_service_manual_is_a_scan_without_text() -> None:
    assert len(page_texts("service_manual.pdf")) == 15
    assert not any(text.strip() for text in page_texts("service_manual.pdf"))
    with pymupdf.open(SAMPLE / "documents" / "service_manual.pdf") as document:
        assert all(len(page.get_images()) == 1 for page in document)


def test_one_page_of_the_user_guide_is_turned() -> None:
    with pymupdf.open(SAMPLE / "documents" / "user_guide.pdf") as document:
        assert sorted(page.rotation for page in document)[-2:] == [0, 90]


def test_the_survey_has_ligatures_in_its_text_layer() -> None:
    assert "\ufb01" in "".join(page_texts("survey_report.pdf"))


def test_german_words_are_broken_at_line_ends() -> None:
    assert len(re.findall(r"\w-\n[a-zäöü]", "".join(page_texts("foerderung_de.pdf")))) >= 8


def test_page_counts_printed_in_footers_are_true() -> None:
    for doc_id, pattern in [("foerderung_de.pdf", r"Seite \d+ von (\d+)"), ("public_notice.pdf", r"Page \d of (\d)")]:
        texts = page_texts(doc_id)
        assert {int(n) for n in re.findall(pattern, "".join(texts))} == {len(texts)}


@pytest.mark.parametrize("stem", ["public_notice", "user_guide"])
def test_making_a_document_again_gives_the_committed_bytes(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fpdf")
    pytest.importorskip("pymupdf_fonts")
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n == "scripts" or n.startswith("scripts.")]:
        monkeypatch.delitem(sys.modules, name)
    from scripts.make_sample.documents import RECIPES

    (recipe,) = [r for r in RECIPES if r.doc_id == f"{stem}.pdf"]
    assert recipe.make().pdf == (SAMPLE / "documents" / recipe.doc_id).read_bytes()
