"""Layout by MinerU: its command run over a document, its blocks as regions of our pages, crops rendered by us."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from docmemo.config import LayoutParams
from docmemo.documents.captions import caption_of
from docmemo.documents.crops import render_crop
from docmemo.documents.layout import area, overlap, picture_boxes
from docmemo.documents.mineru_output import TITLES, VISUALS, Block, MinerUOutput, box_of, image_of, read_output
from docmemo.documents.pdf import Kind, Source, cached_source, mupdf, open_source, parser_errors
from docmemo.documents.regions import (
    MAX_CAPTION,
    MAX_HEADING,
    Found,
    complete,
    find_captions,
    lines_in,
    page_records,
    scan_regions,
)
from docmemo.errors import ConfigError, DocumentError, PageTimeoutError, WorkerDiedError
from docmemo.processes import end_group, tied
from docmemo.types import Box, Page, Region, RegionKind

_WHOLE = 0.9
"""A figure that covers this share of a page is the page itself."""
_SAME_SHAPE = 0.02
"""Width to height of a page may differ by this much between MinerU and us; more and its boxes would be misplaced."""
_TAIL = 2000
_SETUP = (
    "missing runtime dependencies",
    "Connection failed",
    "Connection refused",
    "Failed to resolve",
    "LocalEntryNotFoundError",
    "model_preload",
    "CUDA out of memory",
)
"""Messages of a MinerU that lacks something itself; no other document would fare better."""


# --- running it -----------------------------------------------------------------------------------------------


def as_pdf(path: str, kind: Kind, target: str) -> None:
    """Make `target` a PDF of a document: a link to it, or page images put on pages of their size.

    Raises:
        DocumentError: if the document cannot be opened.
    """
    with open_source(Path(path), kind) as source:
        if source.is_pdf:
            _link(Path(path).absolute(), Path(target))
            return
        pymupdf = mupdf()
        document = pymupdf.open()
        broken: tuple[type[Exception], ...] = (*parser_errors(), DocumentError)
        for number in range(1, source.n_pages + 1):
            try:
                page = source.page(number)
                picture = page.get_pixmap(matrix=_own_pixels(page), alpha=False).tobytes("jpg", jpg_quality=90)
            except broken:
                document.new_page()  # it failed when pages were rendered, and its regions are not asked for
                continue
            made = document.new_page(width=page.rect.width, height=page.rect.height)
            made.insert_image(made.rect, stream=picture)
        document.save(target)
        document.close()


def _link(path: Path, target: Path) -> None:
    try:
        target.symlink_to(path)
    except OSError:  # Windows without the right to make links
        import shutil

        shutil.copyfile(path, target)


def _own_pixels(page: Any) -> Any:
    """The zoom at which a page image has its own pixels, or 4,000 on its long side."""
    widths = [info["width"] / max(1.0, page.rect.width) for info in page.get_image_info()]
    zoom = min(max([*widths, 1.0]), 4000 / max(page.rect.width, page.rect.height))
    return mupdf().Matrix(zoom, zoom)


def run_mineru(command: Path, pdf: Path, folder: Path, tier: str, limit: float) -> Path:
    """Let MinerU parse a PDF.

    Args:
        command: `mineru-kit`.
        pdf: the document.
        folder: where its zip goes; empty.
        tier: flash, basic, standard or advanced.
        limit: seconds it may take.

    Returns:
        The zip.

    Raises:
        ConfigError: if MinerU itself lacks something, such as model weights.
        DocumentError: if it cannot parse the document.
        PageTimeoutError: if it took too long.
        WorkerDiedError: if it was killed.
    """
    arguments = [str(command), "parse", str(pdf), "-o", str(folder), "-f", "zip", "--tier", tier]
    if tier == "flash":
        arguments += ["--ocr-mode", "txt"]  # else it wants OCR weights for the first scan it meets
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            tied(arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "500"},
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise PageTimeoutError(
                f"MinerU took longer than {limit:g} s.", remedy="Raise DOCMEMO_PAGE_TIMEOUT."
            ) from None
        finally:
            end_group(process)
        message = _tail(log)
    made = sorted(folder.glob("*.zip"))
    if code == 0 and len(made) == 1:
        return made[0]
    raise _failure(code, message, tier, pdf)


def _tail(log: Any) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    text = log.read().decode("utf-8", "replace")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    said = [line for line in lines if line and "| INFO" not in line and "| WARNING" not in line]
    start = next((i for i, line in enumerate(said) if line.startswith("Error:")), max(0, len(said) - 3))
    return " ".join(said[start:])


def _failure(code: int, message: str, tier: str, pdf: Path) -> Exception:
    if code < 0:
        try:
            how = signal.Signals(-code).name
        except ValueError:
            how = f"signal {-code}"
        return WorkerDiedError(f"MinerU was killed ({how}).", remedy="Look at free memory, or set DOCMEMO_WORKERS=1.")
    reason = message.removeprefix("Error:").strip().replace(str(pdf), "the document") or f"exit status {code}"
    if any(text in message for text in _SETUP):
        return ConfigError(
            f"MinerU cannot run its tier {tier}: {reason}",
            remedy="`docmemo doctor` says which model weights are missing; layout.mineru_tier: flash needs none.",
        )
    return DocumentError(f"MinerU cannot parse it: {reason}", remedy="Use layout.backend: pymupdf for this dataset.")


# --- its blocks as regions ------------------------------------------------------------------------------------


def _titles(number: int, blocks: Sequence[Block], data: Page) -> list[Found]:
    """Headings, with the type size of our own lines from which levels come; the document's title has level 1."""
    found = []
    for block in blocks:
        box = box_of(block)
        if block.type not in TITLES or box is None:
            continue
        text = block.text[:MAX_HEADING]
        if sum(c.isalpha() for c in text) < 2 or caption_of(text) is not None:
            continue
        members = lines_in(data.lines, box)
        sizes = [li.size or (li.bbox[3] - li.bbox[1]) * data.height / 1.2 for li in members]
        size = max(sizes, default=(box[3] - box[1]) * data.height / 1.2)
        bold = bool(members) and all(li.bold for li in members)
        level = 1 if block.type == "doc_title" else 0
        region = Region(page=number, kind="heading", bbox=box, text=text, level=level)
        found.append(Found(region, size + (0.2 if bold else 0.0)))
    return found


