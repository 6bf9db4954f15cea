"""Prices: known for providers by their address, unknown for everybody else, never fetched."""

from __future__ import annotations

import pytest

from docmemo.models.pricing import cost_usd, known
from docmemo.usage import Usage

OPENAI = "https://api.openai.com/v1"
USAGE = Usage(calls=1, input_tokens=1_000_000, output_tokens=1_000_000)


def test_a_providers_price_grows_with_tokens_and_is_lower_for_cached_ones() -> None:
    price = cost_usd(OPENAI, "gpt-4.1", USAGE)
    assert price is not None
    assert price > 0
    twice = cost_usd(OPENAI, "gpt-4.1", USAGE + USAGE)
    assert twice == pytest.approx(2 * price)
    cached = cost_usd(OPENAI, "gpt-4.1", USAGE.model_copy(update={"cached_tokens": 500_000}))
    assert cached is not None
    assert cached < price


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://127.0.0.1:8000/v1", "gpt-4.1"),
        ("http://gpu-box:8000/v1", "gpt-4.1"),
        ("https://llm.example.org/v1", "gpt-4.1"),
        (OPENAI, "a-model-nobody-sells"),
    ],
)
def test_an_unknown_price_is_none(url: str, model: str) -> None:
    assert cost_usd(url, model, USAGE) is None
    assert not known(url, model)
