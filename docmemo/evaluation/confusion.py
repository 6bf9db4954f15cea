"""Answering against declining: what was done with questions that have an answer, and with those that have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

State = Literal["answered", "not_answerable", "failed"]
"""What became of a question: an answer other than "Not answerable", the verdict that there is none, or a failure."""
STATES: tuple[State, ...] = get_args(State)
KINDS = ("answerable", "unanswerable")


def confusion(cases: Iterable[tuple[State, bool | None]]) -> dict[str, Any]:
    """Counts of states by kind of question, and how well the system declines.

    Args:
        cases: (what became of the question, whether the gold says that it has an answer; None when unknown).

    Returns:
        `answerable` and `unanswerable`, each a count a state; `unknown`, the number of questions in neither;
        `abstaining` with `precision`, `recall` and `f1` of the verdict "not answerable", None where undefined.
    """
    table = {kind: dict.fromkeys(STATES, 0) for kind in KINDS}
    unknown = 0
    for state, answerable in cases:
        if answerable is None:
            unknown += 1
        else:
            table["answerable" if answerable else "unanswerable"][state] += 1
    right = table["unanswerable"]["not_answerable"]
    declined = right + table["answerable"]["not_answerable"]
    without_answer = sum(table["unanswerable"].values())
    return {
        **table,
        "unknown": unknown,
        "abstaining": {
            "precision": right / declined if declined else None,
            "recall": right / without_answer if without_answer else None,
            "f1": 2 * right / (declined + without_answer) if declined + without_answer else None,
        },
    }
