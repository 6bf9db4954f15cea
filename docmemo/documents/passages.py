"""Cuts a page into passages: sentences of its paragraphs and rows of its tables, each with the lines it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from docmemo.types import Box, Line, Page

_ENDS = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？｡؟۔।;；][\"'”’」』）]*|[.!?]+[」』”]")
_NO_END = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|Nos|Nr|Fig|Figs|Tab|Eq|Eqs|Sec|Ch|Vol|vs|cf|al|etc|approx|ca|Inc|Ltd|Corp|Co|Abb|bzw|usw|"
    r"pp|[A-Za-z])|^\s*\(?\d{1,3}|^\s*[a-zA-Z])\.$"
)
_BULLET = re.compile(r"^\s*(?:[•●▪■◦‣·*►➢✓–—-]\s|\(?[0-9a-zA-Z]{1,2}[.)]\s|[①-⑳])")
_WIDE = "\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_WIDE_END, _WIDE_START = re.compile(f"[{_WIDE}]$"), re.compile(f"^[{_WIDE}]")
_VALUE = re.compile(r"^[\s$€£¥(+\-−–]*\d[\d.,\s]*[%)\s]*$")
_YEAR = re.compile(r"^\D{0,4}(?:19|20)\d\d\D{0,2}$")
MAX_LINES = 8
"""A sentence without an end in sight is cut here."""


@dataclass(frozen=True)
class Passage:
    """A sentence or a table row.

    Attributes:
        text: as it reads; cells are joined by " | ", a row's header stands on a line of its own before it.
        lines: positions in `Page.lines` it stands on, header lines first.
        kind: what it is.
        paragraph: passages with the same number stand next to each other in one paragraph or table.
        size: largest font size in points; 0 when unknown.
        bold: whether all its lines are bold.
    """

    text: str
    lines: tuple[int, ...]
    kind: Literal["sentence", "row"]
    paragraph: int
    size: float = 0.0
    bold: bool = False


def join_lines(texts: Sequence[str]) -> tuple[str, list[int]]:
    """(running text, where each line starts in it): line-end hyphens undone, no spaces between CJK lines."""
    out, starts = "", list[int]()
    for text in (" ".join(t.split()) for t in texts):
        if out and text:
            hyphen = re.search(r"[^\W\d_][-\u2010\u00ad]$", out)
            if out.endswith("\u00ad") or (hyphen and text[0].islower()):
                out = out[:-1]
            elif not (_WIDE_END.search(out) and _WIDE_START.search(text)):
                out += " "
        starts.append(len(out))
        out += text
    return out, starts


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence of running text; Latin, CJK, Arabic and Indic ends."""
    start = 0
    for match in _ENDS.finditer(text):
        end = match.end()
        if match[0].startswith(".") and _NO_END.search(text[start : match.start() + 1]):
            continue
        following = text[end:].lstrip()
        if match[0] in (".", ";") and following[:1].islower():
            continue
        if match[0] == ";":
            continue
        yield start, end
        start = end + len(text[end:]) - len(following)
    if text[start:].strip():
        yield start, len(text)


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of `boxes`."""
    return (
        min(b[0] for b in boxes),
        min(b[1] for b in boxes),
        max(b[2] for b in boxes),
        max(b[3] for b in boxes),
    )


def _same_row(a: Box, b: Box) -> bool:
    overlap = min(a[3], b[3]) - max(a[1], b[1])
    return overlap > 0.5 * min(a[3] - a[1], b[3] - b[1]) and (a[2] <= b[0] + 0.002 or b[2] <= a[0] + 0.002)


def _prose_blocks(lines: Sequence[Line]) -> set[int]:
    """Blocks of at least three lines, long on average and without bare figures: text that stands beside a table."""
    texts: dict[int, list[str]] = {}
    for line in lines:
        texts.setdefault(line.block, []).append(line.text.strip())
    return {
        block
        for block, own in texts.items()
        if len(own) >= 3 and sum(map(len, own)) > 40 * len(own) and not any(_VALUE.match(t) for t in own)
    }


def table_rows(lines: Sequence[Line]) -> list[list[list[int]]]:
    """Tables as rows of line positions, each row from left to right.

    Lines at the same height form a row if their cells are short or hold figures; at least two such rows in a row
    (with a gap of at most three line heights) form a table. Works on text layers and on OCR alike.
    """
    prose = _prose_blocks(lines)
    order = sorted(
        (i for i in range(len(lines)) if lines[i].block not in prose),
        key=lambda i: (lines[i].bbox[1] + lines[i].bbox[3]) / 2,
    )
    rows: list[list[int]] = []
    for i in order:
        if rows and all(_same_row(lines[i].bbox, lines[j].bbox) for j in rows[-1]):
            rows[-1].append(i)
        else:
            rows.append([i])
    tables: list[list[list[int]]] = []
    bottom, open_table = 0.0, False
    for row in rows:
        row.sort(key=lambda i: lines[i].bbox[0])
        cells = [lines[i].text.strip() for i in row]
        values = sum(bool(_VALUE.match(cell)) for cell in cells)
        tabular = len(row) >= 2 and max(map(len, cells)) <= (120 if values else 30)
        box = union([lines[i].bbox for i in row])
        near = box[1] - bottom <= 3 * max(0.005, box[3] - box[1])
        if tabular:
            if open_table and near:
                tables[-1].append(row)
            else:
                tables.append([row])
            open_table, bottom = True, box[3]
        elif not near:
            open_table = False
    return [table for table in tables if len(table) >= 2]


def header_of(table: Sequence[Sequence[int]], at: int, lines: Sequence[Line]) -> Sequence[int]:
    """The header of row `at`: the nearest row above whose cells are words or years, else the table's first row."""
    for row in reversed(table[:at]):
        cells = [lines[i].text.strip() for i in row]
        if not any(_VALUE.match(cell) and not _YEAR.match(cell) for cell in cells):
            return row
    return table[0] if at else ()


