"""The number printed on each page, found by consistency: within a run of pages, index minus number is constant."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from docmemo.types import Line, Page

_MARGIN = 0.13
"""Share of the page's height at the top and at the bottom where page numbers stand."""

_MAX_GAP = 12
"""Pages without a number between two numbered ones that still belong to one run."""

_ROMAN = re.compile(r"m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})$")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_EDGE = " \t-–—‒―|·•∙●■►▪~*_.,:;/\\()[]{}<>«»‹›"
_WORD = (
    r"(?:page|pages|pg|p|slide|folio|seite|s|pagina|página|pág|pag|sida|side|sivu|strona|str|sayfa|oldal|strana|"
    r"стр|страница|σελίδα|صفحة|عمود|עמוד)"
)
_NUMBER = r"(?P<n>[a-z]{0,2}[-–.]?\d{1,4}|[ivxlcdm]{1,8})"
_NAMED = re.compile(
    rf"(?:^|[\s|·•–—-]){_WORD}\.?\s*{_NUMBER}(?:\s*(?:of|/|von|de|di|van|av|af|z|из|sur)\s*\d+)?(?=$|[\s|·•–—.,-])",
    re.I,
)
_OF = re.compile(r"^\s*(?P<n>\d{1,4})\s*(?:of|/|von|sur|из)\s*(?P<total>\d{1,4})\s*$", re.I)
_EAST = re.compile(r"第\s*(?P<n>\d{1,4})\s*[页頁]|(?P<m>\d{1,4})\s*(?:페이지|ページ|쪽)")
_ARABIC = re.compile(r"^\d{1,4}$")
_PREFIXED = re.compile(r"^(?P<prefix>[A-Z]{1,2}[-–.]?|\d{1,2}[-–])(?P<n>\d{1,3})$")


@dataclass(frozen=True)
class _Found:
    """One possible page number. Those with equal `series` and `offset` support each other."""

    series: str
    value: int
    text: str
    weight: float


def roman_value(text: str) -> int:
    """Value of a well-formed Roman numeral in any case; 0 for anything else."""
    lower = text.lower()
    if not lower or not _ROMAN.match(lower):
        return 0
    values = [_ROMAN_VALUES[c] for c in lower]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))


