from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.artifacts import LAYOUT_MEMBER, read_json, write_archive, write_json
from docmemo.config import SchemaParams
from docmemo.memory.doc_type import guess_doc_type
from docmemo.memory.schema import build_schema, build_sections, page_carries
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.schema import SchemaStep
from docmemo.types import LayoutSet, Line, Outline, PageSet, PageSummary, Region, SchemaMemory, SummarySet
from tests.pipeline.text_steps import archive, job
from tests.retrieval.build import document, page, table_page

marks = st.lists(
    st.tuples(st.integers(-2, 14), st.integers(1, 4), st.sampled_from(["A", "B", "C", " ", "D"])), max_size=25
)


@given(marks, st.integers(1, 10), st.integers(1, 12))
def test_sections_are_sorted_inside_the_document_and_never_cross(
    given_marks: list[tuple[int, int, str]], n_pages: int, limit: int
) -> None:
    sections = build_sections(given_marks, n_pages, limit)
    assert len(sections) <= limit
    assert [s.first_page for s in sections] == sorted(s.first_page for s in sections)
    assert all(1 <= s.first_page <= s.last_page <= n_pages and s.label.strip() for s in sections)
    for i, a in enumerate(sections):
        for b in sections[i + 1 :]:
            apart = a.last_page < b.first_page
            nested = b.last_page <= a.last_page or (a.first_page == b.first_page and a.last_page <= b.last_page)
            assert apart or nested


def test_sections_by_hand() -> None:
    found = build_sections([(1, 1, "One"), (2, 2, "One A"), (4, 2, "One B"), (5, 1, "Two")], 9, 10)
    assert [(s.label, s.first_page, s.last_page, s.level) for s in found] == [
        ("One", 1, 4, 1),
        ("One A", 2, 3, 2),
        ("One B", 4, 4, 2),
        ("Two", 5, 9, 1),
    ]


def test_too_many_sections_lose_the_deepest_and_shortest_first() -> None:
    found = build_sections([(1, 1, "One"), (2, 2, "short"), (3, 2, "long"), (8, 1, "Two")], 9, 3)
    assert [s.label for s in found] == ["One", "long", "Two"]


DOC = document(page(1, "Start"), page(2, "Middle"), page(3, "End"))


def schema(doc: PageSet, layout: LayoutSet | None = None, summaries: SummarySet | None = None) -> SchemaMemory:
    return build_schema(doc, layout, summaries, SchemaParams())


def test_the_outline_gives_the_sections() -> None:
    outline = [Outline(level=1, title="Intro", page=1), Outline(level=1, title="Rest", page=3)]
    found = schema(DOC.model_copy(update={"outline": outline})).sections
    assert [(s.label, s.first_page, s.last_page) for s in found] == [("Intro", 1, 2), ("Rest", 3, 3)]


def test_without_outline_the_layout_headings_give_them() -> None:
    regions = [Region(page=p, kind="heading", bbox=(0, 0, 1, 0.1), text=f"Part {p}", level=1) for p in (1, 2)]
    found = schema(DOC, LayoutSet(doc_id="d.pdf", regions=regions)).sections
    assert [(s.label, s.first_page, s.last_page) for s in found] == [("Part 1", 1, 1), ("Part 2", 2, 3)]


def test_without_layout_large_print_gives_them() -> None:
    big = Line(text="Large Heading", bbox=(0.1, 0.13, 0.9, 0.15), block=50, size=18)
    pages = [
        p.model_copy(update={"lines": [big.model_copy(update={"text": f"Large {w}"}), *p.lines * 4]})
        for p, w in zip(DOC.pages, ("Alpha", "Beta", "Gamma"), strict=True)
    ]
    found = schema(document(*pages)).sections
    assert [(s.label, s.first_page, s.last_page) for s in found] == [
        ("Large Alpha", 1, 1),
        ("Large Beta", 2, 2),
        ("Large Gamma", 3, 3),
    ]


