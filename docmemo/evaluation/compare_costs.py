"""What two runs cost, side by side. A cost of None is unknown, which is not 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docmemo.evaluation.efficiency import RATIOS, efficiency
from docmemo.evaluation.paired import PairedDifference
from docmemo.evaluation.run_metrics import RunMetrics

_TOTALS = (("calls", "model calls"), ("tokens", "tokens"), ("cost_usd", "US dollars"), ("seconds", "seconds"))
_MEANS = (
    ("rounds", "rounds a question"),
    ("page_reads", "pages read a question"),
    ("distinct_pages", "different pages a question"),
)


@dataclass(frozen=True)
class CostRow:
    """One kind of cost."""

    label: str
    a: float | None
    b: float | None

    @property
    def difference(self) -> float | None:
        """b - a."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def ratio(self) -> float | None:
        """b / a."""
        return _ratio(self.b, self.a)


@dataclass(frozen=True)
class Ratio:
    """One of the efficiency ratios, B against A."""

    name: str
    formula: str
    value: float | None


def costs(a: RunMetrics, b: RunMetrics) -> list[CostRow]:
    """Totals by side (offline prepares documents, online answers) and means a question, from metrics/scores.json."""
    rows = []
    for key, label in _TOTALS:
        sides = dict.fromkeys([*(a.scores.get(key) or {}), *(b.scores.get(key) or {})])
        rows += [
            CostRow(f"{label}, {side}", _at(a, key, side), _at(b, key, side))
            for side in sorted(sides, key=lambda s: s != "online")
        ]
    return rows + [CostRow(label, _at(a, key, "mean"), _at(b, key, "mean")) for key, label in _MEANS]


def _at(run: RunMetrics, *keys: str) -> float | None:
    value: Any = run.scores
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


FORMULAS = {
    "calls_ratio": ("calls_ratio", "model calls while answering, B / A"),
    "rounds_ratio": ("rounds_ratio", "rounds a question, B / A"),
    "inverse_calls_ratio": ("1/calls_ratio", "model calls while answering, A / B"),
    "accuracy_ratio_per_calls_ratio": ("accuracy_ratio/calls_ratio", "(accuracy B / accuracy A) / calls_ratio"),
}
"""Name in `efficiency.RATIOS` to the name shown and its formula."""


def ratios(a: RunMetrics, b: RunMetrics, accuracy: PairedDifference | None) -> Sequence[Ratio]:
    """The efficiency ratios; A is the baseline, accuracy the compared one."""

    def part(run: RunMetrics, value: float | None) -> dict[str, Any]:
        return {
            "calls": {"online": _at(run, "calls", "online")},
            "rounds": {"mean": _at(run, "rounds", "mean")},
            "accuracy": {"rule": {"value": value}, "judge": {"value": None}},
        }

    values = efficiency(part(b, accuracy.b if accuracy else None), part(a, accuracy.a if accuracy else None))
    return [Ratio(*FORMULAS[name], values[name]) for name in RATIOS]
