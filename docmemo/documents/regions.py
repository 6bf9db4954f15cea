"""Regions of pages: tables and figures with their captions and crops, headings with their levels."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_pages
from docmemo.config import LayoutParams
from docmemo.documents.captions import caption_of
from docmemo.documents.crops import render_crop
from docmemo.documents.layout import area, figure_boxes, inside, merge_boxes, model_boxes, overlap, union
from docmemo.documents.pdf import Kind, Source, cached_source
from docmemo.documents.render import is_blank, pixels
from docmemo.types import Box, Line, Page, Region

WHOLE_PAGE: Box = (0.0, 0.0, 1.0, 1.0)

_REACH = 0.15
"""A caption further from its table or figure than this share of the page is not its caption."""

MAX_CAPTION = 600
_BARE = 16
"""A caption shorter than this is a bare label ("TABLE III") whose title stands below."""

_TITLE_REACH = 0.08
"""A heading higher above a table or figure is not its title."""

MAX_HEADING = 200
_MAX_LEVEL = 6
_SCAN_HEADINGS = 2
"""Large lines of a scanned page that count as headings: on a slide more would be its body."""

_NUMBERED = re.compile(
    r"^(?:(?:chapter|section|part|kapitel|abschnitt)\s+)?(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S", re.I
)


_ROMAN = re.compile(r"^[IVX]{1,5}\.\s+\S")
_LETTERED = re.compile(r"^[A-Z]\.\s+\S")
_REMARK = re.compile(r"^(?:notes?|sources?|quellen?|anmerkung(?:en)?|hinweis|nota|fuentes?|fonte)\b", re.I)


@dataclass(frozen=True)
class Found:
    """A region and, for a heading, its type size (points; the line's height for OCR), from which its level comes."""

    region: Region
    size: float = 0.0


def crop_member(page: int, kind: str, number: int) -> str:
    """Name of a crop in the archive and in the worker's folder; `number` counts a page's regions of that kind."""
    return f"crops/{page:04d}-{kind}-{number}.jpg"


# --- captions -------------------------------------------------------------------------------------------------


def lines_in(lines: Sequence[Line], box: Box) -> list[Line]:
    """The lines whose centre lies in a box."""
    return [li for li in lines if inside(li, box)]


def _joined(lines: Sequence[Line], limit: int) -> str:
    text = ""
    for line in lines:
        text += line.text if not text else (" " + line.text)
        if len(text) >= limit:
            break
    return text[:limit].strip()


def find_captions(
    page: int, model: Sequence[tuple[str, Box]], lines: Sequence[Line], tables: Sequence[Box]
) -> list[Region]:
    """The model's captions, and blocks that begin like one ("Table 3: ...") wherever the model saw plain text."""
    captions = []
    taken: set[int] = set()
    for kind, box in model:
        if kind != "caption":
            continue
        members = [i for i, li in enumerate(lines) if inside(li, box)]
        if members:
            taken.update(members)
            chosen = [lines[i] for i in members]
            if len(chosen) == 1 and len(chosen[0].text) < _BARE:
                more = _continued(members[0], lines, taken)
                taken.update(more)
                chosen += [lines[i] for i in more]
                box = union([box, *(lines[i].bbox for i in more)])
            text = _joined(chosen, MAX_CAPTION)
            captions.append(Region(page=page, kind="caption", bbox=box, text=text))
    for i, line in enumerate(lines):
        if i in taken or caption_of(line.text) is None or (i and not _starts_block(lines[i - 1], line)):
            continue
        if any(overlap(line.bbox, t) > 0.8 * area(line.bbox) for t in tables) and not _begins(line, tables):
            continue
        members = [i, *_continued(i, lines, taken)]
        taken.update(members)
        chosen = [lines[j] for j in members]
        captions.append(
            Region(
                page=page,
                kind="caption",
                bbox=union(li.bbox for li in chosen),
                text=_joined(chosen, MAX_CAPTION),
            )
        )
    return captions


def _starts_block(before: Line, line: Line) -> bool:
    """Whether a line that begins like a caption is one, and not a sentence broken before "Table 3"."""
    return before.block != line.block or (len(line.text) >= _BARE and before.text.endswith((".", ")", "。")))


def _continued(first: int, lines: Sequence[Line], taken: set[int]) -> list[int]:
    """Positions of the lines that go on a caption: the rest of its block, and below a bare label the next block."""
    more: list[int] = []
    line = lines[first]
    blocks = {line.block}
    for j in range(first + 1, min(len(lines), first + 8)):
        after = lines[j]
        if j in taken or caption_of(after.text) is not None:
            break
        if after.block not in blocks:
            before = lines[j - 1].bbox
            near = 0 <= after.bbox[1] - before[1] < 3 * (before[3] - before[1])
            if more or len(line.text) >= _BARE or not near:
                break
            blocks.add(after.block)
        more.append(j)
    return more


def _begins(line: Line, tables: Sequence[Box]) -> bool:
    """Whether a line is the first of a table's box (a caption the model took in)."""
    height = line.bbox[3] - line.bbox[1]
    return any(inside(line, t) and line.bbox[1] - t[1] < height for t in tables)


def _distance(caption: Box, box: Box) -> float:
    """Gap between two boxes as a share of the page; captions beside a region count as a little further away."""
    dx = max(0.0, caption[0] - box[2], box[0] - caption[2])
    dy = max(0.0, caption[1] - box[3], box[1] - caption[3])
    return dy + 1.5 * dx


def assign_captions(regions: Sequence[Region], captions: Sequence[Region]) -> None:
    """Give each table and figure its nearest caption; a caption of the other kind only when nothing else is near."""
    pairs = []
    for i, region in enumerate(regions):
        for j, caption in enumerate(captions):
            distance = _distance(caption.bbox, region.bbox)
            label = caption_of(caption.text)
            if label is not None:
                is_table = label[0] == "table"
                if is_table != (region.kind == "table"):
                    distance += _REACH / 2
            if distance < _REACH:
                pairs.append((distance, i, j))
    used_regions: set[int] = set()
    used_captions: set[int] = set()
    for _, i, j in sorted(pairs):
        if i not in used_regions and j not in used_captions:
            regions[i].text = captions[j].text
            used_regions.add(i)
            used_captions.add(j)


def add_titles(regions: Sequence[Region], headings: Sequence[Region]) -> None:
    """Tables and figures without a caption, or with a mere note or source, take the heading right above them."""
    for region in regions:
        if region.text and not _REMARK.match(region.text):
            continue
        box = region.bbox
        above = [
            (box[1] - h.bbox[3], h)
            for h in headings
            if -0.02 < box[1] - h.bbox[3] < _TITLE_REACH and h.bbox[0] < box[2] and h.bbox[2] > box[0]
        ]
        if above:
            title = min(above, key=lambda pair: pair[0])[1].text
            region.text = f"{title}. {region.text}" if region.text else title


# --- scans ----------------------------------------------------------------------------------------------------


def tables_from_lines(lines: Sequence[Line]) -> list[Box]:
    """Tables of a page the model cannot see: at least four rows that follow each other, of three or more pieces
    each, most of them holding figures."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda li: li.bbox[1] + li.bbox[3]):
        if rows:
            last = rows[-1][0].bbox
            middle = (line.bbox[1] + line.bbox[3]) / 2
            if last[1] < middle < last[3]:
                rows[-1].append(line)
                continue
        rows.append([line])
    found: list[Box] = []
    run: list[list[Line]] = []

    def flush() -> None:
        cells = [li for row in run for li in row]
        numeric = sum(any(c.isdigit() for c in li.text) for li in cells)
        if len(run) >= 4 and numeric >= 0.4 * len(cells):
            found.append(union(li.bbox for li in cells))
        run.clear()

    for row in rows:
        if len(row) >= 3 and statistics.median(len(li.text) for li in row) < 25:
            if run:
                height = statistics.median(li.bbox[3] - li.bbox[1] for li in run[-1])
                if min(li.bbox[1] for li in row) - max(li.bbox[3] for li in run[-1]) > 3 * height:
                    flush()
            run.append(row)
        elif run:
            flush()
    flush()
    return found


def scan_regions(page: Any, data: Page) -> list[Found]:
    """Of a page without text layer: the whole page as a figure, tables by alignment, large lines as headings."""
    number = data.page
    found = [Found(Region(page=number, kind="table", bbox=b)) for b in tables_from_lines(data.lines)]
    found += [Found(c) for c in find_captions(number, (), data.lines, ())]
    heights = [li.bbox[3] - li.bbox[1] for li in data.lines]
    if heights:
        usual = statistics.median(heights)
        large: list[Found] = []
        for line, height in zip(data.lines, heights, strict=True):
            letters = sum(c.isalpha() for c in line.text)
            if height > 1.4 * usual and letters >= 3 and len(line.text) <= 100 and line.text[0] not in "•*-–·":
                region = Region(page=number, kind="heading", bbox=line.bbox, text=line.text)
                large.append(Found(region, height * float(page.rect.height)))
        found += sorted(large, key=lambda f: f.region.bbox[1])[:_SCAN_HEADINGS]
    if data.lines or not is_blank(pixels(page, 200 / max(page.rect.width, page.rect.height))):
        found.append(Found(Region(page=number, kind="figure", bbox=WHOLE_PAGE)))
    return found


# --- pages with text ------------------------------------------------------------------------------------------


def _headings(number: int, model: Sequence[tuple[str, Box]], lines: Sequence[Line]) -> Iterator[Found]:
    for kind, box in model:
        if kind not in ("title", "section-header"):
            continue
        members = lines_in(lines, box)
        text = _joined(members, MAX_HEADING)
        if sum(c.isalpha() for c in text) >= 2 and caption_of(text) is None:
            size = max(li.size for li in members) + (0.2 if all(li.bold for li in members) else 0.0)
            yield Found(
                Region(page=number, kind="heading", bbox=box, text=text, level=1 if kind == "title" else 0), size
            )


def page_regions(source: Source, data: Page, params: LayoutParams) -> list[Found]:
    """Regions of one page, top to bottom; crops are named but not rendered, section headings have no level yet."""
    page = source.page(data.page)
    if data.text_source != "text_layer" or not source.is_pdf:
        found = scan_regions(page, data)
    else:
        model = model_boxes(page, data.lines)
        tables = merge_boxes([box for kind, box in model if kind == "table"])
        found = [Found(Region(page=data.page, kind="table", bbox=b)) for b in tables]
        figures = figure_boxes(page, model, data.lines, params)
        found += [Found(Region(page=data.page, kind="figure", bbox=b)) for b in figures]
        found += [Found(c) for c in find_captions(data.page, model, data.lines, tables)]
        found += _headings(data.page, model, data.lines)
    return complete(found)


def complete(found: list[Found]) -> list[Found]:
    """A page's regions from top to bottom: captions and titles given to tables and figures, crops named.

    A table or figure that has its caption already keeps it.
    """
    pictured = [f.region for f in found if f.region.kind in ("table", "figure") and f.region.bbox != WHOLE_PAGE]
    given = {region.text for region in pictured if region.text}
    captions = [f.region for f in found if f.region.kind == "caption" and f.region.text not in given]
    assign_captions([region for region in pictured if not region.text], captions)
    add_titles(pictured, [f.region for f in found if f.region.kind == "heading"])
    found.sort(key=lambda f: (f.region.bbox[1], f.region.bbox[0], f.region.kind))
    counts: dict[str, int] = {}
    for item in found:
        kind = item.region.kind
        if kind in ("table", "figure"):
            counts[kind] = counts.get(kind, 0) + 1
            item.region.crop = crop_member(item.region.page, kind, counts[kind])
    return found


def set_levels(found: Sequence[Found]) -> None:
    """Heading levels 1..6: from its number ("2.3 Results" is 2), else from the rank of its type size.

    Sizes within 12% of the largest of a rank share it.
    """
    headings = [f for f in found if f.region.kind == "heading"]
    rank: dict[float, int] = {}
    top = 0.0
    for size in sorted({f.size for f in headings}, reverse=True):
        if not rank or size < 0.88 * top:
            top = size
            rank[size] = len(set(rank.values())) + 1
        else:
            rank[size] = len(set(rank.values()))
    for item in headings:
        if item.region.level != 1:
            level = _numbered_level(item.region.text) or rank[item.size]
            item.region.level = min(_MAX_LEVEL, level)


def _numbered_level(text: str) -> int:
    """Depth a heading's own number says; 0 without a number."""
    if match := _NUMBERED.match(text):
        return match[1].count(".") + 1
    if _ROMAN.match(text):
        return 1
    return 2 if _LETTERED.match(text) else 0


# --- entries --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _archive(path: str, _mtime_ns: int) -> dict[int, Page]:
    return {page.page: page for page in read_pages(Path(path)).pages}


def page_records(archive: Path) -> dict[int, Page]:
    """Page records of an archive by page; read once by a process, again when the file was replaced."""
    return _archive(str(archive), archive.stat().st_mtime_ns)


def analyze_pages(
    path: str, kind: Kind, archive: str, params: LayoutParams, folder: str, pages: list[int]
) -> dict[int, list[Found]]:
    """Worker entry: regions of `pages` (1-based), their crops written to files below `folder`.

    Args:
        path: the document.
        kind: "pdf" or "images".
        archive: its page archive, for the text lines.
        params: layout parameters.
        folder: where crops go, under the names their regions give.
        pages: the pages to look at; heading levels are left to `set_levels`.

    Raises:
        DocumentError: if the document cannot be opened.
        ArtifactError: if the page archive cannot be read.
        Exception: whatever MuPDF or the model raises for a page; the pool makes it the page's failure.
    """
    source = cached_source(Path(path), kind)
    records = page_records(Path(archive))
    results = {}
    for number in pages:
        found = page_regions(source, records[number], params)
        page = source.page(number)
        for item in found:
            if item.region.crop:
                target = Path(folder) / item.region.crop
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(render_crop(source, page, item.region.bbox, params))
        results[number] = found
    return results
