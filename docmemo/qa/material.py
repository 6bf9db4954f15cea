"""What prompts show of a document and of a question's memory, as compact text and in measured amounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docmemo.memory import episodic
from docmemo.types import Note, SchemaMemory, Section

NOTE_CHARS = 1200
"""Longest findings of a round that are shown."""
LIST_CHARS = 300
"""Longest list of pages that carry something."""


def ranges(pages: Iterable[int]) -> str:
    """Pages as text, neighbours joined: "3-5, 9"."""
    spans: list[list[int]] = []
    for page in sorted(set(pages)):
        if spans and page == spans[-1][1] + 1:
            spans[-1][1] = page
        else:
            spans.append([page, page])
    return ", ".join(_span(first, last) for first, last in spans)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def shortened(text: str, limit: int) -> str:
    """The text, cut at a word with an ellipsis where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - 1)]
    return f"{head.rsplit(None, 1)[0] if ' ' in head else head}…" if head else ""


def schema_text(schema: SchemaMemory, limit: int) -> tuple[str, int]:
    """The schema memory in at most `limit` characters: type, topic, sections, and which pages carry what.

    The deepest sections go first where it is too long, the shortest of them before the others.

    Returns:
        The text ('' when nothing is known, or nothing fits), and how many sections were left out.
    """
    head = [line for line in (schema.doc_type, shortened(schema.topic, 400)) if line]
    carried = {
        kind: ranges(page for page, kinds in schema.carries.items() if kind in kinds)
        for kind in ("table", "chart", "figure")
    }
    head += [f"{kind}s on pages {shortened(found, LIST_CHARS)}" for kind, found in carried.items() if found]
    sections = list(schema.sections)
    lines = {
        i: f"{'  ' * (s.level - 1)}{_span(s.first_page, s.last_page)}: {shortened(s.label, 120)}"
        for i, s in enumerate(sections)
    }
    room = limit - sum(len(line) + 1 for line in head)
    if room < 0:
        return "", len(sections)
    last_to_go = sorted(lines, key=lambda i: (sections[i].level, -_length(sections[i]), i))
    kept: list[int] = []
    for i in last_to_go:
        room -= len(lines[i]) + 1
        if room < 0:
            break
        kept.append(i)
    return "\n".join([*head, *(lines[i] for i in sorted(kept))]), len(sections) - len(kept)


def _length(section: Section) -> int:
    return section.last_page - section.first_page + 1


def notes_text(notes: Sequence[Note]) -> str:
    """The episodic memory; '' when there is none."""
    return episodic.as_text(
        [
            Note(
                query=shortened(note.query, NOTE_CHARS),
                findings=shortened(note.findings, NOTE_CHARS),
                missing=shortened(note.missing, NOTE_CHARS),
            )
            for note in notes
        ]
    )


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """A page's text, cut at a line's end to at most `limit` characters.

    Returns:
        The text, and how many characters were left out.
    """
    if len(text) <= limit:
        return text, 0
    head = text[:limit]
    head = head[: head.rfind("\n")] if "\n" in head[limit // 2 :] else head
    return head.rstrip(), len(text) - len(head.rstrip())
