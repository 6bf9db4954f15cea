"""Token estimates: on the high side of real counts, and images by their models' rules."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.models.chat import Message
from docmemo.models.structured import response_format
from docmemo.models.tokens import image_tokens, request_tokens, text_tokens
from tests.models.asking import Verdict, model, page, say
from tests.servers import ScriptedServer, counting

# Texts with their counts by the tokenizers of Qwen and of Mistral (Tekken), counted with those tokenizers.
COUNTED = [
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("Die Förderung der Donaudampfschifffahrtsgesellschaft", 16, 14),
    ("本年度报告期内实现营业收入", 5, 11),
    ("1,234,567.89 2023", 17, 17),
    (".........   12", 5, 6),
]


@pytest.mark.parametrize(("text", "qwen", "mistral"), COUNTED)
def test_a_text_is_counted_no_lower_than_real_tokenizers_do(text: str, qwen: int, mistral: int) -> None:
    assert max(qwen, mistral) <= text_tokens(text) <= 4 * max(qwen, mistral)


@given(st.text())
def test_a_text_has_at_least_a_token_for_three_bytes(text: str) -> None:
    assert text_tokens(text) >= math.ceil(len(text.encode("utf-8", "replace")) / 3)


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(first: str, second: str) -> None:
    assert text_tokens(f"{first}\n{second}") >= text_tokens(first) - 1


@pytest.mark.parametrize(
    ("width", "height", "rule", "tokens"),
    [
        (1400, 1120, "qwen2_5_vl", 50 * 40 + 2),
        (1401, 1121, "qwen2_5_vl", 51 * 41 + 2),
        (10, 10, "qwen2_5_vl", 2 * 2 + 2),  # scaled up to 3,136 pixels
        (28000, 28000, "qwen2_5_vl", 128 * 128 + 2),  # scaled down to 12,845,056 pixels
        (1600, 1280, "qwen3_vl", 50 * 40 + 2),
        (32, 32, "qwen3_vl", 8 * 8 + 2),  # scaled up to 65,536 pixels
        (1024, 1024, "openai_tiles", 85 + 170 * 4 + 2),  # shorter side to 768: two by two tiles
        (2048, 4096, "openai_tiles", 85 + 170 * 6 + 2),  # into 2048 x 2048, then shorter side to 768: two by three
        (100, 100, "openai_tiles", 85 + 170 + 2),
    ],
)
def test_an_image_is_counted_by_its_models_rule(width: int, height: int, rule: str, tokens: int) -> None:
    assert image_tokens(width, height, rule) == tokens  # type: ignore[arg-type]


@given(st.integers(1, 6000), st.integers(1, 6000))
def test_an_image_is_counted_no_lower_than_a_server_counts_its_patches(width: int, height: int) -> None:
    if width * height <= 12_845_056:
        assert image_tokens(width, height, "qwen2_5_vl") >= math.ceil(width / 28) * math.ceil(height / 28) + 2


def test_a_request_counts_text_images_template_and_schema() -> None:
    plain = request_tokens(say("Which?"), None, "qwen2_5_vl")
    pictured = request_tokens(say("Which?", page(280, 280)), None, "qwen2_5_vl")
    assert pictured == plain + 10 * 10 + 2
    form = response_format(Verdict, "json_schema")
    assert request_tokens(say("Which?"), form, "qwen2_5_vl") > plain
    assert request_tokens([], None, "qwen2_5_vl") > 0


@pytest.mark.parametrize(
    "text",
    [
        "Revenue grew by 4.2% to 1,234 million euros in 2024, as Table 3 shows. " * 40,
        "本年度报告期内实现营业收入 12,345 万元，同比增长 4.2%。" * 40,
        "Die Wärmepumpenförderung beträgt 38.000 € bei einer Laufzeit von 20 Jahren. " * 40,
        "| a | 1.0 | 2.0 |\n|---|---|---|\n" * 60,
    ],
)
async def test_a_request_within_the_room_is_within_a_servers_own_count(server: ScriptedServer, text: str) -> None:
    reader = model(context=4096, max_tokens=512, image_tokens="qwen2_5_vl")
    messages = say("", page(560, 420))
    while reader.count([*messages, Message("user", [text])], Verdict) <= reader.room:
        messages.append(Message("user", [text]))
    server.reset(context=4096)
    assert (await reader.ask(messages, Verdict)).usage.calls == 1
    assert counting.BYTES_PER_TOKEN != 3.0, "the server must count in a way of its own"
