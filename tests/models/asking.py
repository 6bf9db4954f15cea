"""What the tests of the client share: a schema, messages, page images, and a model of one's own settings."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

from PIL import Image as Picture
from pydantic import BaseModel

from docmemo.config import ModelParams
from docmemo.models.chat import Image, Message
from docmemo.models.openai_compatible import OpenAICompatibleModel, open_model


class Verdict(BaseModel):
    """A small reply."""

    pages: list[int]
    why: str


def page(width: int = 280, height: int = 280, color: str = "white") -> Image:
    """A page image of this size in pixels."""
    data = io.BytesIO()
    Picture.new("RGB", (width, height), color).save(data, "JPEG")
    encoded = data.getvalue()
    return Image(
        data_uri=f"data:image/jpeg;base64,{base64.b64encode(encoded).decode()}",
        sha256=hashlib.sha256(encoded).hexdigest(),
        width=width,
        height=height,
    )


def say(text: str, *images: Image) -> list[Message]:
    """A system message, and a user message of a text and images."""
    return [Message("system", ["Read the pages."]), Message("user", [text, *images])]


def model(role: str = "reasoner", entry: dict[str, Any] | None = None, **params: Any) -> OpenAICompatibleModel:
    """A model with the settings of the environment."""
    opened = open_model(role, ModelParams(**{"id": "scripted", **params}), entry=entry)
    assert isinstance(opened, OpenAICompatibleModel)
    return opened
