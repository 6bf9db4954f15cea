"""What an error of the client library means: which error of ours it is, and what can be done about it.

| what happens | becomes | then |
|---|---|---|
| 400, 413, 422 | ContextLengthError, ImageInputError or ModelRequestError | never sent again |
| 3xx, 401, 402, 403, 404, no credit left | ModelAccessError | the run stops |
| 429 | ModelUnavailableError | sent again; the whole endpoint slows down and honours Retry-After |
| 408, 409, 5xx, lost connection, time limit | ModelUnavailableError | sent again with jitter |
| 500 "image input is not supported" | ImageInputError | never sent again (llama.cpp with a text model) |
| no connection, 503 while loading | ServerDownError once patience ends | everybody waits for the server |
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

from docmemo.errors import (
    ContextLengthError,
    ImageInputError,
    ModelAccessError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)

if TYPE_CHECKING:
    import openai

Kind = Literal["fatal", "overload", "transient", "unreachable"]

MAX_MESSAGE = 300
"""Characters of a server's own words kept: some echo the request."""
_UNFIT = re.compile(
    r"context[ _-]?(length|size|window)|maximum input length|max_model_len|too many (input )?tokens", re.I
)
_PROMPT_TOKENS = (
    re.compile(r"passed (\d+) input tokens"),
    re.compile(r"request \((\d+) tokens\)"),
    re.compile(r"has (\d+) input tokens"),
    re.compile(r"messages resulted in (\d+) tokens"),
    re.compile(r"(?:prompt|input)[^.\d]{0,40}?(\d+)(?: input)? tokens"),
    re.compile(r"you requested (\d+) tokens"),
)
_CONTEXT_TOKENS = (
    re.compile(r"context (?:length|size|window)[^.\d]{0,30}?(\d+)"),
    re.compile(r"maximum model length of (\d+)"),
)
_IMAGE = re.compile(r"image|multi-?modal|vision", re.I)
_SECRET = re.compile(r"\b(?:sk|key|pk|gsk|hf|xai)[-_][\w*.-]{4,}|Bearer \S+", re.I)
_DATA_URI = re.compile(r"data:image/[^\s\"']*")
_ADDRESS = re.compile(r"https?://[^\s\"')]+")


@dataclass(frozen=True)
class Asked:
    """What messages about a failure need to know of the request."""

    role: str
    model_id: str
    params_path: str
    """Where params.yaml names the model, e.g. "answer.reader_model"."""
    variable: str
    """The setting with the server's address."""
    secret: str
    """The key, to be kept out of every text."""
    images: int
    max_tokens: int
    timeout: float


@dataclass(frozen=True)
class Problem:
    """One failed try."""

    error: ModelError
    kind: Kind
    retry_after: float | None = None
    """Seconds the server asks to wait."""


class TryAgainError(Exception):
    """A try failed in a way that another may get over."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem.error))
        self.problem = problem


def said_by(error: openai.APIStatusError) -> tuple[str, dict[str, Any]]:
    """A server's message and the error object it is in ({} if there is none)."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error") if isinstance(body.get("error"), dict) else body
    details = inner if isinstance(inner, dict) else {}
    message = details.get("message") or body.get("detail") or body.get("error")
    return str(message or error.response.text or error.message), details


