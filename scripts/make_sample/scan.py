"""Turns drawn pages into scans: grey JPEG images with skew, uneven light and grain, and no text layer."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from .pdfs import open_pdf

SKEW = 0.9  # degrees, the largest


def scan_page(page: Any, seed: int, dpi: int = 138, quality: int = 34, paper: int = 233) -> bytes:
    """One page as a grey JPEG, as an office scanner would have it."""
    rng = np.random.default_rng(seed)
    pixmap = page.get_pixmap(dpi=dpi, colorspace="gray")
    sheet = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
    sheet = sheet.rotate(float(rng.uniform(-SKEW, SKEW)), Image.Resampling.BICUBIC, fillcolor=255)
    sheet = sheet.filter(ImageFilter.GaussianBlur(0.45))
    ink = np.asarray(sheet, dtype=np.float32) / 255.0
    height, width = ink.shape
    coarse = Image.fromarray(rng.uniform(-6, 6, (9, 7)).astype(np.float32), "F")
    mottle = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    across = np.linspace(0, 1, width, dtype=np.float32)[None, :]
    gutter = 26 * np.exp(-across * 22)  # the shadow of the binding
    light = paper + mottle - gutter + rng.normal(0, 1.6, ink.shape)
    grey = 38 + (light - 38) * ink
    for _ in range(int(rng.integers(4, 10))):  # dust
        y, x = int(rng.integers(0, height - 3)), int(rng.integers(0, width - 3))
        grey[y : y + 2, x : x + 2] -= 70
    image = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8), "L")
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, optimize=True)
    return buffer.getvalue()


def scanned(pdf: bytes, seed: int, pages: set[int] | None = None, quality: int = 34) -> bytes:
    """`pdf` with its pages (all, or the 1-based ones named) replaced by scans of themselves."""
    with open_pdf(stream=pdf, filetype="pdf") as source, open_pdf() as target:
        for number, page in enumerate(source, start=1):
            if pages is not None and number not in pages:
                target.insert_pdf(source, from_page=number - 1, to_page=number - 1)
                continue
            fresh = target.new_page(width=page.rect.width, height=page.rect.height)
            fresh.insert_image(fresh.rect, stream=scan_page(page, seed + number, quality=quality))
        target.set_metadata({"title": source.metadata["title"], "creationDate": "D:20250314090000Z"})
        if pages is not None and source.get_toc():
            target.set_toc(source.get_toc())
        return bytes(target.tobytes(garbage=3, deflate=True, use_objstms=1, no_new_id=True))
