"""What the reader and the reranker behind a server have in common."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from docmemo.config import ModelParams
from docmemo.errors import ConfigError, ImageInputError, ModelAccessError, ModelRequestError, ModelResponseError
from docmemo.models.chat import ChatModel, Image, Message, Part
from docmemo.prompts import Prompt, load_prompt
from docmemo.settings import Settings


class ProbeReply(BaseModel):
    """The reply to a probe; what it says does not matter."""

    word: str = ""


@dataclass
class ServedRole:
    """A role's model and prompt, opened when first needed: a run with nothing to ask needs no server.

    Args:
        role: a role of models.lock.json.
        prompt_name: the prompt it is asked with.
        params: its model.
        entry: its lock entry; part of what its replies are kept under.
        settings: addresses and patience; read from the environment when None.
        given: a model to use instead (tests).
    """

    role: str
    prompt_name: str
    params: ModelParams
    entry: Mapping[str, Any] | None = None
    settings: Settings | None = None
    given: ChatModel | None = None

    @cached_property
    def model(self) -> ChatModel:
        """The model.

        Raises:
            ConfigError: if it is not named or configured.
        """
        if self.given is not None:
            return self.given
        from docmemo.models.openai_compatible import open_model

        return open_model(self.role, self.params, entry=self.entry, settings=self.settings)

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt.

        Raises:
            ConfigError: if its file is missing or no prompt.
        """
        return load_prompt(self.prompt_name)

    async def probe(self, images: int) -> None:
        """One small request of the same form as all others, paid once; a refusal would meet every question.

        Args:
            images: how many pictures a request may have; as many small ones are shown.

        Raises:
            ConfigError: if the server refuses pictures, or requests of this form.
            ModelError: if it cannot be asked at all.
        """
        where = {"reasoner": "answer.reader_model", "reranker": "answer.reranker_model"}[self.role]
        text = "Reply with one word: the color of the pictures, or none if you see none."
        parts: list[Part] = [*([_square()] * images), text]
        try:
            await self.model.ask([Message("user", parts)], ProbeReply, label=f"{self.role} check")
        except ModelResponseError:
            return  # a weak model's reply to an odd question says nothing of its other replies
        except ImageInputError as error:
            raise ConfigError(
                f"The model of the {self.role} does not take {images} images in a request: {error.message}",
                remedy="Serve a model that does (llama.cpp: with its --mmproj file; vLLM: with a high enough "
                "--limit-mm-per-prompt), show fewer (loop.evidence, loop.crops), or set "
                f"{where}.images to false to show the text of pages alone.",
            ) from error
        except ModelAccessError:
            raise
        except ModelRequestError as error:
            raise ConfigError(
                f"The server of the {self.role} refuses even the smallest request: {error.message}",
                remedy=error.remedy,
            ) from error


def _square() -> Image:
    """A small red picture."""
    from PIL import Image as Pictures

    from docmemo.models.images import encode

    square = io.BytesIO()
    Pictures.new("RGB", (64, 64), (200, 30, 30)).save(square, "PNG")
    return encode(square.getvalue(), 64)
