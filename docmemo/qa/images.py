"""Pictures of pages and crops as a model is sent them: from the archives, at the side wanted.

Each is encoded once a document, and one that is small enough goes out with the archive's own bytes.
"""

from __future__ import annotations

import io
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from docmemo.artifacts import read_member
from docmemo.errors import ArtifactError
from docmemo.models.chat import Image

MAX_ASPECT = 50
"""Long side over short side; models refuse pictures like tapes (Qwen-VL: 200), so these get a white margin."""
MIN_SIDE = 28
"""Pixels; the smallest side a model's preprocessing takes (Qwen2.5-VL's patch)."""
CACHE_BYTES = 128 * 2**20
"""Of encoded pictures a document keeps in memory: some 200 pages of 1,600 pixels."""


def scaled(width: int, height: int, side: int) -> tuple[int, int]:
    """Size of a picture whose long side is brought down to `side` pixels, rounded up; smaller ones keep theirs."""
    longest = max(width, height)
    if longest <= side:
        return width, height
    return math.ceil(width * side / longest), math.ceil(height * side / longest)


def padded(width: int, height: int) -> tuple[int, int]:
    """The size with the margin that makes a picture acceptable; the same size for all but odd ones."""
    least = max(MIN_SIDE, -(-max(width, height) // MAX_ASPECT))
    return max(width, least), max(height, least)


def encode_acceptable(data: bytes, side: int) -> Image:
    """A picture as it is sent, its long side at most `side` pixels.

    Raises:
        ArtifactError: if the bytes are no picture.
    """
    from docmemo.models.images import JPEG_QUALITY, encode

    made = encode(data, side)
    size = padded(made.width, made.height)
    if size == (made.width, made.height):
        return made
    from PIL import Image as Pictures

    canvas = Pictures.new("RGB", size, "white")
    with Pictures.open(io.BytesIO(data)) as picture:
        canvas.paste(picture.convert("RGB").resize((made.width, made.height)))
    out = io.BytesIO()
    canvas.save(out, "JPEG", quality=JPEG_QUALITY)
    return encode(out.getvalue(), max(size))


@dataclass
class ImageCache:
    """Encoded pictures of one document, the most recently used ones. May be used from several threads."""

    limit: int = CACHE_BYTES
    encoded: int = 0
    """Pictures encoded so far."""
    _images: OrderedDict[tuple[Path, str, int], Image] = field(default_factory=OrderedDict, repr=False)
    _sizes: dict[tuple[Path, str], tuple[int, int]] = field(default_factory=dict, repr=False)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def image(self, archive: Path, member: str, side: int) -> Image:
        """A member of an archive at a side.

        Raises:
            ArtifactError: if the archive has no such picture.
        """
        key = (archive, member, side)
        with self._lock:
            found = self._images.get(key)
            if found is None:
                found = encode_acceptable(read_member(archive, member), side)
                self.encoded += 1
                self._images[key] = found
                self._bytes += len(found.data_uri)
            self._images.move_to_end(key)
            while self._bytes > self.limit and len(self._images) > 1:
                _, old = self._images.popitem(last=False)
                self._bytes -= len(old.data_uri)
        return found

    def size(self, archive: Path, member: str) -> tuple[int, int]:
        """Width and height of a member in pixels, from its header.

        Raises:
            ArtifactError: if the archive has no such picture.
        """
        from PIL import Image as Pictures

        if (archive, member) not in self._sizes:
            try:
                with Pictures.open(io.BytesIO(read_member(archive, member))) as picture:
                    self._sizes[archive, member] = picture.size
            except OSError as error:
                raise ArtifactError(
                    f"{archive}: {member} is not a picture: {error}.", remedy="Run `dvc repro`."
                ) from error
        return self._sizes[archive, member]


@dataclass(frozen=True)
class Picture:
    """A picture that can be sent: its size is known at once, its bytes are made when they are needed."""

    cache: ImageCache
    archive: Path
    member: str
    width: int
    """Pixels in the archive."""
    height: int

    def outline(self, side: int) -> Image:
        """What `image` would give, without its bytes: enough to count a request."""
        width, height = padded(*scaled(self.width, self.height, side))
        return Image(data_uri="", sha256="", width=width, height=height)

    def image(self, side: int) -> Image:
        """The picture with its long side at most `side` pixels; encoded once a side, in tens of milliseconds.

        Raises:
            ArtifactError: if the archive has no such picture.
        """
        largest = max(self.width, self.height)
        return self.cache.image(self.archive, self.member, min(side, largest))
