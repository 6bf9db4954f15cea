"""Page thumbnails for the report: each page once, as a data URI, within a budget for the whole file."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from docmemo.artifacts import artifact_name, read_member, read_pages, write_atomic
from docmemo.errors import ArtifactError
from docmemo.fingerprint import digest, digest_bytes

BUDGET = 13_000_000
"""Bytes of all thumbnails together before base64 adds a third: about 17 MB of the file."""
_PER_PAGE = 12_000
_QUALITIES = (62, 50, 40, 30, 20)


@dataclass(frozen=True)
class Thumbnail:
    """One page's picture."""

    key: tuple[str, int]
    """Document id and page."""
    uri: str
    """`data:image/jpeg;base64,...`"""
    ratio: float
    """Height over width."""


def thumbnails(
    pages_dir: Path, wanted: Mapping[str, set[int]], width: int, cache: Path | None = None
) -> Iterator[Thumbnail]:
    """Thumbnails of the wanted pages of each document, one page in memory at a time.

    Documents without archive, and pages without picture or with a damaged one, are left out: the report then
    shows an empty sheet of paper with the page's number.

    Args:
        pages_dir: folder of the `.pages.zip` archives.
        wanted: document id to page numbers.
        width: pixels; less when the budget asks for it.
        cache: folder that keeps thumbnails by the content of the page image; None keeps none.
    """
    total = sum(map(len, wanted.values()))
    allowance = min(_PER_PAGE, BUDGET // max(total, 1))
    for doc_id in sorted(wanted):
        path = pages_dir / artifact_name(doc_id, ".pages.zip")
        try:
            images = {p.page: p.image for p in read_pages(path).pages}
        except ArtifactError:
            continue
        for page in sorted(wanted[doc_id]):
            if images.get(page):
                made = _cached_thumbnail(path, images[page], width, allowance, cache)
                if made:
                    yield Thumbnail((doc_id, page), *made)


def _cached_thumbnail(
    path: Path, member: str, width: int, allowance: int, cache: Path | None
) -> tuple[str, float] | None:
    """Data URI and height over width, from the cache or made now; None when the picture cannot be read."""
    try:
        picture = read_member(path, member)
    except ArtifactError:
        return None
    if cache is None:
        return picture_uri(picture, width, allowance)
    key = digest({"picture": digest_bytes(picture), "width": width, "allowance": allowance, "version": 1})
    kept = cache / key[:2] / f"{key}.txt"
    try:
        ratio, uri = kept.read_text(encoding="ascii").split("\n")
        return uri, float(ratio)
    except (OSError, ValueError):
        made = picture_uri(picture, width, allowance)
    if made is not None:
        write_atomic(kept, f"{made[1]!r}\n{made[0]}".encode("ascii"))
    return made


def picture_uri(picture: bytes, width: int, allowance: int) -> tuple[str, float] | None:
    """Data URI of a JPEG of at most `allowance` bytes, and height over width; None when it cannot be read."""
    try:
        with Image.open(io.BytesIO(picture)) as image:
            image.draft("RGB", (width, width))  # JPEG is decoded at a fraction of its size
            small = image.convert("RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        return None
    ratio = small.height / small.width
    width = min(width, small.width)
    while True:
        scaled = small.resize((width, max(1, min(round(width * ratio), 4 * width))), Image.Resampling.LANCZOS)
        for quality in _QUALITIES:
            buffer = io.BytesIO()
            scaled.save(buffer, "JPEG", quality=quality, optimize=True)
            if buffer.tell() <= allowance:
                break
        if buffer.tell() <= allowance or width <= 60:
            data = base64.b64encode(buffer.getvalue()).decode("ascii")
            return f"data:image/jpeg;base64,{data}", ratio
        width = width * 3 // 4
