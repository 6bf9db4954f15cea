"""A language model for tests: scripted replies, requests kept, counted as the real client counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from docmemo.models.chat import Image, Message, Reply
from docmemo.models.structured import response_format
from docmemo.models.tokens import request_tokens
from docmemo.usage import Usage


@dataclass
class FakeModel:
    """A ChatModel.

    Attributes:
        replies: values as dicts, one a request, the last for ever; an exception is raised.
        room: tokens of a request.
        rule: makes a reply from the messages instead.
    """

    replies: Sequence[Any] = ()
    room: int = 100_000
    rule: Callable[[Sequence[Message]], Any] | None = None
    from_journal: bool = False
    asked: list[tuple[list[Message], type]] = field(default_factory=list)
    counted: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        return {"id": "fake"}

    async def ask(self, messages: Sequence[Message], schema: type, *, label: str = "") -> Reply[Any]:
        self.asked.append((list(messages), schema))
        value = self.rule(messages) if self.rule else self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(value, Exception):
            raise value
        usage = Usage(calls=1, input_tokens=self.count(messages, schema), output_tokens=10)
        return Reply(schema.model_validate(value), usage, "", from_journal=self.from_journal)

    def count(self, messages: Sequence[Message], schema: type | None = None) -> int:
        self.counted += 1
        return request_tokens(messages, response_format(schema, "json_schema") if schema else None, "qwen2_5_vl")

    @property
    def text(self) -> str:
        """All text of the last request."""
        return text_of(self.asked[-1][0])

    @property
    def images(self) -> list[Image]:
        """The pictures of the last request, in order."""
        return [part for message in self.asked[-1][0] for part in message.parts if isinstance(part, Image)]


def text_of(messages: Sequence[Message]) -> str:
    """All text of messages, a `[picture]` for each picture."""
    return "\n".join("[picture]" if isinstance(p, Image) else p for message in messages for p in message.parts)
