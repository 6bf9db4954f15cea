"""Pictures as they are sent to a model: encoded once, brought down to a long side where they are larger.

A picture that fits is passed on byte for byte, so that what is shown is what the render stage stored.
"""

from __future__ import annotations

import base64
import hashlib
import io

import PIL.Image

from docmemo.errors import ArtifactError
from docmemo.models.chat import Image

JPEG_QUALITY = 85
"""Of pictures that are made smaller."""
_MEDIA = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""What servers take; anything else is encoded anew."""


def encode(data: bytes, max_side: int) -> Image:
    """A picture for a request.

    Args:
        data: an encoded picture, e.g. a page's JPEG.
        max_side: pixels its long side may have; a larger one is made smaller (Lanczos, JPEG).

    Raises:
        ArtifactError: if the bytes are no picture.
    """
    try:
        with PIL.Image.open(io.BytesIO(data)) as picture:
            media = _MEDIA.get(picture.format or "")
            if media is not None and max(picture.size) <= max_side:
                return _image(data, media, *picture.size)
            picture.thumbnail((max_side, max_side), PIL.Image.Resampling.LANCZOS)
            smaller = io.BytesIO()
            picture.convert("RGB").save(smaller, "JPEG", quality=JPEG_QUALITY)
            return _image(smaller.getvalue(), _MEDIA["JPEG"], *picture.size)
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        raise ArtifactError(f"A page image cannot be decoded: {error}.", remedy="Run `dvc repro`.") from error


def _image(data: bytes, media: str, width: int, height: int) -> Image:
    uri = f"data:{media};base64,{base64.b64encode(data).decode('ascii')}"
    return Image(data_uri=uri, sha256=hashlib.sha256(data).hexdigest(), width=width, height=height)
