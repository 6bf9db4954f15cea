"""Tokens of a request as the scripted server counts them: on purpose not the client's way of counting.

Text by its bytes, images by the size written in their header. A client that fits requests by its own estimate is only
tested by a count that it does not share.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator
from typing import Any

from PIL import Image

BYTES_PER_TOKEN = 3.2
"""UTF-8 bytes a token: fewer than real tokenizers need for prose (4 and more), so more tokens."""
MESSAGE_TOKENS = 6
"""What a chat template adds to a message."""


def parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All content parts of a request; plain text content counts as one text part."""
    for message in body.get("messages", []):
        content = message.get("content")
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        elif isinstance(content, list):
            yield from content


def text_of(body: dict[str, Any]) -> str:
    """All text of a request, parts joined by line breaks."""
    return "\n".join(part["text"] for part in parts(body) if part.get("type") == "text")


def image_sizes(body: dict[str, Any]) -> list[tuple[int, int]]:
    """Width and height in pixels of every image, read from its bytes.

    Raises:
        ValueError: if an image is no base64 data URI or not an image.
    """
    sizes = []
    for part in parts(body):
        if part.get("type") != "image_url":
            continue
        head, comma, data = part["image_url"]["url"].partition(",")
        if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
            raise ValueError("image_url must be a base64 data URI")
        try:
            with Image.open(io.BytesIO(base64.b64decode(data))) as image:
                sizes.append(image.size)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot load image: {error}") from error
    return sizes


def text_tokens(text: str) -> int:
    """Tokens of a text by its length in bytes."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def request_tokens(body: dict[str, Any], patch: int = 28) -> tuple[int, int]:
    """Text tokens (template, schema included) and image tokens of a request.

    Args:
        body: the request.
        patch: pixels a side that one image token covers (28 for Qwen2.5-VL, 32 for Qwen3-VL).
    """
    text = sum(text_tokens(part["text"]) for part in parts(body) if part.get("type") == "text")
    text += MESSAGE_TOKENS * len(body.get("messages", []))
    if body.get("response_format", {}).get("type") == "json_schema":
        text += text_tokens(json.dumps(body["response_format"]["json_schema"]))
    images = sum(math.ceil(w / patch) * math.ceil(h / patch) + 2 for w, h in image_sizes(body))
    return text, images
