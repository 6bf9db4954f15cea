"""What a piece of work cost."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Usage(BaseModel):
    """Spend of model calls. A cost of None means "unknown", which is not the same as 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = 0
    """Requests sent to a language model, repairs and failed ones included."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """US dollars; None as soon as one part is unknown."""

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )
