"""Question episodic memory: what was asked, what was found, what is still missing. Never shared between questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docmemo.types import Note


@dataclass(frozen=True)
class Episode:
    """The rounds of one question so far; a new value each round."""

    notes: tuple[Note, ...] = ()

    def add(self, query: str, findings: str, missing: str) -> Episode:
        """With one more round."""
        return Episode((*self.notes, Note(query=query, findings=findings, missing=missing)))

    @property
    def queries(self) -> tuple[str, ...]:
        """Queries tried, in order."""
        return tuple(note.query for note in self.notes)


def as_text(notes: Sequence[Note]) -> str:
    """The notes as the prompts show them; '' when there are none."""
    lines = []
    for number, note in enumerate(notes, 1):
        lines.append(f"Round {number}. Query: {note.query}")
        if note.findings:
            lines.append(f"  Found: {note.findings}")
        if note.missing:
            lines.append(f"  Still missing: {note.missing}")
    return "\n".join(lines)
