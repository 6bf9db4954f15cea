from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.snippets import SnippetFinder
from docmemo.types import PageSet
from tests.retrieval.build import document, page, table_page

ROWS = [["Item", "2020", "2019"], ["Revenue", "1,200", "1,100"], ["Operating costs", "700", "650"]]
DOC = document(
    page(
        1,
        "The company was founded long ago. It employs",
        "many people. The auditor found",
        "irregularities in Lisbon. The company paid a fine.",
    ),
    table_page(2, ROWS),
    page(3),
    page(4, "The company has people in many places."),
)


def finder(doc: PageSet = DOC) -> SnippetFinder:
    return SnippetFinder(doc, LexicalIndex.build([p.text for p in doc.pages], doc.language))


def test_the_sentence_that_answers_is_the_best_snippet() -> None:
    best = finder().snippets(1, "What did the auditor find in Lisbon?")[0]
    assert best.text == "The auditor found irregularities in Lisbon."
    assert set(best.covered) == {"auditor", "lisbon"} or set(best.covered) == {"auditor", "lisbon", "find"}


def test_a_snippet_marks_the_lines_it_stands_on() -> None:
    best = finder().snippets(1, "auditor Lisbon")[0]
    lines = DOC.pages[0].lines
    assert best.boxes == (lines[1].bbox, lines[2].bbox)
    assert best.bbox == (lines[1].bbox[0], lines[1].bbox[1], lines[2].bbox[2], lines[2].bbox[3])


def test_a_table_row_is_found_with_its_header() -> None:
    best = finder().snippets(2, "What were the operating costs in 2019?")[0]
    assert best.text == "Item | 2020 | 2019\nOperating costs | 700 | 650"
    assert len(best.boxes) == 6


def test_rows_of_one_table_can_both_be_snippets() -> None:
    texts = [s.text.split("\n")[-1] for s in finder().snippets(2, "revenue and operating costs in 2019")]
    assert {"Revenue | 1,200 | 1,100", "Operating costs | 700 | 650"} <= set(texts)


def test_nothing_covered_is_no_snippet() -> None:
    assert finder().snippets(1, "zebra") == []
    assert finder().snippets(3, "company") == []
    assert finder().snippets(1, "") == []


def test_an_unknown_page_is_refused() -> None:
    with pytest.raises(ValueError, match="no page 9"):
        finder().snippets(9, "company")


def test_rare_terms_are_those_few_pages_hold_and_that_exist() -> None:
    found = finder().rare_terms("Which company in Lisbon saw a zebra?", limit=2)
    assert [term.word for term in found] == ["lisbon", "company"]
    assert found[0].idf > found[1].idf > 0


def test_chinese_sentences_are_found() -> None:
    doc = document(page(1, "公司收入增长。员工培", "训计划很多。风险很小。"), page(2, "公司收入"), language="zh")
    best = finder(doc).snippets(1, "员工培训计划")[0]
    assert best.text == "员工培训计划很多。"
    assert len(best.boxes) == 2


def test_ocr_text_is_searched_too() -> None:
    doc = document(
        page(1, "Engine temperature sensor", "", "Inlet air", source="ocr"), page(2, "Other", source="ocr")
    )
    assert "temperature" in finder(doc).snippets(1, "temperature sensor")[0].text


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["company", "auditor", "Lisbon", "people", "fine", "x"]), max_size=6), st.integers(0, 5)
)
def test_snippets_are_ordered_bounded_and_do_not_overlap(query: list[str], limit: int) -> None:
    found = finder().snippets(1, " ".join(query), limit)
    assert len(found) <= limit
    scores = [s.score for s in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < s <= 1 for s in scores)
    boxes = [box for s in found for box in s.boxes]
    assert len(boxes) == len(set(boxes))
