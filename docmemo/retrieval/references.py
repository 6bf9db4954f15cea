"""Explicit references in a query ("page 12", "Fig. 4", "Section 3.2", "第12页") and the pages they may mean.

A page number is ambiguous: of 44 benchmark questions that name one page, 24 mean the physical index and 20 the
PDF's label or the number printed on the page. So every reading gets a share, the index a little more, and what the
page says decides between them. A figure or table means the page with its caption rather than one that mentions it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from docmemo.documents.captions import (
    LABEL,
    LABEL_WORDS,
    NO_MORE,
    LabelKind,
    is_contents_line,
    label_starts,
    labels_in,
    may_hold_label,
    normal_label,
)
from docmemo.types import Line, PageSet

Kind = Literal["page", "position"] | LabelKind

INDEX, PRINTED = 0.9, 0.8
"""Strength of a page whose index, and of one whose label or printed number, is the number asked for."""
CAPTION, MENTION, LISTED, CONTINUED, SIBLING = 0.9, 0.3, 0.2, 0.4, 0.5
"""Strength of a page with the caption or heading; with a mention; with a line of a contents list; of a section's
later pages; factor for a figure called chart or the other way round."""


@dataclass(frozen=True)
class Reference:
    """One thing a query names: a page by number or by position, or something with a label.

    A position is an index that no printed number can mean ("cover", "last slide"); negative counts from the end.
    """

    kind: Kind
    label: str


_JOIN = r"(?:-|–|—|~|to|through|until|bis|à|al?|até|и|по|至|到|and|und|et|y|e|&|or|oder|ou|o|和|与|及|、)"
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|through|until|bis|à|al?|até|по|至|到)\s*", re.I)
_NUMBERS = rf"\d{{1,4}}(?:\s*{_JOIN}\s*\d{{1,4}}(?![\d.,]*\s?%))*(?!\d)"
_NUMBER_LIST = rf"\d{{1,4}}(?:\s*(?:,\s*)?(?:{_JOIN}\s*|,\s*)\d{{1,4}}(?![\d.,]*\s?%))*(?!\d)"
_NO = r"\s*(?:numbers?|no\.?|nr\.?|n°|nº|#|:)?\s*"
_PAGES = [
    rf"\b(?:page|pg\.?|p\.|slide|sheet|seite|folie|(?-i:S\.)|diapositive|diapositiva|página|pág\.?|pagina|sida|side"
    rf"|strona|sayfa|страниц[аеуы]|стр\.|صفحة|الصفحة){_NO}({_NUMBERS})",
    rf"\b(?:pages|pgs\.?|pp\.|slides|seiten|folien|diapositives|diapositivas|páginas|págs\.?|pagine|страницах)"
    rf"{_NO}({_NUMBER_LIST})",
    rf"第\s*({_NUMBERS})\s*(?:页|頁|张幻灯片|張投影片)",
    r"(?<!\d)(\d{1,4})\s*(?:ページ|頁|페이지|쪽)",
    r"\b(\d{1,3})(?:st|nd|rd|th|\.|er|e|ème|eme|re|ª|a)\s+(?:page|slide|seite|folie|diapositive|página|diapositiva)\b",
]
_PAGE_PATTERNS = [re.compile(p, re.I) for p in _PAGES]

_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "erste": 1, "zweite": 2, "dritte": 3, "vierte": 4, "fünfte": 5, "première": 1, "deuxième": 2,
    "troisième": 3, "quatrième": 4, "cinquième": 5,
    "primera": 1, "segunda": 2, "tercera": 3, "cuarta": 4, "quinta": 5,
    "primeira": 1, "terceira": 3, "prima": 1, "seconda": 2, "terza": 3, "last": -1, "final": -1, "penultimate": -2,
    "letzte": -1, "vorletzte": -2, "dernière": -1, "última": -1, "ultima": -1,
}  # fmt: skip
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "zwei": 2, "drei": 3, "deux": 2, "trois": 3, "dos": 2}
_ORDINAL = re.compile(
    rf"\b({'|'.join(_ORDINALS)})[nrsm]?\s+(?:({'|'.join(_COUNTS)}|\d{{1,2}})\s+)?"
    r"(?:pages?|slides?|seiten?|folien?|diapositives?|páginas?|pagin[ae]|diapositivas?)\b",
    re.I,
)
_FIRST = re.compile(
    r"\bcover page|\bfront (?:page|cover)|\btitle (?:page|slide)|\bon the cover\b|\bthe cover of\b"
    r"|\bcover (?:image|photo|picture|slide|sheet|illustration)|\btitelseite|\bdeckblatt|\btitelblatt"
    r"|\bpage de (?:garde|couverture|titre)|\ben couverture|\bportada\b|\bcopertina\b"
    r"|封面|首页|首頁|表紙|最初のページ|표지|첫 ?페이지",
    re.I,
)
_LAST = re.compile(r"\bback cover|最后一页|最後一頁|末页|最後のページ|마지막 ?페이지", re.I)
_HAN = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2}
_HAN_NUMBER = re.compile(r"(?<=第)[零一二三四五六七八九十百两]{1,5}(?=[页頁章节節])")

_SEPARATOR = r"\s*(?:,\s*(?:and\s+)?|and|&|und|et|y|to|bis|à|和|与|及|、)\s*"
_NAMED = [
    (kind, re.compile(rf"{word}\s*({LABEL}){NO_MORE}((?:{_SEPARATOR}(?:{LABEL}){NO_MORE}(?!\s?%))*)", re.I))
    for kind, word in LABEL_WORDS.items()
]
_LABELS = re.compile(rf"(?:{LABEL}){NO_MORE}", re.I)
_HAN_SECTION = re.compile(r"第\s*(\d+(?:\.\d+)*)\s*[章节節]")


def _number(text: str) -> str:
    """A Chinese numeral below 1,000 as digits."""
    total, digit = 0, 0
    for c in text:
        if c in "十百":
            total += (digit or 1) * (10 if c == "十" else 100)
            digit = 0
        else:
            digit = _HAN[c]
    return str(total + digit)


def _expand(numbers: str) -> Iterator[int]:
    """ "3-5, 8" -> 3, 4, 5, 8. A range that runs backwards or over more than 50 pages gives its two ends."""
    found = list(re.finditer(r"\d+", numbers))
    for before, match in zip([None, *found], found, strict=False):
        value = int(match[0])
        if before is not None and _RANGE.fullmatch(numbers[before.end() : match.start()]):
            start = int(before[0])
            if start < value <= start + 50:
                yield from range(start + 1, value)
        yield value


def find_references(query: str) -> list[Reference]:
    """What `query` names outright, without repeats; pages first."""
    text = unicodedata.normalize("NFKC", query)
    text = _HAN_NUMBER.sub(lambda m: _number(m[0]), text)
    pages: list[int] = []
    for pattern in _PAGE_PATTERNS:
        for match in pattern.finditer(text):
            pages.extend(_expand(match[1]))
    positions: list[int] = []
    for match in _ORDINAL.finditer(text):
        at = _ORDINALS[match[1].casefold()]
        count = _COUNTS.get((match[2] or "").casefold(), int(match[2]) if (match[2] or "").isdigit() else 1)
        positions.extend(range(at, at + count) if at > 0 else range(at - count + 1, at + 1))
    if _FIRST.search(text):
        positions.append(1)
    if _LAST.search(text):
        positions.append(-1)
    found = [Reference("page", str(page)) for page in pages if page]
    found += [Reference("position", str(position)) for position in positions]
    for kind, named in _NAMED:
        for match in named.finditer(text):
            labels = [match[1], *_LABELS.findall(match[2])]
            if not any(c.isdigit() or c.isupper() for c in match[1]):
                continue
            found.extend(Reference(kind, normal_label(label)) for label in labels)
    found.extend(Reference("section", match[1]) for match in _HAN_SECTION.finditer(text))
    return list(dict.fromkeys(found))


_NUMBERED_HEADING = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,3}|[A-Z](?:\.\d{1,2}){1,3})\.?\s+([^\W\d_].{1,90})$", re.S)


class ReferenceIndex:
    """Where a document's page numbers, captions and headings stand.

    Args:
        page_set: the document's pages.
    """

    def __init__(self, page_set: PageSet) -> None:
        self._pages = {page.page for page in page_set.pages}
        self._last = max(self._pages, default=0)
        self._numbers: dict[str, set[int]] = defaultdict(set)
        self._labelled: dict[tuple[Kind, str], dict[int, float]] = defaultdict(dict)
        self._headings: list[tuple[str, int]] = []
        sizes = [line.size for page in page_set.pages for line in page.lines if line.size]
        self._body = median(sizes) if sizes else 0.0
        for page in page_set.pages:
            for number in (page.label, *re.split(r"[^\w]+", page.printed)):
                if number:
                    self._numbers[number.strip().casefold()].add(page.page)
            for line in page.lines:
                self._read_line(page.page, line)
        for entry in page_set.outline:
            match = _NUMBERED_HEADING.match(entry.title.strip())
            if match and entry.page in self._pages:
                self._add("section", match[1], entry.page, CAPTION)
                self._headings.append((normal_label(match[1]), entry.page))
            self._read_caption(entry.page, entry.title.strip())
        self._headings.sort(key=lambda item: item[1])

    def _add(self, kind: Kind, label: str, page: int, strength: float) -> None:
        pages = self._labelled[kind, normal_label(label)]
        pages[page] = max(pages.get(page, 0.0), strength)

    def _read_caption(self, page: int, text: str) -> None:
        for start in label_starts(text):
            strength = {"caption": CAPTION, "listed": LISTED, "sentence": MENTION}[start.role]
            self._add(start.kind, start.label, page, strength)

    def _read_line(self, page: int, line: Line) -> None:
        text = unicodedata.normalize("NFKC", line.text).strip()
        if may_hold_label(text):
            self._read_caption(page, text)
            for kind, label in labels_in(text):
                self._add(kind, label, page, MENTION)
        if text.startswith("第"):
            chapter = _HAN_SECTION.match(_HAN_NUMBER.sub(lambda m: _number(m[0]), text))
            if chapter:
                listed = is_contents_line(text)
                self._add("section", chapter[1], page, LISTED if listed else CAPTION)
                if not listed:
                    self._headings.append((chapter[1], page))
        heading = _NUMBERED_HEADING.match(text)
        if heading and (heading[2][0].isupper() or not heading[2][0].isascii()):
            listed = is_contents_line(text)
            stands_out = line.bold or line.size > 1.1 * self._body or "." in heading[1]
            if stands_out:
                self._add("section", heading[1], page, LISTED if listed else CAPTION)
                if not listed:
                    self._headings.append((normal_label(heading[1]), page))

    def _by_label(self, kind: Kind, label: str) -> dict[int, float]:
        pages = dict(self._labelled.get((kind, label), {}))
        span = re.fullmatch(r"(\d{1,2})-(\d{1,2})", label)
        if not pages and span:
            for number in range(int(span[1]), min(int(span[2]), int(span[1]) + 20) + 1):
                pages.update(self._labelled.get((kind, str(number)), {}))
        if not pages and label[-1:].isalpha() and label[:-1]:
            pages = dict(self._labelled.get((kind, label[:-1].rstrip("-.")), {}))
        if kind == "section":
            self._continue_section(label, pages)
        if pages and max(pages.values()) < CAPTION:
            pages = {page: min(CAPTION, strength * 2) for page, strength in pages.items()}
        return pages

    def _continue_section(self, label: str, pages: dict[int, float]) -> None:
        """Give the pages up to the next heading outside section `label` a share."""
        at = [i for i, (name, _) in enumerate(self._headings) if name == label]
        if not at:
            return
        start = self._headings[at[-1]][1]
        end = next((page for name, page in self._headings[at[-1] + 1 :] if not name.startswith(f"{label}.")), start)
        for page in range(start + 1, min(end, start + 30) + 1):
            if page in self._pages:
                pages[page] = max(pages.get(page, 0.0), CONTINUED)

    def _by_number(self, label: str) -> dict[int, float]:
        number = int(label)
        pages = dict.fromkeys(self._numbers.get(label, ()), PRINTED)
        if number in self._pages:
            pages[number] = INDEX if number not in pages else 1 - (1 - INDEX) * (1 - PRINTED)
        return pages

    def pages_of(self, reference: Reference) -> dict[int, float]:
        """Pages `reference` may mean and how strongly, 0..1."""
        if reference.kind == "page":
            return self._by_number(reference.label)
        if reference.kind == "position":
            at = int(reference.label)
            page = at if at > 0 else self._last + 1 + at
            return {page: INDEX} if page in self._pages else {}
        pages = self._by_label(reference.kind, reference.label)
        sibling: dict[Kind, Kind] = {"figure": "chart", "chart": "figure", "exhibit": "figure"}
        if reference.kind in sibling and max(pages.values(), default=0) < CAPTION:
            for page, strength in self._by_label(sibling[reference.kind], reference.label).items():
                pages[page] = max(pages.get(page, 0.0), SIBLING * strength)
        return pages

    def strengths(self, query: str) -> dict[int, float]:
        """Page to the strength 0..1 with which `query` names it; pages it does not name are left out.

        Several references to one page combine as 1 - prod(1 - s): "Table 2 on page 7" prefers the page 7 that has it.
        """
        left: dict[int, float] = {}
        for reference in find_references(query):
            for page, strength in self.pages_of(reference).items():
                left[page] = left.get(page, 1.0) * (1.0 - strength)
        return {page: 1.0 - rest for page, rest in sorted(left.items())}


def reference_strengths(query: str, page_set: PageSet) -> dict[int, float]:
    """`ReferenceIndex(page_set).strengths(query)`, for one query on one document."""
    return ReferenceIndex(page_set).strengths(query)
