"""Pictures of regions, rendered from the document at the resolution they need (never cut from the page image)."""

from __future__ import annotations

from typing import Any

from docmemo.config import LayoutParams
from docmemo.documents.pdf import Source, mupdf
from docmemo.documents.render import jpeg, page_zoom, pixels
from docmemo.types import Box


def render_crop(source: Source, page: Any, box: Box, params: LayoutParams) -> bytes:
    """JPEG of a box (fractions of the displayed page) with `crop_padding` points around it.

    Its long side is `crop_long_side` pixels, or less where that would take more than `crop_max_dpi` or, on a page
    that is a picture, more than the picture's own pixels.
    """
    pymupdf = mupdf()
    width, height = page.rect.width, page.rect.height
    pad = params.crop_padding
    clip = pymupdf.Rect(
        max(0.0, box[0] * width - pad),
        max(0.0, box[1] * height - pad),
        min(width, box[2] * width + pad),
        min(height, box[3] * height + pad),
    )
    long_side = max(clip.width, clip.height)
    zoom = min(params.crop_long_side / long_side, params.crop_max_dpi / 72)
    if not source.is_pdf:
        zoom = min(zoom, page_zoom(source, page, dpi=10_000, max_side=1_000_000))
    return jpeg(pixels(page, zoom, clip), params.jpeg_quality)
