"""The headline as Markdown, for places that show no table of the terminal (Prefect artifacts)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docmemo.evaluation.terminal import EXTRACTS, evidence_curves, limits, percent

_ANSWERS = (
    ("accuracy", "judge", "accuracy (LLM judge)"),
    ("accuracy", "rule", "accuracy (rule)"),
    ("f1", "rule", "F1 (rule)"),
)


def markdown(scores: Mapping[str, Any], *, evidence_finder: bool) -> str:
    """The figures of metrics/scores.json that people ask for first, with what failed and what they were made from."""
    curves, kind = evidence_curves(scores)
    last = max(curves["recall_at_round"], key=int)
    rows = []
    for key, label in (("recall_at_round", "evidence recall"), ("all_hit_at_round", "evidence all-hit")):
        value, interval = curves[key][last], scores["evidence"]["intervals"][key][last]
        rows.append((f"{label}, up to round {last} ({kind})", value, interval["low"], interval["high"]))
    for group, name, label in _ANSWERS:
        figure = scores[group][name]
        if name == "rule" or figure["value"] is not None:
            rows.append((label, figure["value"], figure["low"], figure["high"]))
    lines = ["| | value | 95% interval |", "|---|---|---|"]
    lines += [f"| {label} | {percent(value)} | {limits(low, high, value)} |" for label, value, low, high in rows]
    counts = ", ".join(
        f"{scores[key]} {text}"
        for key, text in (
            ("n_questions", "questions"),
            ("n_failed", "failed"),
            ("n_unscored", "unscored"),
            ("n_unjudged", "unjudged"),
            ("n_documents", "documents"),
            ("n_documents_failed", "documents failed"),
        )
        if scores.get(key) is not None
    )
    note = f"\n\nAccuracy and F1 are of {EXTRACTS}." if evidence_finder else ""
    return "\n".join(lines) + f"\n\n{counts}{note}\n"