def test_the_topic_is_the_title_and_the_commonest_keywords() -> None:
    big = Line(text="Harbours of Europe", bbox=(0.1, 0.13, 0.9, 0.15), block=50, size=18)
    first = DOC.pages[0].model_copy(update={"lines": [big, *DOC.pages[0].lines]})
    summaries = SummarySet(
        doc_id="d.pdf",
        summaries=[PageSummary(page=p, summary="", keywords=["harbours", "ship", f"w{p}"]) for p in (1, 2, 3)],
    )
    topic = schema(document(first, *DOC.pages[1:]), summaries=summaries).topic
    assert topic.startswith("Harbours of Europe: ship")


def test_what_pages_carry() -> None:
    prose = page(1, *["This is a rather long sentence of plain prose about nothing much."] * 5, "", "Figure 1: A map")
    rows = [["Item", "2020"], ["Revenue", "12"], ["Costs", "7"], ["Profit", "5"]]
    assert page_carries(prose, []) == ["figure", "prose"]
    assert page_carries(table_page(2, rows), []) == ["table"]
    assert page_carries(page(3), []) == []
    assert page_carries(page(4, "图表1 收入增长"), []) == ["chart"]


def test_a_figure_full_of_numbers_is_a_chart() -> None:
    numbers = page(1, "10%", "20%", "30%", "40%")
    assert page_carries(numbers, [Region(page=1, kind="figure", bbox=(0, 0, 1, 1))]) == ["chart"]
    assert page_carries(page(1, "words"), [Region(page=1, kind="figure", bbox=(0, 0, 1, 1))]) == ["figure"]


@pytest.mark.parametrize(
    ("doc", "wanted"),
    [
        (document(page(1, "FORM 10-K", "Annual report"), *(page(i, "text") for i in range(2, 60))), "annual report"),
        (document(*(page(i, "Big words", width=960.0, height=540.0) for i in range(1, 12))), "slide deck"),
        (
            document(page(1, "A Title", "Abstract", "We et al. do"), page(2, "References", "doi: 1, arXiv, et al.")),
            "research article",
        ),
        (document(page(1, "Bedienungsanleitung"), page(2, "x")), "manual"),
        (document(page(1, "用户手册"), page(2, "x")), "manual"),
        (document(page(1, "Name: ______________", "Signature ________", "Please print", "Date ________")), "form"),
        (document(), "document"),
    ],
)
def test_document_types(doc: PageSet, wanted: str) -> None:
    assert guess_doc_type(doc) == wanted


def test_a_document_without_text_still_has_a_schema() -> None:
    made = schema(document(page(1), page(2)))
    assert (made.sections, made.topic) == ([], "")
    assert made.carries == {1: [], 2: []}


def inputs(folder: Path, crop: str = "a") -> dict[str, Path]:
    regions = [Region(page=p, kind="heading", bbox=(0, 0, 1, 0.1), text=f"Part {p}", crop=crop) for p in (1, 2)]
    layout, summaries = folder / "d.layout.zip", folder / "d.json"
    write_archive(layout, LAYOUT_MEMBER, LayoutSet(doc_id="d.pdf", regions=regions), [])
    write_json(summaries, SummarySet(doc_id="d.pdf", summaries=[PageSummary(page=1, summary="s", keywords=["k"])]))
    return {"render": archive(folder, DOC), "layout": layout, "summarize": summaries}


STEP = SchemaStep(SchemaParams(), {"schema": {"id": "structural"}})


def test_the_step_reads_pages_layout_and_summaries(tmp_path: Path) -> None:
    with WorkPool(0, 10) as pool:
        STEP.compute(job(inputs(tmp_path)), tmp_path / "out.json", pool)
    made = read_json(tmp_path / "out.json", SchemaMemory)
    assert [s.label for s in made.sections] == ["Part 1", "Part 2"]
    assert made.topic.endswith(": k")


def test_the_step_does_without_layout(tmp_path: Path) -> None:
    some = {name: path for name, path in inputs(tmp_path).items() if name != "layout"}
    with WorkPool(0, 10) as pool:
        STEP.compute(job(some), tmp_path / "out.json", pool)
    assert read_json(tmp_path / "out.json", SchemaMemory).doc_id == "d.pdf"
    assert STEP.key(job(some)) != STEP.key(job(inputs(tmp_path)))


def test_new_crops_do_not_change_the_key(tmp_path: Path) -> None:
    assert STEP.key(job(inputs(tmp_path, "a"))) == STEP.key(job(inputs(tmp_path, "b")))
