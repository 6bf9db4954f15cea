"""The bytes of a chat request, and what is read from a completion.

A page image is half a megabyte of base64 that needs no escaping. Running it through the client library's
transformation and a JSON encoder, and copying the whole body a few times, would be most of what a call costs; so a
body is kept in pieces that are JSON already, and an image's bytes are sent as they are
(benchmarks/client_overhead.py).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmemo.config import ModelParams
from docmemo.models.chat import Image, Message
from docmemo.models.tokens import text_tokens
from docmemo.usage import Usage


@dataclass(frozen=True)
class Completion:
    """One answer of a server, unread."""

    content: str | None
    reasoning: str | None
    refusal: str | None
    finish_reason: str
    usage: Usage
    """Of this request; its cost is not known here (None)."""


class MalformedCompletionError(Exception):
    """A response of status 200 that is no chat completion."""


@dataclass(frozen=True)
class Body:
    """A request's JSON in pieces: an image is one, what stands between images another."""

    pieces: tuple[bytes, ...]

    @property
    def length(self) -> int:
        """Bytes."""
        return sum(map(len, self.pieces))

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes; a new iterator for every try."""
        for piece in self.pieces:
            yield piece


def _message(message: Message) -> Iterator[str | Image]:
    """A message's JSON, with images where their addresses stand."""
    yield f'{{"role":{json.dumps(message.role)},"content":'
    parts = message.parts
    if len(parts) == 1 and isinstance(parts[0], str):
        yield f"{json.dumps(parts[0])}}}"
        return
    for at, part in enumerate(parts):
        yield "," if at else "["
        if isinstance(part, Image):
            yield '{"type":"image_url","image_url":{"url":"'
            yield part
            yield '"}}'
        else:
            yield f'{{"type":"text","text":{json.dumps(part)}}}'
    yield "]}" if parts else "[]}"


def sampling(params: ModelParams) -> dict[str, Any]:
    """The sampling fields of a request; what `extra` sets replaces them, null removes one."""
    fields: dict[str, Any] = {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "seed": params.seed,
    }
    fields |= params.extra
    return {name: value for name, value in fields.items() if value is not None}


def request_body(params: ModelParams, messages: Sequence[Message], response_format: dict[str, Any] | None) -> Body:
    """A chat request as JSON.

    Raises:
        ImageInputError: if an image is no base64 data URI.
    """
    head: dict[str, Any] = {"model": params.id, **sampling(params)}
    if response_format is not None:
        head["response_format"] = response_format
    pieces: list[bytes] = []
    text = [f'{json.dumps(head)[:-1]},"messages":[']
    for at, message in enumerate(messages):
        if at:
            text.append(",")
        for piece in _message(message):
            if isinstance(piece, Image):
                pieces += ("".join(text).encode(), piece.wire)
                text = []
            else:
                text.append(piece)
    return Body((*pieces, "".join([*text, "]}"]).encode()))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _usage(body: Mapping[str, Any], content: str, estimate: int) -> Usage:
    """Usage as the server states it; where it states none, the estimate, so that budgets hold."""
    said = body.get("usage")
    if not isinstance(said, dict) or "prompt_tokens" not in said:
        return Usage(calls=1, input_tokens=estimate, output_tokens=text_tokens(content), cost_usd=None)
    details = said.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    multimodal = details.get("multimodal_tokens")
    images = details.get("image_tokens") or (multimodal.get("image") if isinstance(multimodal, dict) else None)
    return Usage(
        calls=1,
        input_tokens=_count(said.get("prompt_tokens")),
        output_tokens=_count(said.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
        image_tokens=_count(images),
        cost_usd=None,
    )


def _string(value: Any) -> str | None:
    if isinstance(value, list):  # content parts, as some servers send text
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else None


def read_completion(body: Any, estimate: int) -> Completion:
    """A completion's fields.

    Args:
        body: the response's JSON.
        estimate: input tokens to assume where the server states no usage.

    Raises:
        MalformedCompletionError: if it is no chat completion.
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedCompletionError("the response has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise MalformedCompletionError("the response has no message")
    content = _string(message.get("content"))
    reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    return Completion(
        content=content,
        reasoning=reasoning,
        refusal=_string(message.get("refusal")),
        finish_reason=str(choices[0].get("finish_reason") or ""),
        usage=_usage(body, content or reasoning or "", estimate),
    )
