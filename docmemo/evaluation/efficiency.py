"""What a run spends and reaches, in relation to a baseline run on the same questions.

The paper gives a relative cost of .41 and a relative efficiency of 2.40 without formulas, so each ratio here has a
name and a formula of its own (`definitions.DEFINITIONS`, keys "efficiency.*").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RATIOS = ("calls_ratio", "rounds_ratio", "inverse_calls_ratio", "accuracy_ratio_per_calls_ratio")
"""Names of the ratios, in the order they are shown."""


def efficiency(scores: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, float | None]:
    """The four ratios of `RATIOS`, run over baseline.

    Args:
        scores, baseline: content of metrics/scores.json, or as much of it: `calls.online`, `rounds.mean` and
            `accuracy`. Accuracy is the judge's where both have it, else the rule's.

    Returns:
        Name to ratio; None where a part is unknown or the denominator is 0, as with readers that call no model.
    """
    calls = _ratio(scores["calls"]["online"], baseline["calls"]["online"])
    judged = all(side["accuracy"]["judge"]["value"] is not None for side in (scores, baseline))
    kind = "judge" if judged else "rule"
    accuracy = _ratio(scores["accuracy"][kind]["value"], baseline["accuracy"][kind]["value"])
    return {
        "calls_ratio": calls,
        "rounds_ratio": _ratio(scores["rounds"]["mean"], baseline["rounds"]["mean"]),
        "inverse_calls_ratio": _ratio(1.0, calls),
        "accuracy_ratio_per_calls_ratio": _ratio(accuracy, calls),
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
