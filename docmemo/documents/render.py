"""What a worker does to render pages: picture, text layer or OCR, label. Runs in worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmemo.config import RenderParams
from docmemo.documents.ocr import read_lines
from docmemo.documents.pdf import Kind, Source, cached_source, mupdf
from docmemo.documents.text import n_visible, text_layer, usable
from docmemo.types import Line, Outline, Page, TextSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SCAN_COVER = 0.8
"""A picture that covers more of the page than this may be a scan with a stamp or footer as its only text layer."""

_STAMP_FACTOR = 5
"""Such a page is read by OCR when its text layer has fewer than `min_chars` times this many characters."""

_SMALLEST = 8
"""Pixels; even a page of one point gets a picture."""


def document_outline(path: str, kind: Kind) -> tuple[int, list[Outline]]:
    """Number of pages and bookmarks.

    Raises:
        DocumentError: if the document cannot be opened.
    """
    source = cached_source(Path(path), kind)
    return source.n_pages, source.outline()


def image_member(number: int) -> str:
    """Name of a page's picture in the archive and in the worker's folder."""
    return f"images/{number:04d}.jpg"


def page_zoom(source: Source, page: Any, dpi: int, max_side: int) -> float:
    """Pixels a point: `dpi`, but no side over `max_side` pixels, and pictures never enlarged."""
    long_side = max(page.rect.width, page.rect.height)
    if not 0 < long_side < 1e7:
        raise ValueError(f"the page measures {page.rect.width} x {page.rect.height} points")
    zoom = min(dpi / 72, max_side / long_side)
    if not source.is_pdf:
        info = page.get_image_info()
        if info:
            zoom = min(zoom, max(info[0]["width"], info[0]["height"]) / long_side)
    short_side = min(page.rect.width, page.rect.height)
    if short_side * zoom < _SMALLEST and short_side > 0:
        zoom = min(_SMALLEST / short_side, max_side / long_side)
    return float(zoom)


def pixels(page: Any, zoom: float, clip: Any = None) -> NDArray[np.uint8]:
    """The displayed page (or a part of it, `clip` in points) as RGB (height, width, 3)."""
    import numpy as np

    pymupdf = mupdf()
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), clip=clip, colorspace=pymupdf.csRGB, alpha=False)
    flat = np.frombuffer(pixmap.samples, dtype=np.uint8)
    return flat.reshape(pixmap.height, pixmap.stride)[:, : pixmap.width * 3].reshape(pixmap.height, pixmap.width, 3)


def jpeg(image: NDArray[np.uint8], quality: int) -> bytes:
    """RGB (height, width, 3) as JPEG."""
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=quality)
    return out.getvalue()


def is_blank(image: NDArray[np.uint8]) -> bool:
    """Whether nothing stands on the page: all but a few pixels have nearly one colour."""
    import numpy as np

    grey = image[::2, ::2].mean(axis=2)
    return bool((np.abs(grey - np.median(grey)) > 24).mean() < 1e-4)


def _picture_cover(page: Any) -> float:
    """The largest share of the page that one picture covers."""
    area = abs(page.mediabox.width * page.mediabox.height) or 1.0
    boxes = [mupdf().Rect(info["bbox"]) for info in page.get_image_info()]
    return max((abs(b.width * b.height) / area for b in boxes), default=0.0)


def page_text(page: Any, image: NDArray[np.uint8], params: RenderParams) -> tuple[list[Line], TextSource]:
    """The page's lines and where they come from; `image` is read by OCR only when the text layer is no use."""
    lines, raw = text_layer(page)
    good = usable(raw, params.ocr.min_chars)
    found = n_visible(lines)
    stamp = good and found < _STAMP_FACTOR * params.ocr.min_chars and _picture_cover(page) > _SCAN_COVER
    if (good and not stamp) or params.ocr.backend == "none":
        return lines, "text_layer" if lines else "none"
    if is_blank(image):
        return lines, "text_layer" if lines else "none"
    read = read_lines(image, params.ocr.max_side, params.ocr.min_confidence)
    # little text that is good beats OCR that found no more; garbage never does
    keep = usable(raw, 1) and n_visible(read) <= found
    if keep:
        return lines, "text_layer"
    return read, "ocr" if read else "none"


def render_page(source: Source, number: int, params: RenderParams, folder: Path) -> Page:
    """Write the page's JPEG below `folder` and return its record.

    Raises:
        Exception: one of MuPDF's or the OCR engine's; the pool makes it this page's failure.
    """
    page = source.page(number)
    image = pixels(page, page_zoom(source, page, params.dpi, params.max_side))
    lines, text_source = page_text(page, image, params)
    member = image_member(number)
    target = folder / member
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(jpeg(image, params.jpeg_quality))
    return Page(
        page=number,
        label=source.label(number),
        width=round(float(page.rect.width), 2),
        height=round(float(page.rect.height), 2),
        rotation=int(page.rotation) if source.is_pdf else 0,
        image=member,
        image_width=image.shape[1],
        image_height=image.shape[0],
        text_source=text_source,
        lines=lines,
    )


def render_pages(path: str, kind: Kind, params: RenderParams, folder: str, pages: list[int]) -> dict[int, Page]:
    """Worker entry: records of `pages` (1-based); their pictures go to files below `folder`."""
    source = cached_source(Path(path), kind)
    return {number: render_page(source, number, params, Path(folder)) for number in pages}
