"""A rendered prompt as the messages of a request."""

from __future__ import annotations

from collections.abc import Mapping

from docmemo.models.chat import Image, Message, Part
from docmemo.prompts import Rendered


def messages_of(rendered: Rendered, images: Mapping[str, Image] | None = None) -> list[Message]:
    """System message (where the prompt has one) and user message, pictures in the places the prompt gives them."""
    parts: list[Part] = rendered.user_parts(images)
    user = Message("user", parts)
    return [Message("system", [rendered.system]), user] if rendered.system else [user]