def quoted(text: str, secret: str) -> str:
    """A server's words, safe to print: no key, no address, no image, not long."""
    if secret:
        text = text.replace(secret, "[key]")
    text = _ADDRESS.sub("[address]", _SECRET.sub("[key]", _DATA_URI.sub("[image]", text)))
    text = " ".join(text.split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."


def _figure(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return int(match.group(1))
    return None


def _too_long(asked: Asked, message: str, details: dict[str, Any]) -> ContextLengthError:
    tokens = details.get("n_prompt_tokens") or _figure(_PROMPT_TOKENS, message)
    context = details.get("n_ctx") or _figure(_CONTEXT_TOKENS, message)
    has = f"has {tokens} tokens" if tokens else "is too long"
    takes = f" and the model takes {context}" if context else ""
    limit = f"to {context}" if context else "to what the server allows"
    return ContextLengthError(
        f"The request to {asked.model_id} {has}{takes}, the reply of up to {asked.max_tokens} included.",
        remedy=f"Lower {asked.params_path}.context {limit}, or serve the model with a longer context.",
    )


def _image_refused(asked: Asked, message: str) -> ImageInputError:
    return ImageInputError(
        f"{asked.model_id} does not take the images of a request ({asked.images}): {quoted(message, asked.secret)}",
        remedy=(
            "Serve a model that takes images (under llama.cpp with its mmproj file, under vLLM with a higher image"
            f" limit), or set {asked.params_path}.images to false where the role allows it."
        ),
    )


def refused(asked: Asked, status: int, message: str, details: dict[str, Any]) -> ModelError | None:
    """The error of a request that must not be sent again; None where another try may help."""
    words = quoted(message, asked.secret)
    code = str(details.get("code") or details.get("type") or "")
    if status in (401, 402, 403) or (status == 429 and "insufficient_quota" in (code, str(details.get("type")))):
        return ModelAccessError(
            f"The server refuses the key for {asked.model_id} (HTTP {status}): {words}",
            remedy="Set DOCMEMO_API_KEY (or the role's own), and check its rights and credit.",
        )
    if 300 <= status < 400:
        return ModelAccessError(
            f"The address of the role {asked.role} leads elsewhere (HTTP {status}).",
            remedy=f"Set {asked.variable} to where it leads, e.g. https instead of http.",
        )
    if status == 404:
        return ModelAccessError(
            f"The server of the role {asked.role} has no {asked.model_id} (HTTP 404): {words}",
            remedy=f"Correct {asked.params_path}.id, or {asked.variable} (an address usually ends in /v1).",
        )
    if asked.images and "image input is not supported" in message.lower():
        return _image_refused(asked, message)
    if status < 500 and status not in (408, 409, 425, 429):
        unfit = details.get("type") == "exceed_context_size_error" or code == "context_length_exceeded"
        if unfit or details.get("param") == "input_tokens" or _UNFIT.search(message):
            return _too_long(asked, message, details)
        if asked.images and (details.get("param") == "image" or _IMAGE.search(message)):
            return _image_refused(asked, message)
        return ModelRequestError(
            f"The server refuses a request to {asked.model_id} (HTTP {status}): {words}",
            remedy=f"Check {asked.params_path} (structured, extra, max_tokens) against what the server takes.",
        )
    return None


def retry_after(headers: Any) -> float | None:
    """Seconds of a Retry-After header, which holds seconds or a date; None without a usable one."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None and re.fullmatch(r"\d+(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(tz=UTC)).total_seconds())


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _unavailable(asked: Asked, what: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{asked.model_id} {what}.", remedy="Run again; what is finished is kept. `docmemo doctor` checks the server."
    )


def _of_connection(asked: Asked, error: openai.APIConnectionError) -> Problem:
    import httpx2
    import openai

    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        wrong = ModelAccessError(
            f"The certificate of the server of the role {asked.role} is not trusted.",
            remedy=f"Check {asked.variable}.",
        )
        return Problem(wrong, "fatal")
    if any(isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout)) for cause in causes):
        return Problem(_unavailable(asked, "cannot be reached"), "unreachable")
    if isinstance(error, openai.APITimeoutError):
        waited = f"gave no reply within {asked.timeout:g} seconds (DOCMEMO_REQUEST_TIMEOUT)"
        return Problem(_unavailable(asked, waited), "transient")
    return Problem(_unavailable(asked, "lost the connection before its reply was complete"), "transient")


def problem_of(asked: Asked, error: openai.OpenAIError) -> Problem:
    """What an error of the client library means for one try of a request."""
    import openai

    if isinstance(error, openai.APIConnectionError):
        return _of_connection(asked, error)
    if isinstance(error, openai.APIStatusError):
        message, details = said_by(error)
        return of_status(asked, error.status_code, message, details, retry_after(error.response.headers))
    what = f"answered with something that is no reply ({type(error).__name__})"
    return Problem(_unavailable(asked, what), "transient")


def of_status(asked: Asked, status: int, message: str, details: dict[str, Any], wait: float | None = None) -> Problem:
    """What an error status means; also used for error objects inside a reply of status 200."""
    fatal = refused(asked, status, message, details)
    if fatal is not None:
        return Problem(fatal, "fatal")
    error = _unavailable(asked, f"is not available (HTTP {status}): {quoted(message, asked.secret)}")
    if status == 429:
        return Problem(error, "overload", wait)
    if status == 503 and "loading" in message.lower():
        return Problem(error, "unreachable", wait)
    return Problem(error, "transient", wait)