def to_roman(value: int) -> str:
    """Lower-case Roman numeral of 1..3999."""
    out = ""
    for n, numeral in (
        (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
        (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
    ):  # fmt: skip
        out += numeral * (value // n)
        value %= n
    return out


def _read(token: str, weight: float) -> _Found | None:
    token = token.strip(_EDGE)
    if _ARABIC.match(token):
        value = int(token)
        return _Found("arabic", value, str(value), weight) if value > 0 else None
    if match := _PREFIXED.match(token):
        value = int(match["n"])
        return _Found(match["prefix"], value, token, weight) if value > 0 else None
    if token.islower() or token.isupper():
        value = roman_value(token)
        if 0 < value < 400:
            return _Found("ROMAN" if token.isupper() else "roman", value, token, weight)
    return None


def _candidates(line: Line) -> Iterator[_Found]:
    text = line.text.strip()
    if len(text) > 160:
        return
    if whole := _read(text, 1.0):
        yield whole
        return
    for pattern in (_OF, _NAMED, _EAST):
        if match := pattern.search(text):
            token = next(g for g in (match.groupdict().get(k) for k in ("n", "m")) if g)
            if found := _read(token, 2.0):
                yield found
                return
    tokens = text.split()
    if len(tokens) >= 2:
        for token in (tokens[0], tokens[-1]):
            # a capital Roman numeral inside a running title is a word or a part ("I", "Part V")
            if (found := _read(token, 0.7)) and found.series != "ROMAN":
                yield found


def _margin_lines(page: Page) -> list[tuple[Line, bool]]:
    """Lines where page numbers stand: in the margins (True), and the outermost ones wherever they are (False)."""
    inside = []
    for line in page.lines:
        middle = (line.bbox[1] + line.bbox[3]) / 2
        if middle < _MARGIN or middle > 1 - _MARGIN:
            inside.append(line)
    inside.sort(key=lambda li: min(li.bbox[1], 1 - li.bbox[3]))
    ordered = sorted(page.lines, key=lambda li: li.bbox[1])
    outer = [*ordered[:2], *sorted(page.lines, key=lambda li: li.bbox[3])[-2:]]
    kept = inside[:12]
    return [(li, True) for li in kept] + [(li, False) for li in outer if not any(li is k for k in kept)]


def _spreads(found: Sequence[_Found]) -> Iterator[_Found]:
    """Two consecutive numbers on one page: a scan or PDF with two printed pages a page."""
    numbers = {f.value: f.weight for f in found if f.series == "arabic"}
    for value, weight in sorted(numbers.items()):
        if value + 1 in numbers:
            yield _Found("spread", value, f"{value}-{value + 1}", weight + numbers[value + 1])


def _offset(found: _Found, index: int) -> int:
    """What is constant over a run."""
    return (2 * index if found.series == "spread" else index) - found.value


def _runs(indices: Sequence[int]) -> Iterator[list[int]]:
    """Sorted page indices split where more than `_MAX_GAP` pages lie between."""
    run: list[int] = []
    for index in indices:
        if run and index - run[-1] > _MAX_GAP + 1:
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _write(series: str, offset: int, index: int) -> str:
    if series == "spread":
        return f"{2 * index - offset}-{2 * index - offset + 1}"
    value = index - offset
    if series == "arabic":
        return str(value)
    if series in ("roman", "ROMAN"):
        roman = to_roman(value)
        return roman.upper() if series == "ROMAN" else roman
    return f"{series}{value}"


def printed_numbers(pages: Sequence[Page]) -> list[str]:
    """The number printed on each page, in the pages' order; '' where it could not be read.

    Every number-like token in the margins is a candidate. Candidates of one series (Arabic, Roman, or one prefix
    such as "A-") whose value grows with the page index form a run; the best supported runs win. Years, section and
    table numbers do not grow with the index, so they find no support. Pages between two of a run get their number
    although it was not found on them; "6-7" stands for two printed pages on one. With fewer than three pages in
    support only "Page 2 of 9" forms count.
    """
    groups: dict[tuple[str, int], dict[int, _Found]] = defaultdict(dict)
    for index, page in enumerate(pages):
        here: list[_Found] = []
        for line, in_margin in _margin_lines(page):
            for found in _candidates(line):
                if found.weight < 1 and not in_margin:
                    continue  # a page that is not full ends with its number, but not with a running title
                here.append(found)
        for found in [*here, *_spreads(here)]:
            slot = groups[found.series, _offset(found, index)]
            if index not in slot or slot[index].weight < found.weight:
                slot[index] = found
    runs = []
    for (series, offset), members in groups.items():
        for run in _runs(sorted(members)):
            support = sum(members[i].weight for i in run)
            density = len(run) / (run[-1] - run[0] + 1)
            named = series != "spread" and support >= 2 * len(run)
            if support >= 2.0 and (len(run) >= 3 or named) and density >= 0.25:
                runs.append((support, series, offset, run))
    runs.sort(key=lambda r: (-r[0], r[1], r[2], r[3][0]))
    numbers = [""] * len(pages)
    for _, series, offset, run in runs:
        free = [i for i in run if not numbers[i]]
        if len(free) * 2 < len(run) or (len(free) < len(run) and len(free) < 3):
            continue  # mostly explained by a better run already
        for i in free:
            numbers[i] = groups[series, offset][i].text
        for left, right in pairwise(free):
            if not any(numbers[left + 1 : right]):
                for i in range(left + 1, right):
                    numbers[i] = _write(series, offset, i)
    return numbers
