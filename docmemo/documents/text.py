"""The text of a page as lines with boxes, and whether its text layer can be used at all."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from docmemo.documents.pdf import displayed_box, mupdf
from docmemo.types import Line

_BOLD = 16
"""Bit of a span's flags in MuPDF's structured text."""

_GARBAGE_SHARE = 0.3
"""A text layer with more unreadable characters than this is not used. Real ones have well under 5%."""


def _is_garbage(char: str) -> bool:
    return char == "\ufffd" or unicodedata.category(char) in ("Cc", "Co", "Cn", "Cs")


def _clean_char(char: str) -> str:
    code = ord(char)
    if char.isspace() or char == "\u200b":
        return " "
    if 0xFB00 <= code <= 0xFDFF or 0xFE70 <= code <= 0xFEFC:  # ligatures, Arabic and Hebrew presentation forms
        return unicodedata.normalize("NFKC", char)
    if char == "\u00ad":  # soft hyphen; at a line's end it is the hyphen that is seen
        return char
    if _is_garbage(char) or char in "\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e":
        return ""
    return char


def clean_text(text: str) -> str:
    """Ligatures expanded, unreadable and direction marks dropped, runs of white space as one space."""
    if not text.isascii() or not text.isprintable():
        text = "".join(_clean_char(c) for c in text)
        body = text.rstrip()
        soft = body.endswith("\u00ad")
        text = body.replace("\u00ad", "") + ("-" if soft else "")
    return " ".join(text.split())


def usable(raw: str, min_chars: int) -> bool:
    """Whether a text layer is worth having: enough visible characters, and few of them unreadable."""
    visible = [c for c in raw if not c.isspace()]
    good = sum(not _is_garbage(c) for c in visible)
    return good >= max(1, min_chars) and (len(visible) - good) <= _GARBAGE_SHARE * len(visible)


def n_visible(lines: Iterable[Line]) -> int:
    """Characters that are not white space."""
    return sum(not c.isspace() for line in lines for c in line.text)


def text_layer(page: Any) -> tuple[list[Line], str]:
    """The lines of a pymupdf.Page in the order of its content, and its raw text (with unreadable characters).

    Boxes are fractions of the displayed page (rotation and crop box applied); text outside of it is left out.
    Pieces of one row (label and figures of a table) become one line.
    """
    pymupdf = mupdf()
    flags = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
    blocks = page.get_text("dict", flags=flags)["blocks"]
    lines: list[Line] = []
    raw: list[str] = []
    number = 0
    for block in blocks:
        pieces = []
        for piece in block.get("lines", ()):
            text = "".join(span["text"] for span in piece["spans"])
            raw.append(text)
            line = _line(page, piece, clean_text(text), number)
            if line is not None:
                pieces.append((line, _is_level(page, piece["dir"])))
        joined = _join_rows(_join_stacked(pieces))
        lines.extend(joined)
        number += bool(joined)
    return _join_blocks(lines), "\n".join(raw)


_TERMINAL = tuple(".!?:;。！？：；…")


def _join_blocks(lines: Sequence[Line]) -> list[Line]:
    """Blocks that are lines of one paragraph (some PDFs place every line on its own) as one block."""
    joined: list[Line] = []
    number = -1
    for i, line in enumerate(lines):
        new = i == 0 or line.block != lines[i - 1].block
        if new and not (i and _continues(lines, i)):
            number += 1
        joined.append(line.model_copy(update={"block": number}))
    return joined


def _is_row(text: str) -> bool:
    """Whether a line reads like a row of figures."""
    words = text.split()
    numbers = sum(any(c.isdigit() for c in word) for word in words)
    return numbers >= 2 and numbers * 3 >= len(words)


def _continues(lines: Sequence[Line], at: int) -> bool:
    """Whether the line goes on where the one before stopped: same type, next below, full width, no end mark."""
    above, line = lines[at - 1], lines[at]
    if above.size != line.size or above.bold != line.bold or above.text.endswith(_TERMINAL) or len(above.text) < 20:
        return False
    if _is_row(above.text) or _is_row(line.text):
        return False
    a, b = above.bbox, line.bbox
    height = min(a[3] - a[1], b[3] - b[1])
    gap = b[1] - a[3]
    aligned = -0.01 <= a[0] - b[0] < 0.05
    full = a[2] >= b[2] - 0.03
    return -0.3 * height < gap < 0.8 * height and aligned and full


def _is_level(page: Any, direction: tuple[float, float]) -> bool:
    """Whether text of this direction (in the unrotated page) runs from left to right as displayed."""
    matrix = page.rotation_matrix
    return bool(direction[0] * matrix.a + direction[1] * matrix.c > 0.9)


def _line(page: Any, piece: dict[str, Any], text: str, block: int) -> Line | None:
    if not text:
        return None
    box = displayed_box(page, piece["bbox"])
    if box is None or box[2] <= box[0] or box[3] <= box[1]:
        return None
    spans = [(len(s["text"].strip()), s) for s in piece["spans"]]
    weight = sum(n for n, _ in spans)
    bold = sum(n for n, s in spans if s["flags"] & _BOLD or "bold" in s["font"].lower())
    size = max(spans, key=lambda item: item[0])[1]["size"]
    return Line(text=text, bbox=box, block=block, size=round(float(size), 1), bold=bold * 2 > weight)


def _merged(first: Line, second: Line, separator: str) -> Line:
    a, b = first.bbox, second.bbox
    longer = first if len(first.text) >= len(second.text) else second
    return Line(
        text=first.text + separator + second.text,
        bbox=(min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])),
        block=first.block,
        size=longer.size,
        bold=longer.bold,
    )


def _join_rows(pieces: Sequence[tuple[Line, bool]]) -> list[Line]:
    """Neighbours on one baseline as one line, unless both are long (then they are columns of prose)."""
    joined: list[Line] = []
    last_level = False
    for line, level in pieces:
        if joined and level and last_level and _same_row(joined[-1], line):
            joined[-1] = _merged(joined[-1], line, " ")
        else:
            joined.append(line)
        last_level = level
    return joined


def _same_row(first: Line, second: Line) -> bool:
    a, b = first.bbox, second.bbox
    overlap = min(a[3], b[3]) - max(a[1], b[1])
    wide = a[2] - a[0] > 0.2 and b[2] - b[0] > 0.2
    prose = wide and len(first.text) > 25 and len(second.text) > 25
    return overlap > 0.6 * min(a[3] - a[1], b[3] - b[1]) and b[0] >= a[2] - 0.005 and not prose


def _join_stacked(pieces: Sequence[tuple[Line, bool]]) -> list[tuple[Line, bool]]:
    """Letters set one below the other (an axis title, say) as one line."""
    result: list[tuple[Line, bool]] = []
    stack: list[Line] = []

    def flush() -> None:
        if len(stack) >= 4:
            word = stack[0]
            for letter in stack[1:]:
                word = _merged(word, letter, "")
            result.append((word, False))
        else:
            result.extend((letter, True) for letter in stack)
        stack.clear()

    for line, level in pieces:
        box = line.bbox
        alone = level and len(line.text) == 1 and line.text.isalpha()
        if stack:
            above = stack[-1].bbox
            below = box[1] >= above[1] and box[0] < above[2] and box[2] > above[0]
            if not (alone and below):
                flush()
        if alone:
            stack.append(line)
        else:
            result.append((line, level))
    flush()
    return result
