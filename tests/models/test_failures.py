"""What errors of servers mean, in the words of vLLM, llama.cpp and providers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from docmemo import errors
from docmemo.models.failures import Asked, of_status, quoted, retry_after

ASKED = Asked(
    role="reasoner",
    model_id="m",
    params_path="answer.reader_model",
    variable="DOCMEMO_BASE_URL",
    secret="sk-own-key-1234",
    images=2,
    max_tokens=2048,
    timeout=600.0,
)


@pytest.mark.parametrize(
    ("message", "details", "tokens", "context"),
    [
        (
            "You passed 31745 input tokens and requested 1024 output tokens. However, the model's context length is"
            " only 32768 tokens, resulting in a maximum input length of 31744 tokens.",
            {"param": "input_tokens"},
            31745,
            32768,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the"
            " messages, 1000 in the completion).",
            {},
            9000,
            8192,
        ),
        (
            "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
            {"type": "exceed_context_size_error", "n_prompt_tokens": 13392, "n_ctx": 8192},
            13392,
            8192,
        ),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.",
            {"code": "context_length_exceeded"},
            140000,
            128000,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 32768"
            " tokens and your request has 31000 input tokens (2048 > 32768 - 31000).",
            {},
            31000,
            32768,
        ),
    ],
)
def test_a_request_that_is_too_long_is_told_by_every_server_in_its_own_words(
    message: str, details: dict[str, object], tokens: int, context: int
) -> None:
    problem = of_status(ASKED, 400, message, details)
    assert type(problem.error) is errors.ContextLengthError
    assert problem.kind == "fatal"
    assert f"has {tokens} tokens and the model takes {context}" in str(problem.error)
    assert f"Lower answer.reader_model.context to {context}" in str(problem.error)


@pytest.mark.parametrize(
    ("status", "message", "details", "expected", "kind"),
    [
        (400, "At most 4 image(s) may be provided in one prompt.", {}, errors.ImageInputError, "fatal"),
        (400, "cannot identify image file", {"param": "image"}, errors.ImageInputError, "fatal"),
        (500, "image input is not supported - hint: mmproj", {}, errors.ImageInputError, "fatal"),
        (400, "Invalid grammar", {"param": "response_format"}, errors.ModelRequestError, "fatal"),
        (413, "Payload too large", {}, errors.ModelRequestError, "fatal"),
        (401, "Incorrect API key", {}, errors.ModelAccessError, "fatal"),
        (402, "Insufficient credits", {}, errors.ModelAccessError, "fatal"),
        (403, "Forbidden", {}, errors.ModelAccessError, "fatal"),
        (404, "The model does not exist", {}, errors.ModelAccessError, "fatal"),
        (429, "You exceeded your quota", {"code": "insufficient_quota"}, errors.ModelAccessError, "fatal"),
        (429, "Rate limit", {}, errors.ModelUnavailableError, "overload"),
        (408, "Timeout", {}, errors.ModelUnavailableError, "transient"),
        (500, "EngineCore encountered an issue", {}, errors.ModelUnavailableError, "transient"),
        (502, "Bad gateway", {}, errors.ModelUnavailableError, "transient"),
        (503, "Loading model", {}, errors.ModelUnavailableError, "unreachable"),
        (503, "Busy", {}, errors.ModelUnavailableError, "transient"),
        (529, "Overloaded", {}, errors.ModelUnavailableError, "transient"),
    ],
)
def test_a_status_is_mapped_to_an_error_and_to_what_can_be_done(
    status: int, message: str, details: dict[str, object], expected: type[errors.ModelError], kind: str
) -> None:
    problem = of_status(ASKED, status, message, details)
    assert (type(problem.error), problem.kind) == (expected, kind)
    assert problem.error.remedy


def test_a_servers_words_are_quoted_without_keys_addresses_images_and_length() -> None:
    text = quoted(
        "Incorrect key sk-own-key-1234, see https://example.org/keys. Bearer abc data:image/png;base64,AAAA "
        + "x" * 900,
        "sk-own-key-1234",
    )
    assert "sk-own" not in text
    assert "example.org" not in text
    assert "AAAA" not in text
    assert "abc" not in text
    assert len(text) < 320


def test_retry_after_is_read_as_seconds_milliseconds_or_a_date() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after": "0.5"}) == 0.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    later = format_datetime(datetime.now(tz=UTC) + timedelta(seconds=60))
    seconds = retry_after({"retry-after": later})
    assert seconds is not None
    assert 50 < seconds <= 60
    past = format_datetime(datetime.now(tz=UTC) - timedelta(seconds=60))
    assert retry_after({"retry-after": past}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None