def _paragraphs(page: Page, left: Sequence[int]) -> Iterator[list[int]]:
    """Line positions of each paragraph: blocks of a text layer; for OCR lines that follow each other closely."""
    group: list[int] = []
    for i in left:
        line = page.lines[i]
        if group:
            before = page.lines[group[-1]]
            if page.text_source == "ocr":
                height = max(1e-4, before.bbox[3] - before.bbox[1])
                together = (
                    -0.5 * height <= line.bbox[1] - before.bbox[3] <= 0.7 * height
                    and min(line.bbox[2], before.bbox[2]) - max(line.bbox[0], before.bbox[0]) > 0
                    and 0.7 <= (line.bbox[3] - line.bbox[1]) / height <= 1.4
                )
            else:
                together = line.block == before.block and not (
                    line.size and before.size and not 0.8 <= line.size / before.size <= 1.25
                )
            if not together or _BULLET.match(line.text):
                yield group
                group = []
        group.append(i)
    if group:
        yield group


def _make(page: Page, text: str, lines: Sequence[int], kind: Literal["sentence", "row"], number: int) -> Passage:
    chosen = [page.lines[i] for i in lines]
    return Passage(
        text, tuple(lines), kind, number, max((c.size for c in chosen), default=0.0), all(c.bold for c in chosen)
    )


def passages(page: Page) -> list[Passage]:
    """All passages of a page, sentences in reading order, then table rows from top to bottom.

    A line of two columns of prose counts as prose; a page without text has none.
    """
    tables = table_rows(page.lines)
    in_table = {i for table in tables for row in table for i in row}
    left = [i for i in range(len(page.lines)) if i not in in_table and page.lines[i].text.strip()]
    found: list[Passage] = []
    number = 0
    for group in _paragraphs(page, left):
        text, starts = join_lines([page.lines[i].text for i in group])
        for start, end in sentence_spans(text):
            on = [
                i
                for i, a, z in zip(group, starts, [*starts[1:], len(text) + 1], strict=True)
                if a < end and z > start
            ]
            if len(on) <= MAX_LINES:
                found.append(_make(page, text[start:end].strip(), on, "sentence", number))
                continue
            for k in range(0, len(on), MAX_LINES):
                part = on[k : k + MAX_LINES]
                found.append(_make(page, join_lines([page.lines[i].text for i in part])[0], part, "sentence", number))
        number += 1
    for table in tables:
        for at, row in enumerate(table):
            head = header_of(table, at, page.lines)
            parts = [
                " | ".join(" ".join(page.lines[i].text.split()) for i in cells) for cells in (head, row) if cells
            ]
            found.append(_make(page, "\n".join(parts), [*head, *row], "row", number))
        number += 1
    return found
