"""What a call cost, from the price list that genai-prices carries. Unknown is None, never 0.

The list is the installed package's; nothing is fetched. A price belongs to a provider, so it is looked up by the
server's address: the same model on a server of one's own has no known price.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from docmemo.usage import Usage

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _price(base_url: str, model_id: str, usage: Usage) -> float | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    tokens = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
    )
    try:
        return float(calc_price(tokens, model_id, provider_api_url=base_url).total_price)
    except LookupError:
        return None


@lru_cache(maxsize=64)
def known(base_url: str, model_id: str) -> bool:
    """Whether a price is known for a model of this server."""
    if urlsplit(base_url).hostname in _LOOPBACK:
        return False
    return _price(base_url, model_id, Usage(input_tokens=1, output_tokens=1)) is not None


def cost_usd(base_url: str, model_id: str, usage: Usage) -> float | None:
    """US dollars of `usage` at today's price; None if no price is known.

    Args:
        base_url: address of the server, which tells the provider.
        model_id: the model's name there.
        usage: tokens of one call; its own cost is ignored.
    """
    return _price(base_url, model_id, usage) if known(base_url, model_id) else None
