"""Whether two runs may be compared, and what they were made with that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from docmemo.evaluation.run_metrics import RunMetrics

Need = Literal["dataset", "scorer", "judge"]
"""What a figure needs to be the same in both runs; the dataset always."""

_ABSENT = object()


def obstacles(a: RunMetrics, b: RunMetrics) -> dict[Need, str]:
    """What differs so that figures made with it say nothing about each other, with the reason in words.

    The dataset is compared by its digest (documents by content, questions with their gold answers), the scorer by its
    name and version, the judge by everything that decides its verdicts: model, parameters, prompts. A judge is an
    obstacle only where both runs have one.
    """
    found: dict[Need, str] = {}
    names = a.revision.label, b.revision.label
    datasets = [_dataset(run) for run in (a, b)]
    if datasets[0] != datasets[1] or datasets[0] == "":
        shown = ", ".join(f"{name}: {_short_dataset(run)}" for name, run in zip(names, (a, b), strict=True))
        found["dataset"] = f"The two runs are over different datasets ({shown})."
    scorers = [_judge_part(run).get("scorer", "") for run in (a, b)]
    if scorers[0] != scorers[1]:
        found["scorer"] = f"The two runs were scored by different rules: {scorers[0]!r} and {scorers[1]!r}."
    if a.has_judge and b.has_judge:
        judges = [flatten(judge_identity(run)) for run in (a, b)]
        differing = sorted(k for k in {*judges[0], *judges[1]} if judges[0].get(k) != judges[1].get(k))
        if differing:
            found["judge"] = f"The two runs were judged by different judges: {', '.join(differing)} differ."
    return found


def judge_identity(run: RunMetrics) -> dict[str, Any]:
    """Everything in a run's provenance that decides an LLM judge's verdicts."""
    made = run.provenance
    prompts = made.get("prompts") or {}
    return {
        "judge": {k: v for k, v in _judge_part(run).items() if k != "scorer"},
        "models.judge": (made.get("models") or {}).get("judge", {}),
        "params.judge": (made.get("params") or {}).get("judge", {}),
        "prompts": {name: value for name, value in prompts.items() if "judge" in name},
    }


def _judge_part(run: RunMetrics) -> dict[str, Any]:
    judge = run.provenance.get("judge")
    return dict(judge) if isinstance(judge, Mapping) else {"scorer": judge or ""}


def _dataset(run: RunMetrics) -> str:
    dataset = run.provenance.get("dataset") or ""
    return str(dataset.get("digest", "")) if isinstance(dataset, Mapping) else str(dataset)


def _short_dataset(run: RunMetrics) -> str:
    dataset = run.provenance.get("dataset") or {}
    if not isinstance(dataset, Mapping):
        return str(dataset)[:10] or "not recorded"
    known = f"{dataset.get('format', '')} {str(dataset.get('digest', ''))[:10]}".strip()
    return f"{known or 'not recorded'}, {len(run.questions)} questions"


@dataclass(frozen=True)
class Change:
    """One thing that differs in what two runs were made with."""

    what: str
    """Dotted path in metrics/provenance.json, e.g. params.loop.evidence."""
    a: Any
    """None where the run has no such entry."""
    b: Any


def changes(a: RunMetrics, b: RunMetrics) -> list[Change]:
    """Where the provenance of two runs differs, sorted by name."""
    left, right = flatten(a.provenance), flatten(b.provenance)
    names = sorted(k for k in {*left, *right} if left.get(k, _ABSENT) != right.get(k, _ABSENT))
    return [Change(name, left.get(name), right.get(name)) for name in names]


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted path; lists and empty mappings are leaves. Files of models are left out."""
    if not isinstance(value, Mapping) or not value:
        return {prefix: value} if prefix else {}
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key == "files" and prefix.startswith("models"):
            continue
        found |= flatten(item, f"{prefix}.{key}" if prefix else str(key))
    return found
