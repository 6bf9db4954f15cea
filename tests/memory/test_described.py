"""Sections that a model named, checked and put in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docmemo.memory.described import Description, FoundSection, Part, combine, tidy_sections
from docmemo.types import SchemaMemory, Section


def found(label: str, first: int, last: int, level: int = 1) -> FoundSection:
    return FoundSection(label=label, first_page=first, last_page=last, level=level)


def described(*sections: FoundSection, doc_type: str = "report", topic: str = "Ships.") -> Description:
    return Description(doc_type=doc_type, topic=topic, sections=list(sections))


def plain(sections: list[Section]) -> list[tuple[str, int, int, int]]:
    return [(s.label, s.first_page, s.last_page, s.level) for s in sections]


STRUCTURAL = SchemaMemory(
    doc_id="a.pdf",
    doc_type="manual",
    topic="Harbour",
    sections=[Section(label="One", first_page=1, last_page=6), Section(label="Two", first_page=7, last_page=10)],
    carries={1: ["prose"]},
)


def test_sections_are_clipped_to_the_document_and_those_outside_left_out() -> None:
    tidy = tidy_sections([found("A", -3, 4), found("B", 5, 99), found("C", 40, 50)], 10, 100)
    assert plain(tidy) == [("A", 1, 4, 1), ("B", 5, 10, 1)]


def test_of_overlapping_sections_the_first_ends_before_the_second() -> None:
    tidy = tidy_sections([found("B", 4, 10), found("A", 1, 6)], 10, 100)
    assert plain(tidy) == [("A", 1, 3, 1), ("B", 4, 10, 1)]


def test_a_section_ends_with_the_one_above_it_and_gaps_stay() -> None:
    sections = [found("A", 1, 5), found("A.1", 2, 8, 2), found("B", 7, 10), found("B.1", 8, 8, 2)]
    assert plain(tidy_sections(sections, 10, 100)) == [
        ("A", 1, 5, 1),
        ("A.1", 2, 5, 2),
        ("B", 7, 10, 1),
        ("B.1", 8, 8, 2),
    ]


def test_a_section_divided_by_the_requests_is_joined_again() -> None:
    tidy = tidy_sections([found("Long", 1, 50), found("Long", 51, 60), found("End", 61, 70)], 70, 100)
    assert plain(tidy) == [("Long", 1, 60, 1), ("End", 61, 70, 1)]


def test_labels_are_one_line_and_levels_between_one_and_three() -> None:
    tidy = tidy_sections([found("  a\n b ", 1, 2, 0), found("deep", 2, 2, 9), found("  ", 3, 4)], 10, 100)
    assert plain(tidy) == [("a b", 1, 2, 1), ("deep", 2, 2, 3)]


SECTIONS = st.lists(
    st.builds(
        found,
        st.sampled_from(["A", "B", "C", ""]),
        st.integers(-5, 30),
        st.integers(-5, 30),
        st.integers(-1, 5),
    ),
    max_size=12,
)


@given(SECTIONS, st.integers(1, 25), st.integers(1, 8))
def test_whatever_a_model_names_sections_are_inside_and_never_cross(
    named: list[FoundSection], n_pages: int, limit: int
) -> None:
    tidy = tidy_sections(named, n_pages, limit)
    assert len(tidy) <= limit
    assert all(1 <= s.first_page <= s.last_page <= n_pages and s.label for s in tidy)
    for at, a in enumerate(tidy):
        for b in tidy[at + 1 :]:
            apart = b.first_page > a.last_page or a.first_page > b.last_page
            inside = a.first_page <= b.first_page and b.last_page <= a.last_page
            meet = a.last_page == b.first_page == a.first_page or b.first_page == b.last_page == a.first_page
            assert apart or (inside and b.level > a.level) or meet


def test_type_and_topic_are_the_models_and_what_pages_carry_is_not() -> None:
    schema, reason = combine(STRUCTURAL, 10, [Part(1, 10, described(found("All", 1, 10)))], 100)
    assert (schema.doc_type, schema.topic, reason) == ("report", "Ships.", "")
    assert plain(schema.sections) == [("All", 1, 10, 1)]
    assert schema.carries == STRUCTURAL.carries


def test_a_part_that_failed_keeps_the_structural_sections_of_its_pages() -> None:
    parts = [Part(1, 5, None), Part(6, 10, described(found("Rest", 1, 5), doc_type=" "))]
    schema, _ = combine(STRUCTURAL, 10, parts, 100)
    assert plain(schema.sections) == [("One", 1, 5, 1), ("Rest", 6, 10, 1)]
    assert (schema.doc_type, schema.topic) == ("manual", "Ships.")


def test_sections_that_leave_out_most_pages_are_not_used() -> None:
    schema, reason = combine(STRUCTURAL, 10, [Part(1, 10, described(found("Cover", 1, 1)))], 100)
    assert schema.sections == STRUCTURAL.sections
    assert reason == "structural sections, since the model's cover 1 of 10 pages"


def test_without_any_reply_the_schema_is_the_structural_one() -> None:
    assert combine(STRUCTURAL, 10, [Part(1, 10, None)], 100) == (STRUCTURAL, "")
