"""What a piece of work cost."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Usage(BaseModel):
    """Spend of model calls. A cost of None means "unknown", which is not the same as 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = 0
    """Requests a language model answered, repairs and unusable replies included. Tries without an answer (overload,
    lost connections) are not counted, so that they change no record."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those the server had in its prefix cache (as far as it says so)."""
    image_tokens: int = 0
    """Of the input tokens, those of images (as far as the server says so)."""
    cost_usd: float | None = 0.0
    """US dollars; None as soon as one part is unknown."""

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            image_tokens=self.image_tokens + other.image_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )
