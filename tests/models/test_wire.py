"""The bytes of a request, and completions in every shape servers give them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.config import ModelParams
from docmemo.errors import ImageInputError
from docmemo.models.chat import Image, Message
from docmemo.models.wire import Body, MalformedCompletionError, read_completion, request_body
from tests.models.asking import page, say


async def sent(body: Body) -> Any:
    data = b"".join([chunk async for chunk in body.chunks()])
    assert len(data) == body.length
    return json.loads(data)


PICTURE = page()


@given(st.lists(st.lists(st.text() | st.just(PICTURE), max_size=4), max_size=3))
async def test_a_body_is_what_a_json_encoder_would_make_of_it(said: list[list[str | Image]]) -> None:
    messages = [Message("user", parts) for parts in said]
    body = await sent(request_body(ModelParams(id="m"), messages, None))
    assert len(body["messages"]) == len(said)
    for message, parts in zip(body["messages"], said, strict=True):
        content = message["content"]
        given_parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [part.get("text", part.get("image_url", {}).get("url")) for part in given_parts]
        assert texts == [part.data_uri if isinstance(part, Image) else part for part in parts]


async def test_images_are_sent_byte_for_byte_between_the_texts() -> None:
    picture = page()
    body = await sent(request_body(ModelParams(id="m"), say("Which?", picture, picture), {"type": "json_object"}))
    content = body["messages"][1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "image_url"]
    assert content[2]["image_url"] == {"url": picture.data_uri}
    assert body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/a.png",
        "data:text/html;base64,AAAA",
        'data:image/png;base64,AA"}}]',
        "data:image/png;base64,",
    ],
)
def test_an_image_that_is_no_data_uri_is_not_sent(uri: str) -> None:
    wrong = dataclasses.replace(page(), data_uri=uri)
    with pytest.raises(ImageInputError, match="not a base64 data URI"):
        request_body(ModelParams(id="m"), say("Which?", wrong), None)


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}


def test_usage_is_read_in_the_words_of_vllm_and_of_providers() -> None:
    vllm = {"cached_tokens": 3, "multimodal_tokens": {"image": 7}}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": vllm}
    read = read_completion(completion({"content": "x"}, usage=usage), 99).usage
    assert (read.calls, read.input_tokens, read.output_tokens, read.cached_tokens, read.image_tokens) == (
        1,
        10,
        2,
        3,
        7,
    )
    usage["prompt_tokens_details"] = {"image_tokens": 5}
    assert read_completion(completion({"content": "x"}, usage=usage), 99).usage.image_tokens == 5
    usage["prompt_tokens_details"] = None  # type: ignore[assignment]
    assert read_completion(completion({"content": "x"}, usage=usage), 99).usage.cached_tokens == 0


def test_without_usage_the_estimate_stands_in_so_that_budgets_hold() -> None:
    read = read_completion(completion({"content": "some words"}), 99).usage
    assert read.input_tokens == 99
    assert read.output_tokens > 0
    assert read.cost_usd is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_are_read_under_both_names(field: str) -> None:
    assert read_completion(completion({"content": None, field: "hm"}), 0).reasoning == "hm"


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]
    assert read_completion(completion({"content": parts}), 0).content == "ab"


@pytest.mark.parametrize("body", [None, [], {}, {"choices": []}, {"choices": [None]}, {"choices": [{"text": "x"}]}])
def test_what_is_no_completion_is_refused(body: Any) -> None:
    with pytest.raises(MalformedCompletionError):
        read_completion(body, 0)


def test_the_client_library_is_imported_when_the_first_request_is_sent() -> None:
    code = (
        "import sys, docmemo.models.openai_compatible;"
        " print(sorted({'openai', 'httpx2', 'genai_prices', 'json_repair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
