"""Schema memory: what kind of document it is, what it is about, its sections as page ranges, what each page carries.

Everything is told from the pages themselves (docs/design.md, section 2); no model is asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from docmemo.config import SchemaParams
from docmemo.documents.captions import caption_of
from docmemo.documents.headings import Heading, body_size, find_headings, line_size
from docmemo.documents.passages import join_lines, passages, table_rows
from docmemo.memory.doc_type import guess_doc_type
from docmemo.types import Box, LayoutSet, Line, Page, PageSet, Region, SchemaMemory, Section, SummarySet

Carried = Literal["table", "chart", "figure", "prose"]

PROSE_CHARS = 200
"""Characters in sentences from which on a page carries prose (80 in Chinese, Japanese and Korean)."""
CHART_VALUES = 4
"""Numbers inside a figure that make it a chart."""
_CHART_WORD = re.compile(
    r"\b(?:charts?|graphs?|diagramm|histogram|grafik|graphique|gráfico|percent(?:age)?|trend)\b|%|图表|圖表|グラフ",
    re.I,
)
_VALUE = re.compile(r"^[\s$€£¥(+\-−–]*\d[\d.,]*\s*[%)kKmMbB]*$")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af]")
_DATE = re.compile(
    r"\b(?:jan|feb|fév|mar|mär|apr|avr|abr|ma[iy]|jun|juin|jul|juil|aug|ao[uû]|ago|sep|oct|okt|nov|de[czk]|déc|ene|dic)\w*\b"
    r".*\b(?:19|20)\d\d\b",
    re.I,
)
LABEL_CHARS = 160
"""A section's label and a title are cut here."""


def build_sections(marks: Iterable[tuple[int, int, str]], n_pages: int, limit: int) -> list[Section]:
    """Sections from (page, level, label) marks: sorted by first page, nested or apart, never crossing.

    A section ends before the next mark of its level or above; one that another follows on the same page has that page
    alone. Marks beyond the document are dropped. With more than `limit` marks, those of the deepest level go first
    that are followed soonest by another mark, then the last ones.
    """
    kept: list[tuple[int, int, str]] = []
    for page, level, label in sorted(marks, key=lambda mark: mark[0]):
        label = " ".join(label.split())[:LABEL_CHARS].strip()
        if 1 <= page <= n_pages and label and (not kept or kept[-1][1:] != (level, label)):
            kept.append((page, max(1, level), label))
    while len(kept) > limit and len({level for _, level, _ in kept}) > 1:
        kept = _thin(kept, limit, n_pages)
    kept = kept[:limit]
    sections = []
    for at, (page, level, label) in enumerate(kept):
        following = next((p for p, lv, _ in kept[at + 1 :] if lv <= level), n_pages + 1)
        sections.append(Section(label=label, first_page=page, last_page=max(page, following - 1), level=level))
    return sections


def _thin(marks: Sequence[tuple[int, int, str]], limit: int, n_pages: int) -> list[tuple[int, int, str]]:
    """`marks` without some of the deepest level: those governing the fewest pages go, until `limit` remain."""
    deepest = max(level for _, level, _ in marks)
    pages = [*(page for page, _, _ in marks), n_pages + 1]
    at_level = [i for i, mark in enumerate(marks) if mark[1] == deepest]
    room = max(0, limit - (len(marks) - len(at_level)))
    stay = set(sorted(at_level, key=lambda i: (pages[i] - pages[i + 1], i))[:room])
    return [mark for i, mark in enumerate(marks) if mark[1] < deepest or i in stay]


def _section_marks(
    page_set: PageSet, layout: LayoutSet | None, headings: Sequence[Heading]
) -> list[tuple[int, int, str]]:
    """From the outline if it has at least two entries that say something, else layout headings, else type sizes."""
    outline = [(o.page, o.level, o.title) for o in page_set.outline if any(c.isalpha() for c in o.title)]
    if len({title for _, _, title in outline}) >= 2:
        return outline
    return heading_marks(page_set, layout, headings)


