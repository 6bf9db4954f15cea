"""Schema memory from a model's description of a document: its sections checked, clipped, and put in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from docmemo.memory.schema import LABEL_CHARS, build_sections
from docmemo.types import SchemaMemory, Section

LEAST_COVERED = 0.5
"""Sections that leave out more of the pages than this are not used."""
DOC_TYPE_CHARS, TOPIC_CHARS = 60, 400
DEEPEST = 3
"""Sections below this level count as of it."""


class FoundSection(BaseModel):
    """One section as the model names it."""

    label: str
    first_page: int
    last_page: int
    level: int = 1


class Description(BaseModel):
    """What the model says of a document."""

    doc_type: str
    topic: str
    sections: list[FoundSection] = Field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A range of pages and what the model says of it, its pages counted from 1; None where its request failed."""

    first: int
    last: int
    found: Description | None


def one_line(text: str, limit: int) -> str:
    """`text` in one line of at most `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def combine(structural: SchemaMemory, n_pages: int, parts: Sequence[Part], limit: int) -> tuple[SchemaMemory, str]:
    """The schema of a document, and why the model's sections were not used ('' when they were).

    Type and topic are those of the first part that has them. Sections of a part whose request failed are the
    structural ones on its pages; all are, if the model's leave out half of the pages.

    Args:
        structural: the schema made without a model.
        n_pages: pages of the document.
        parts: descriptions of consecutive ranges of pages, in order.
        limit: most sections kept.
    """
    replies = [part.found for part in parts if part.found is not None]
    if not replies:
        return structural, ""
    sections = tidy_sections([s for part in parts for s in _sections_of(part, structural)], n_pages, limit)
    covered = len({page for s in sections for page in range(s.first_page, s.last_page + 1)})
    reason = ""
    if covered < LEAST_COVERED * n_pages:
        reason = f"structural sections, since the model's cover {covered} of {n_pages} pages"
        sections = structural.sections
    doc_type = next((text for r in replies if (text := one_line(r.doc_type, DOC_TYPE_CHARS))), structural.doc_type)
    topic = next((text for r in replies if (text := one_line(r.topic, TOPIC_CHARS))), structural.topic)
    return structural.model_copy(update={"doc_type": doc_type, "topic": topic, "sections": sections}), reason


def _sections_of(part: Part, structural: SchemaMemory) -> Iterator[FoundSection]:
    """Sections of a part in the pages of the document, clipped to the part; those that lie outside are left out."""
    if part.found is None:
        found = [(s.label, s.first_page, s.last_page, s.level) for s in structural.sections]
    else:
        ahead = part.first - 1
        found = [(s.label, s.first_page + ahead, s.last_page + ahead, s.level) for s in part.found.sections]
    for label, one, other, level in found:
        first, last = max(min(one, other), part.first), min(max(one, other), part.last)
        if first <= last:
            yield FoundSection(label=label, first_page=first, last_page=last, level=level)


def tidy_sections(found: Sequence[FoundSection], n_pages: int, limit: int) -> list[Section]:
    """Sections in order, inside the document, nested or apart.

    One that begins inside another of its level ends that one before itself; one that runs beyond the section it
    begins in ends with it; equal ones that follow each other are one. What is outside the document is left out.
    """
    ends: dict[tuple[int, int, str], int] = {}
    marks: list[tuple[int, int, str]] = []
    for item in sorted(found, key=lambda s: (s.first_page, s.level, -s.last_page)):
        label, level = one_line(item.label, LABEL_CHARS), min(max(item.level, 1), DEEPEST)
        first, last = max(1, item.first_page), min(n_pages, item.last_page)
        if not label or first > last:
            continue
        mark = (first, level, label)
        if marks and marks[-1][1:] == mark[1:]:
            mark = marks[-1]
        elif mark not in ends:
            marks.append(mark)
        ends[mark] = max(ends.get(mark, 0), last)
    above: list[Section] = []
    made: list[Section] = []
    for section in build_sections(marks, n_pages, limit):
        while above and (above[-1].level >= section.level or above[-1].last_page < section.first_page):
            above.pop()
        own = ends[(section.first_page, section.level, section.label)]
        last = min([section.last_page, own, *(a.last_page for a in above)])
        made.append(section.model_copy(update={"last_page": max(section.first_page, last)}))
        above.append(made[-1])
    return made
