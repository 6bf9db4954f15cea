"""What is said to a language model and what comes back: messages of text and images, replies checked by a schema.

Readers, rerankers, summarisers and judges speak to a `ChatModel`; how it reaches a server is
docmemo/models/openai_compatible.py's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from docmemo.errors import ImageInputError
from docmemo.usage import Usage

T = TypeVar("T", bound=BaseModel)

_DATA_URI_HEAD = re.compile(rb"data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]", re.I)


@dataclass(frozen=True)
class Image:
    """A picture, encoded once: what is sent, and what a request is counted and keyed by."""

    data_uri: str = field(repr=False)
    """`data:image/jpeg;base64,...`"""
    sha256: str
    """Of the encoded bytes; stands for the picture in keys."""
    width: int
    """Pixels."""
    height: int

    @cached_property
    def wire(self) -> bytes:
        """`data_uri` as bytes that need no escaping in JSON; made and checked once for all requests.

        Raises:
            ImageInputError: if it is no base64 data URI of an image.
        """
        uri = self.data_uri.encode("ascii", "replace")
        if not _DATA_URI_HEAD.match(uri) or b'"' in uri or b"\\" in uri:
            raise ImageInputError(f"The image {self.sha256[:12]} is not a base64 data URI.")
        return uri


Part = str | Image


@dataclass(frozen=True)
class Message:
    """One message: text and images in order."""

    role: Literal["system", "user", "assistant"]
    parts: Sequence[Part]


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A reply that fits the schema asked for."""

    value: T
    usage: Usage
    """Of all requests it took, the repair included; the same when it comes from the journal."""
    text: str
    """The text the value was read from."""
    from_journal: bool = False
    """Whether an earlier run paid for it, or an equal request at the same time."""
    repaired: bool = False
    """Whether the model had to be shown its error."""


class ChatModel(Protocol):
    """One role's model."""

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies the model in keys: its lock entry and sampling parameters; no address, no key."""

    async def ask(self, messages: Sequence[Message], schema: type[T], *, label: str = "") -> Reply[T]:
        """Ask for a value of `schema`.

        Args:
            messages: what is said.
            schema: a pydantic model; its JSON schema is sent along where the server takes one.
            label: names the call in logs, e.g. the question id and round.

        Raises:
            ContextLengthError, ImageInputError, ModelRequestError: the request is refused; never sent again.
            TruncatedReplyError, RefusalError, ModelResponseError: the reply cannot be used.
            ModelUnavailableError: overload or lost connections, after retries.
            QuestionBudgetError: the question has used up its limit (docmemo/models/budget.py).
            ServerDownError, RunBudgetError, ModelAccessError, ModelLockError, ConfigError: the run should stop
                (`stops_run`).
        """

    def count(self, messages: Sequence[Message], schema: type[BaseModel] | None = None) -> int:
        """Input tokens of a request, estimated on the high side."""

    @property
    def room(self) -> int:
        """Input tokens a request may have: the context less the reply and a margin."""