def _visuals(page: Any, data: Page, blocks: Sequence[Block], params: LayoutParams) -> list[tuple[Region, Block]]:
    """Tables and figures with the blocks they come from.

    Left out are figures that are small, inside a table, the whole page (a scan, a background), or lines of text that
    tier flash takes for a picture.
    """
    tables = [box for block in blocks if block.type == "table" and (box := box_of(block)) is not None]
    pictures = picture_boxes(page, params)

    def is_figure(box: Box) -> bool:
        if not params.min_area <= area(box) < _WHOLE or sum(overlap(box, t) for t in tables) > 0.5 * area(box):
            return False
        text = sum(overlap(li.bbox, box) for li in lines_in(data.lines, box))
        return text < 0.5 * area(box) or any(overlap(box, p) > 0.3 * area(box) for p in pictures)

    visuals = []
    for block in blocks:
        box = box_of(block)
        if block.type not in VISUALS or box is None or (block.type != "table" and not is_figure(box)):
            continue
        kind: RegionKind = "table" if block.type == "table" else "figure"
        visuals.append((Region(page=data.page, kind=kind, bbox=box), block))
    return visuals


def _captioned(number: int, visuals: Sequence[tuple[Region, Block]], data: Page) -> list[Region]:
    """All captions of a page; tables and figures get those MinerU joins with them.

    Their text is that of our own lines, which search and snippets know; MinerU's where the page has none there.
    """
    joined: list[tuple[Region, Box, str]] = []
    for region, block in visuals:
        for part in block.parts:
            box = box_of(part)
            if part.type.endswith("_caption") and box is not None and part.text:
                joined.append((region, box, part.text))
    tables = [region.bbox for region, _ in visuals if region.kind == "table"]
    captions = find_captions(number, [("caption", box) for _, box, _ in joined], data.lines, tables)
    for region, box, text in joined:
        same = max(captions, key=lambda c: overlap(c.bbox, box), default=None)
        if same is None or overlap(same.bbox, box) < 0.3 * area(box):
            same = Region(page=number, kind="caption", bbox=box, text=text[:MAX_CAPTION])
            captions.append(same)
        if same.text not in region.text:
            region.text = f"{region.text} {same.text}".strip()[:MAX_CAPTION]
    return captions


def page_regions(
    source: Source, data: Page, output: MinerUOutput, params: LayoutParams
) -> tuple[list[Found], dict[str, str]]:
    """Regions of one page and, by the crop's name, the pictures MinerU cut.

    A page without text in which MinerU sees nothing but a picture is analysed as by the pymupdf backend.

    Raises:
        ValueError: if MinerU has not seen the page, or sees it in another shape.
    """
    given = output.page(data.page)
    if given is None:
        raise ValueError("MinerU's output lacks this page")
    _check_shape(data, output)
    page = source.page(data.page)
    visuals = _visuals(page, data, given.blocks, params)
    found = _titles(data.page, given.blocks, data)
    if not visuals and not found and not (data.text_source == "text_layer" and source.is_pdf):
        return complete(scan_regions(page, data)), {}
    captions = _captioned(data.page, visuals, data)
    regions = [region for region, _ in visuals]
    found = complete([*found, *(Found(region) for region in (*regions, *captions))])
    pictures = {}
    for region, block in visuals:
        cut = next((part.image_path for part in block.parts if part.image_path), None)
        if cut:
            pictures[region.crop] = cut
    return found, pictures


def _check_shape(data: Page, output: MinerUOutput) -> None:
    size = output.size(data.page)
    if size is None or data.height <= 0:
        return
    ours, theirs = data.width / data.height, size.width_pt / size.height_pt
    if abs(ours - theirs) > _SAME_SHAPE * ours:
        raise ValueError(
            f"MinerU sees a page of {size.width_pt:.0f} x {size.height_pt:.0f} points, which is displayed as "
            f"{data.width:.0f} x {data.height:.0f}"
        )


# --- entries --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _output(path: str, _mtime_ns: int) -> MinerUOutput:
    return read_output(Path(path))


def analyze_mineru_pages(
    path: str, kind: Kind, archive: str, params: LayoutParams, folder: str, output: str, pages: list[int]
) -> dict[int, list[Found]]:
    """Worker entry: regions of `pages` (1-based) after MinerU's zip `output`, their crops in files below `folder`.

    Raises:
        DocumentError: if the document cannot be opened, or the zip is not as it should be.
        ArtifactError: if the page archive cannot be read.
        Exception: whatever a page raises; the pool makes it the page's failure.
    """
    source = cached_source(Path(path), kind)
    records = page_records(Path(archive))
    seen = _output(output, Path(output).stat().st_mtime_ns)
    results = {}
    for number in pages:
        found, pictures = page_regions(source, records[number], seen, params)
        page = source.page(number)
        for item in found:
            crop = item.region.crop
            if not crop:
                continue
            target = Path(folder) / crop
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                picture = render_crop(source, page, item.region.bbox, params)
            except parser_errors():
                if crop not in pictures:
                    raise
                picture = image_of(Path(output), pictures[crop])
            target.write_bytes(picture)
        results[number] = found
    return results
