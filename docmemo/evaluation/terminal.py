"""The headline table for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.intervals import TOO_FEW

EXTRACTS = "low-confidence extracts, not question answering"
WIDTH = 80


def percent(value: float | None) -> str:
    """A share as per cent with one decimal; a dash when there is none."""
    return "–" if value is None else f"{100 * value:.1f}%"


def limits(low: float | None, high: float | None, value: float | None = 0.0) -> str:
    """An interval in per cent, or why there is none."""
    if value is None:
        return ""
    return TOO_FEW if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"


def headline(scores: Mapping[str, Any], *, evidence_finder: bool) -> RenderableType:
    """The headline figures of metrics/scores.json.

    For the embedded evidence finder the headline is evidence recall and all-hit; accuracy and F1 stand together
    below, labelled as extracts. Counts of what failed or is unscored are always shown, also when they are 0.

    Args:
        scores: the content of metrics/scores.json.
        evidence_finder: whether the answers are the embedded reader's extracts.
    """
    table = Table(width=WIDTH, title="DocMemo: evaluation", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("", ratio=1)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95% interval", justify="right", no_wrap=True)
    evidence, answers = _evidence_rows(scores), _answer_rows(scores, evidence_finder)
    first, second = (evidence, answers) if evidence_finder else (answers, evidence)
    for row in first:
        table.add_row(*row, style="bold")
    table.add_section()
    for row in [*second, *_retrieval_rows(scores)]:
        table.add_row(*row)
    return Group(table, Text(), _counts(scores), Text(), _definitions(scores))


def print_headline(scores: Mapping[str, Any], console: Console, *, evidence_finder: bool) -> None:
    """Print `headline` to the caller's console (stderr for people, stdout where it is the result)."""
    console.print(headline(scores, evidence_finder=evidence_finder), width=WIDTH)


def evidence_curves(scores: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The recall curves that exist, and whether they are at "natural stop" or "forced"."""
    evidence = scores["evidence"]
    return (evidence["forced"], "forced") if "forced" in evidence else (evidence, "natural stop")


def _evidence_rows(scores: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    curves, kind = evidence_curves(scores)
    last = max(curves["recall_at_round"], key=int)
    rows = []
    for name, label in (("recall_at_round", "evidence recall"), ("all_hit_at_round", "evidence all-hit")):
        value, interval = curves[name][last], scores["evidence"]["intervals"][name][last]
        shown = limits(interval["low"], interval["high"], value)
        rows.append((f"{label}, up to round {last} ({kind})", percent(value), shown))
    return rows


def _answer_rows(scores: Mapping[str, Any], evidence_finder: bool) -> list[tuple[str, str, str]]:
    rows = [("accuracy (rule)", scores["accuracy"]["rule"]), ("F1 (rule)", scores["f1"]["rule"])]
    if scores["accuracy"]["judge"]["value"] is not None:
        rows.append(("accuracy (LLM judge)", scores["accuracy"]["judge"]))
    shown = [(n, percent(f["value"]), limits(f["low"], f["high"], f["value"])) for n, f in rows]
    return [(EXTRACTS + ":", "", ""), *shown] if evidence_finder else shown


def _retrieval_rows(scores: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    retrieval = scores["retrieval"]
    rows = []
    for name, label in (("recall_at_5", "recall@5"), ("all_hit_at_5", "all-hit@5")):
        interval = retrieval["intervals"][name]
        shown = limits(interval["low"], interval["high"], retrieval[name])
        rows.append((f"first ranking, {label}", percent(retrieval[name]), shown))
    return rows


def _counts(scores: Mapping[str, Any]) -> Text:
    parts = [
        f"{scores['n_questions']} questions",
        f"{scores['evidence']['n']} with gold pages",
        f"{scores['n_answered']} completed",
        f"{scores['n_failed']} failed",
        f"{scores['n_unscored']} unscored",
        *([] if scores.get("n_unjudged") is None else [f"{scores['n_unjudged']} unjudged"]),
        f"{scores['n_documents']} documents",
        f"{scores['n_documents_failed']} document{'' if scores['n_documents_failed'] == 1 else 's'} failed",
    ]
    text = Text(" · ").join(Text(part) for part in parts)
    for part in parts:
        if "failed" in part and not part.startswith("0 "):
            text.highlight_words([part], style="bold red")
    return text


def _definitions(scores: Mapping[str, Any]) -> Text:
    curve = "evidence.forced" if "forced" in scores["evidence"] else "evidence.recall_at_round"
    shown = [
        ("evidence recall", curve),
        ("all-hit", "evidence.all_hit_at_round"),
        ("recall@k", "retrieval.recall_at_k"),
        ("accuracy", "accuracy.rule"),
        ("F1", "f1.rule"),
        ("interval", "interval"),
    ]
    text = Text()
    for i, (label, key) in enumerate(shown):
        text.append("\n" if i else "").append(f"{label}: ", style="bold").append(DEFINITIONS[key], style="dim")
    return text