def heading_marks(
    page_set: PageSet, layout: LayoutSet | None, headings: Sequence[Heading]
) -> list[tuple[int, int, str]]:
    """(page, level, text) of headings: those of the layout if there are two, else those told from type sizes."""
    regions = [r for r in (layout.regions if layout else []) if r.kind == "heading" and r.text.strip()]
    # headers that layout took for headings repeat on many pages
    repeats = Counter(r.text.strip().casefold() for r in regions)
    often = max(3, len(page_set.pages) // 4)
    marks = [(r.page, r.level or 1, r.text) for r in regions if repeats[r.text.strip().casefold()] < often]
    if len(marks) >= 2:
        return marks
    if len(headings) > 2 * len(page_set.pages):  # slides and posters: large print everywhere, so one title a page
        best: dict[int, Heading] = {}
        for heading in headings:
            if heading.page not in best or heading.size > best[heading.page].size:
                best[heading.page] = heading
        return [(heading.page, 1, heading.text) for heading in best.values()]
    return [(heading.page, heading.level, heading.text) for heading in headings]


def _inside(inner: Box, outer: Box) -> bool:
    x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


def page_carries(page: Page, regions: Sequence[Region]) -> list[Carried]:
    """What a page carries, in the order table, chart, figure, prose; from its layout regions, captions and rows."""
    found: set[Carried] = set()
    for region in regions:
        if region.kind == "table":
            found.add("table")
        elif region.kind == "figure":
            values = sum(
                bool(_VALUE.match(line.text.strip())) for line in page.lines if _inside(line.bbox, region.bbox)
            )
            found.add("chart" if values >= CHART_VALUES or _CHART_WORD.search(region.text) else "figure")
    for line in page.lines:
        caption = caption_of(line.text)
        if caption is None:
            continue
        if caption[0] == "table":
            found.add("table")
        elif caption[0] == "chart" or (caption[0] in ("figure", "exhibit") and _CHART_WORD.search(line.text)):
            found.add("chart")
        elif caption[0] == "figure":
            found.add("figure")
    if any(_is_table(table, page) for table in table_rows(page.lines)):
        found.add("table")
    chars = sum(len(p.text) for p in passages(page) if p.kind == "sentence" and len(p.text) >= 25)
    if chars >= (PROSE_CHARS if not _WIDE.search(page.text) else 80):
        found.add("prose")
    order: tuple[Carried, ...] = ("table", "chart", "figure", "prose")
    return [kind for kind in order if kind in found]


def _is_table(table: Sequence[Sequence[int]], page: Page) -> bool:
    """Whether rows found by geometry are a table: three rows with figures and a word in most."""
    good = 0
    for row in table:
        cells = [page.lines[i].text.strip() for i in row]
        good += any(_VALUE.match(cell) for cell in cells) and any(c.isalpha() for cell in cells for c in cell)
    return good >= 3 and good * 2 >= len(table)


def find_title(page_set: PageSet) -> str:
    """The largest print on the first page that has text, if it stands out, with the lines of that size that follow.

    Else the first entry of the outline, else the page's first line. Upright lines only, and no dates.
    """
    body = body_size(page_set)
    for page in page_set.pages:
        lines = [(i, line_size(line, page)) for i, line in enumerate(page.lines) if _may_be_title(line, page)]
        if not lines:
            continue
        first, largest = max(lines, key=lambda item: (item[1], -item[0]))
        if largest >= 1.15 * body:
            parts = [page.lines[first].text]
            for i, size in lines:
                if i > first and i <= first + len(parts) and size >= 0.9 * largest:
                    parts.append(page.lines[i].text)
            return join_lines(parts)[0][:LABEL_CHARS].strip()
        if page_set.outline and _worded(page_set.outline[0].title):
            return " ".join(page_set.outline[0].title.split())[:LABEL_CHARS]
        return " ".join(page.lines[lines[0][0]].text.split())[:LABEL_CHARS]
    return ""


def _may_be_title(line: Line, page: Page) -> bool:
    width, height = (line.bbox[2] - line.bbox[0]) * page.width, (line.bbox[3] - line.bbox[1]) * page.height
    sideways = len(line.text) > 5 and height > width
    return _worded(line.text) and not sideways and not (len(line.text) < 40 and _DATE.search(line.text))


def _worded(text: str) -> bool:
    return sum(c.isalpha() for c in text) >= (2 if _WIDE.search(text) else 4)


def _topic(title: str, summaries: SummarySet | None, n_words: int = 8) -> str:
    """The title and the keywords that most pages have."""
    counts: Counter[str] = Counter()
    for summary in summaries.summaries if summaries else []:
        for rank, word in enumerate(summary.keywords):
            counts[word] += 1000 - rank
    folded = unicodedata.normalize("NFKC", title).casefold()
    words = [w for w, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if w not in folded][:n_words]
    return ": ".join(part for part in (title, ", ".join(words)) if part)


def build_schema(
    page_set: PageSet, layout: LayoutSet | None, summaries: SummarySet | None, params: SchemaParams
) -> SchemaMemory:
    """The schema memory of a document.

    Args:
        page_set: its pages.
        layout: its regions; None where no layout was made.
        summaries: its page summaries, for the topic's keywords; None leaves the title alone.
        params: how many sections at most.
    """
    headings = find_headings(page_set)
    regions: dict[int, list[Region]] = defaultdict(list)
    for region in layout.regions if layout else []:
        regions[region.page].append(region)
    n_pages = max((page.page for page in page_set.pages), default=0)
    carries = {page.page: page_carries(page, regions[page.page]) for page in page_set.pages}
    return SchemaMemory(
        doc_id=page_set.doc_id,
        doc_type=guess_doc_type(page_set),
        topic=_topic(find_title(page_set), summaries),
        language=page_set.language,
        sections=build_sections(_section_marks(page_set, layout, headings), n_pages, params.max_sections),
        carries=carries,
    )
