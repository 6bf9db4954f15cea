from __future__ import annotations

from typing import Any

import pytest

from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.efficiency import RATIOS, efficiency


def run(calls: int | None, rounds: float | None, rule: float | None, judge: float | None = None) -> dict[str, Any]:
    return {
        "calls": {"online": calls},
        "rounds": {"mean": rounds},
        "accuracy": {"rule": {"value": rule}, "judge": {"value": judge}},
    }


def test_the_four_ratios_by_hand() -> None:
    found = efficiency(run(40, 1.5, 0.6), run(100, 3.0, 0.5))
    assert found == pytest.approx(
        {
            "calls_ratio": 0.4,
            "rounds_ratio": 0.5,
            "inverse_calls_ratio": 2.5,
            "accuracy_ratio_per_calls_ratio": 1.2 / 0.4,
        }
    )
    assert tuple(found) == RATIOS


def test_the_judges_accuracy_counts_where_both_have_it() -> None:
    assert efficiency(run(1, 1, 0.5, 0.8), run(1, 1, 0.5, 0.4))["accuracy_ratio_per_calls_ratio"] == 2.0
    assert efficiency(run(1, 1, 0.5, 0.8), run(1, 1, 0.5))["accuracy_ratio_per_calls_ratio"] == 1.0


def test_what_is_unknown_or_divides_by_zero_has_no_ratio() -> None:
    nothing_called = efficiency(run(0, 2.0, 0.6), run(0, 1.0, 0.5))
    assert nothing_called["rounds_ratio"] == 2.0
    assert nothing_called["calls_ratio"] is None
    assert nothing_called["inverse_calls_ratio"] is None
    assert nothing_called["accuracy_ratio_per_calls_ratio"] is None
    assert efficiency(run(0, 1, 0.6), run(10, 1, 0.5))["inverse_calls_ratio"] is None
    assert set(efficiency(run(None, None, None), run(5, 1, 0.5)).values()) == {None}


def test_every_ratio_is_defined_in_words() -> None:
    assert all(f"efficiency.{ratio}" in DEFINITIONS for ratio in RATIOS)
