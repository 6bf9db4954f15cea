"""What a document builder returns, and how questions are read and given their gold pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from .canvas import Canvas
from .pdfs import open_pdf

UNANSWERABLE = "Not answerable"
_PRINTED = re.compile(r"\{p:([a-z0-9_-]+)\}")
SOURCES = {"text", "layout", "table", "chart", "figure"}


@dataclass(frozen=True)
class Sample:
    """One finished document: its bytes, and the page each anchor landed on (1-based)."""

    doc_id: str
    doc_type: str
    title: str
    language: str
    pdf: bytes
    marks: dict[str, int]

    @property
    def record(self) -> dict[str, str]:
        return {
            "doc_id": self.doc_id,
            "path": f"documents/{self.doc_id}",
            "doc_type": self.doc_type,
            "title": self.title,
            "language": self.language,
        }


@dataclass(frozen=True)
class Recipe:
    """How to make one document: `draw` fills a fresh canvas, `finish` may replace the canvas's own bytes."""

    doc_id: str
    doc_type: str
    draw: Callable[[], Canvas]
    finish: Callable[[Canvas], bytes] = Canvas.to_bytes

    def make(self) -> Sample:
        canvas = self.draw()
        return Sample(self.doc_id, self.doc_type, canvas.title, canvas.language, self.finish(canvas), canvas.marks)


def content(name: str) -> str:
    """A text file of `content/`."""
    return (resources.files(__package__) / "content" / name).read_text(encoding="utf-8")


def read_questions(sample: Sample) -> list[dict[str, object]]:
    """The questions of one document, from `content/<name>.questions`.

    A line is `question | answer | format | anchors | sources`; `question | -` alone is unanswerable. Raises
    KeyError for an anchor that the document never placed. `{p:anchor}` in a question becomes the page number
    printed on the anchor's page (the PDF page label, where there are labels).
    """
    with open_pdf(stream=sample.pdf, filetype="pdf") as document:
        labels = [page.get_label() or str(page.number + 1) for page in document]
    stem = sample.doc_id.removesuffix(".pdf")
    rows: list[dict[str, object]] = []
    for line in content(f"{stem}.questions").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        row: dict[str, object] = {
            "question_id": f"{stem.replace('_', '-')}-{len(rows) + 1:02d}",
            "doc_id": sample.doc_id,
            "question": _PRINTED.sub(lambda found: labels[sample.marks[found[1]] - 1], parts[0]),
        }
        if parts[1] == "-":
            row |= {"answer": UNANSWERABLE, "answer_format": "None", "evidence_pages": [], "evidence_sources": []}
            row["answerable"] = False
        else:
            _, answer, answer_format, anchors, sources = parts
            unknown = set(sources.split()) - SOURCES
            if unknown:
                raise ValueError(f"unknown evidence sources {sorted(unknown)} in {line!r}")
            row |= {
                "answer": answer,
                "answer_format": answer_format,
                "evidence_pages": sorted({sample.marks[name] for name in anchors.split()}),
                "evidence_sources": sources.split(),
                "answerable": True,
            }
        rows.append(row)
    return rows


def as_jsonl(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
