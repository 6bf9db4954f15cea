from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmemo.config import RetrievalParams
from docmemo.errors import ArtifactError
from docmemo.retrieval.candidates import top_k
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.types import PageSet
from tests.retrieval.build import document, page

DOC = document(
    page(1, "Annual report of the company"),
    page(2, "Revenue rose strongly in 2019", printed="1"),
    page(3, "Employees and their training", printed="2"),
    page(4),
    page(5, "Figure 1: Revenue by region", "Revenue in Europe fell"),
    page(6, "Risk factors: suppliers, trade"),
)


def retriever(doc: PageSet = DOC, **params: float) -> PageRetriever:
    return PageRetriever(
        doc, LexicalIndex.build([p.text for p in doc.pages], doc.language), RetrievalParams(**params)
    )


def test_the_page_that_speaks_of_it_comes_first() -> None:
    scores = retriever().score("Which risk factors concern suppliers?", range(1, 7))
    assert top_k(scores, list(range(1, 7)), 1) == [6]


def test_a_page_named_outright_comes_first() -> None:
    r = retriever()
    assert top_k(r.score("What is said on page 4?", r.pages), r.pages, 1) == [4]
    assert top_k(r.score("What does Figure 1 say about employees?", r.pages), r.pages, 1) == [5]


@given(st.permutations([1, 2, 3, 4, 5, 6]))
def test_scores_come_in_the_order_asked_for(pages: list[int]) -> None:
    r = retriever()
    by_page = dict(zip(r.pages, r.score("revenue in 2019", r.pages), strict=True))
    np.testing.assert_allclose(r.score("revenue in 2019", pages), [by_page[p] for p in pages], atol=1e-9)


@given(st.sets(st.integers(1, 6), min_size=1))
def test_scores_are_relative_to_the_pages_in_scope(pages: set[int]) -> None:
    r = retriever(reference_weight=0)
    scores = r.score("revenue employees", sorted(pages))
    assert abs(scores.sum()) < 1e-9
    assert np.isfinite(scores).all()


@settings(deadline=None)
@given(st.text())
def test_any_query_gives_finite_scores(query: str) -> None:
    assert np.isfinite(retriever().score(query, range(1, 7))).all()


def test_a_query_without_known_terms_leaves_all_pages_equal() -> None:
    assert not retriever().score("zebra?", range(1, 7)).any()


def test_no_pages_in_scope_give_no_scores() -> None:
    assert retriever().score("revenue", []).shape == (0,)


def test_a_page_outside_the_document_is_refused() -> None:
    with pytest.raises(ValueError, match="no page 7"):
        retriever().score("revenue", [7])


def test_an_index_of_another_document_is_refused() -> None:
    with pytest.raises(ArtifactError, match="2 pages"):
        PageRetriever(DOC, LexicalIndex.build(["a", "b"]))


def test_several_documents_are_ranked_together() -> None:
    other = document(page(1, "Zebras live in Africa"), page(2, "Revenue of the zoo"), doc_id="zoo.pdf")
    pairs = [(doc, LexicalIndex.build([p.text for p in doc.pages], "en")) for doc in (DOC, other)]
    joint = PageRetriever.joint(pairs)
    assert joint.pages == list(range(1, 9))
    best = top_k(joint.score("Where do zebras live?", joint.pages), joint.pages, 1)[0]
    assert joint.locate(best) == ("zoo.pdf", 1)
    strengths = joint.reference("page 2")
    assert strengths[1] == strengths[7] > strengths[2] > 0  # index 2 of each document, printed 2 of the first


def test_german_questions_find_german_pages() -> None:
    doc = document(page(1, "Die Erhöhung der Mieten"), page(2, "Das Wetter"), page(3, "Der Verkehr"), language="de")
    r = retriever(doc)
    assert top_k(r.score("Welche Mieterhöhungen und Mieten gab es?", r.pages), r.pages, 1) == [1]


def test_chinese_questions_find_chinese_pages() -> None:
    doc = document(page(1, "公司收入增长"), page(2, "员工培训计划"), page(3, "风险因素"), language="zh")
    r = retriever(doc)
    assert top_k(r.score("员工培训的内容是什么？", r.pages), r.pages, 1) == [2]


def test_arabic_questions_find_arabic_pages() -> None:
    doc = document(page(1, "تقرير عن المدارس"), page(2, "الطقس اليوم"), page(3, "حركة السير"), language="ar")
    r = retriever(doc)
    assert top_k(r.score("كم عدد المدارس في التقرير؟", r.pages), r.pages, 1) == [1]


def test_documents_of_several_languages_are_each_asked_in_their_own() -> None:
    english = document(page(1, "Managers of the company"), page(2, "Weather"))
    german = document(page(1, "Die Erhöhungen der Mieten"), page(2, "Das Wetter"), language="de", doc_id="g.pdf")
    joint = PageRetriever.joint(
        [(d, LexicalIndex.build([p.text for p in d.pages], d.language)) for d in (english, german)]
    )
    assert top_k(joint.score("Erhöhung?", joint.pages), joint.pages, 1) == [3]
    assert top_k(joint.score("manager?", joint.pages), joint.pages, 1) == [1]
