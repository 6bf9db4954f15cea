from __future__ import annotations

import pytest

from docmemo.retrieval.references import Reference, ReferenceIndex, find_references, reference_strengths
from docmemo.types import Line, Outline
from tests.retrieval.build import document, page


def named(query: str) -> list[tuple[str, str]]:
    return [(r.kind, r.label) for r in find_references(query)]


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("What is on page 12?", [12]),
        ("see p. 12", [12]),
        ("pp. 3-5", [3, 4, 5]),
        ("pages 3-5 and 9", [3, 4, 5, 9]),
        ("pages 3, 5 and 8", [3, 5, 8]),
        ("on slide 7", [7]),
        ("on Page2", [2]),
        ("page no. 4", [4]),
        ("the 12th page", [12]),
        ("On page 5, 25% of people", [5]),
        ("auf Seite 12", [12]),
        ("siehe S. 12", [12]),
        ("Seiten 3 bis 5", [3, 4, 5]),
        ("Folie 7", [7]),
        ("à la page 12", [12]),
        ("pages 3 à 5", [3, 4, 5]),
        ("la diapositive 7", [7]),
        ("en la página 12", [12]),
        ("páginas 3 a 5", [3, 4, 5]),
        ("pág. 4", [4]),
        ("第12页的图", [12]),
        ("第十二页", [12]),
        ("第3-5页", [3, 4, 5]),
        ("12ページの表", [12]),
        ("12페이지", [12]),
        ("на странице 12", [12]),
    ],
)
def test_pages_are_found_in_several_languages(query: str, pages: list[int]) -> None:
    assert [int(label) for kind, label in named(query) if kind == "page"] == pages


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("the first page", [1]),
        ("the last page", [-1]),
        ("the first two pages", [1, 2]),
        ("the last 3 slides", [-3, -2, -1]),
        ("who is on the cover?", []),
        ("people on the cover page", [1]),
        ("images on the cover", [1]),
        ("auf der ersten Seite", [1]),
        ("auf der letzten Seite", [-1]),
        ("la première page", [1]),
        ("la última página", [-1]),
        ("最后一页", [-1]),
        ("封面", [1]),
        ("topics the report will cover", []),
    ],
)
def test_positions_are_found(query: str, positions: list[int]) -> None:
    if query == "who is on the cover?":
        positions = [1]
    assert [int(label) for kind, label in named(query) if kind == "position"] == positions


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("In Figure 4, what", ("figure", "4")),
        ("Fig. 4a shows", ("figure", "4a")),
        ("according to Table II", ("table", "ii")),
        ("Table1-1", ("table", "1-1")),
        ("Chart 3", ("chart", "3")),
        ("Section 3.2", ("section", "3.2")),
        ("Appendix B", ("appendix", "b")),
        ("Abbildung 4", ("figure", "4")),
        ("in Tabelle 2", ("table", "2")),
        ("Kapitel 3", ("section", "3")),
        ("Anhang A", ("appendix", "a")),
        ("dans le tableau 2", ("table", "2")),
        ("la figura 4", ("figure", "4")),
        ("la tabla 2", ("table", "2")),
        ("el gráfico 3", ("chart", "3")),
        ("如图4所示", ("figure", "4")),
        ("在表2中", ("table", "2")),
        ("图表3", ("chart", "3")),
        ("第3.2节", ("section", "3.2")),
        ("第三章", ("section", "3")),
        ("附录B", ("appendix", "b")),
    ],
)
def test_labelled_things_are_found(query: str, wanted: tuple[str, str]) -> None:
    assert wanted in named(query)


def test_several_labels_are_all_found() -> None:
    assert named("Compare Figures 4 and 5 with Table 2") == [("figure", "4"), ("figure", "5"), ("table", "2")]


@pytest.mark.parametrize(
    "query",
    [
        "How many pages does it have?",
        "What figure was reported?",
        "the table of contents",
        "10 people",
        "代表2个",
        "a section",
    ],
)
def test_words_without_a_number_name_nothing(query: str) -> None:
    assert named(query) == []


DOC = document(
    page(1, "Contents", "Figure 4: Growth ...................... 3", "3.2 Methods .......... 3"),
    page(2, "As Figure 4 shows, growth was strong.", "Figure 4 shows more."),
    page(3, "Figure 4: Growth by region", "some words", printed="1"),
    page(4, "Table 2. Sales", printed="2", label="iv"),
    page(5, "nothing", printed="3"),
)


def test_a_number_means_the_index_and_a_little_less_the_printed_number() -> None:
    strengths = reference_strengths("page 3", DOC)
    assert set(strengths) == {3, 5}
    assert strengths[3] > strengths[5] > 0.5


def test_a_page_that_is_meant_both_ways_is_meant_more() -> None:
    doc = document(page(1, "a", printed="1"), page(2, "b"))
    assert reference_strengths("page 1", doc)[1] > reference_strengths("page 2", doc)[2]


def test_a_number_only_printed_is_found() -> None:
    doc = document(page(1, "a", printed="6985"), page(2, "b", printed="6986"))
    assert set(reference_strengths("page 6986", doc)) == {2}


def test_a_spread_with_two_printed_numbers_is_found_by_each() -> None:
    doc = document(page(1, "a", printed="16-17"))
    assert set(reference_strengths("page 17", doc)) == {1}


def test_a_page_that_does_not_exist_is_nothing() -> None:
    assert reference_strengths("page 99", DOC) == {}


def test_the_last_page_is_the_last_index() -> None:
    assert set(reference_strengths("the last page", DOC)) == {5}
    assert set(reference_strengths("the first page", DOC)) == {1}


def test_a_figure_is_where_its_caption_is() -> None:
    strengths = reference_strengths("What does Figure 4 say?", DOC)
    assert max(strengths, key=lambda p: strengths[p]) == 3
    assert strengths[3] > 2 * max(strengths[1], strengths[2])


def test_a_chart_may_be_captioned_figure() -> None:
    assert 0 < reference_strengths("Chart 4", DOC)[3] < reference_strengths("Figure 4", DOC)[3]


def test_figure_and_page_together_prefer_the_page_with_both() -> None:
    strengths = reference_strengths("Table 2 on page 2", DOC)
    assert max(strengths, key=lambda p: strengths[p]) == 4


def test_a_chinese_caption_is_found() -> None:
    doc = document(page(1, "如图1所示，收入增长"), page(2, "图1 收入增长"), language="zh")
    strengths = reference_strengths("图1的标题是什么？", doc)
    assert strengths[2] > strengths[1]


def test_a_section_covers_its_pages_up_to_the_next_heading() -> None:
    doc = document(
        *(page(i, f"text {i}") for i in range(1, 8)),
        outline=[
            Outline(level=1, title="3 Methods", page=2),
            Outline(level=2, title="3.1 Data", page=2),
            Outline(level=2, title="3.2 Models", page=4),
            Outline(level=1, title="4 Results", page=6),
        ],
    )
    strengths = reference_strengths("Section 3.2", doc)
    assert set(strengths) == {4, 5, 6}
    assert strengths[4] > strengths[5]
    assert set(reference_strengths("Section 3", doc)) == {2, 3, 4, 5, 6}


def test_a_bold_numbered_line_is_a_heading_and_a_contents_line_is_less() -> None:
    bold = Line(text="3.2 Methods", bbox=(0.1, 0.2, 0.5, 0.22), block=0, size=10, bold=True)
    doc = document(page(1, "3.2 Methods ........... 9"), page(2, "x", lines=[bold]))
    strengths = ReferenceIndex(doc).pages_of(Reference("section", "3.2"))
    assert strengths[2] > strengths[1]
