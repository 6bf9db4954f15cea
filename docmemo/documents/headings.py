"""Headings and running headers of a document, told from type size, weight, place and repetition."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from docmemo.documents.passages import join_lines
from docmemo.types import Line, Page, PageSet

LONGEST = 120
"""Characters a heading may have."""
_NUMBERED = re.compile(r"^(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[A-Z]\.|[IVX]{1,4}\.|第\S{1,4}[章节節])\s*[^\W\d_]")
_LEADERS = re.compile(r"(?:\.\s?){4,}|…")


@dataclass(frozen=True)
class Heading:
    """A heading.

    Attributes:
        page: 1-based.
        text: its line or lines, joined.
        size: type size in points; for OCR the height of its line in points.
        level: 1 is the largest size; at most 3.
        line: position in `Page.lines` of its first line.
    """

    page: int
    text: str
    size: float
    level: int
    line: int


def _key(text: str) -> str:
    return re.sub(r"[\W\d_]+", "", text.casefold())


def running_texts(page_set: PageSet) -> frozenset[str]:
    """Keys of texts in the upper and lower tenth of pages that stand on many of them (headers, footers, logos)."""
    seen: dict[str, set[int]] = defaultdict(set)
    for page in page_set.pages:
        for line in page.lines:
            if line.bbox[3] < 0.12 or line.bbox[1] > 0.88:
                seen[_key(line.text)].add(page.page)
    enough = max(3, len(page_set.pages) // 8)
    return frozenset(key for key, pages in seen.items() if key and len(pages) >= enough)


def is_running(line: Line, running: frozenset[str]) -> bool:
    """Whether a line is a running header or footer, or a bare page number."""
    if not (line.bbox[3] < 0.12 or line.bbox[1] > 0.88):
        return False
    key = _key(line.text)
    return key in running or (not key and len(line.text.strip()) <= 6)


def line_size(line: Line, page: Page) -> float:
    """Type size in points; of OCR the height of the line's box, which is about 1.2 times that."""
    return line.size or (line.bbox[3] - line.bbox[1]) * page.height / 1.2


def body_size(page_set: PageSet) -> float:
    """Type size that most characters have, to half a point; 0 without text."""
    sizes: Counter[float] = Counter()
    for page in page_set.pages:
        for line in page.lines:
            sizes[round(line_size(line, page) * 2) / 2] += len(line.text)
    return max(sizes.items(), key=lambda item: (item[1], -item[0]))[0] if sizes else 0.0


def _is_heading(line: Line, page: Page, body: float, alone: bool) -> bool:
    text = line.text.strip()
    letters = sum(c.isalpha() for c in text)
    wide = any("\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text)
    if letters < (2 if wide else 3) or letters < 0.5 * len(text.replace(" ", "")) or len(text) > LONGEST:
        return False
    if _LEADERS.search(text) or text.endswith((",", ";", "。", "，")) or (text.endswith(".") and len(text) > 40):
        return False
    size = line_size(line, page)
    if page.text_source == "ocr":
        return size >= 1.35 * body
    if size >= 1.15 * body:
        return True
    return line.bold and size >= 0.9 * body and len(text) <= 80 and (alone or bool(_NUMBERED.match(text)))


def find_headings(page_set: PageSet) -> list[Heading]:
    """Headings in reading order: lines larger than the body, or bold lines that stand alone or are numbered."""
    body, running = body_size(page_set), running_texts(page_set)
    found: list[tuple[int, str, float, int]] = []
    for page in page_set.pages:
        per_block = Counter(line.block for line in page.lines)
        group: list[int] = []
        for i, line in enumerate(page.lines):
            if is_running(line, running) or not _is_heading(line, page, body, per_block[line.block] == 1):
                continue
            if group and i == group[-1] + 1 and _continues(page.lines[group[-1]], line, page):
                group.append(i)
                continue
            _close(page, group, found)
            group = [i]
        _close(page, group, found)
    levels = _levels([size for _, _, size, _ in found])
    return [Heading(page, text, size, levels[size], line) for page, text, size, line in found]


def _continues(before: Line, line: Line, page: Page) -> bool:
    gap = line.bbox[1] - before.bbox[3]
    height = before.bbox[3] - before.bbox[1]
    same = abs(line_size(line, page) - line_size(before, page)) < 0.12 * line_size(before, page)
    return same and before.bold == line.bold and -height < gap < 0.6 * height and not _NUMBERED.match(line.text)


def _close(page: Page, group: Sequence[int], found: list[tuple[int, str, float, int]]) -> None:
    if group:
        text = join_lines([page.lines[i].text for i in group])[0]
        size = median(line_size(page.lines[i], page) for i in group)
        if len(text) <= 2 * LONGEST:
            found.append((page.page, text, round(size * 2) / 2, group[0]))


def _levels(sizes: Sequence[float]) -> dict[float, int]:
    """Level 1..3 of each size; sizes that differ by less than a tenth share one."""
    levels: dict[float, int] = {}
    level, top = 0, 0.0
    for size in sorted(set(sizes), reverse=True):
        if level == 0 or size < 0.9 * top:
            level, top = min(level + 1, 3), size
        levels[size] = level
    return levels
