"""The small files beside metrics/scores.json: CSVs for plots and comparisons, and provenance. No text of anyone's."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from docmemo.evaluation import retrieval_metrics as metrics
from docmemo.evaluation.aggregate import (
    KS,
    Case,
    all_hit_until,
    multi_page,
    page_interval,
    reached,
    recall_until,
    rounded,
    single_page,
)

DIMENSIONS = ("by_evidence_source", "by_doc_type", "by_answer_format", "by_text_layer")
SINGLE_SLICES = ("single_page", "multi_page", "unanswerable")

Row = dict[str, Any]


def to_csv(rows: Iterable[Row], columns: Sequence[str]) -> str:
    """CSV text with a header; None is an empty cell; floats have at most 6 decimals."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(row.get(key)) for key in columns} for row in rows)
    return buffer.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return "" if value is None else value


PAGES: Mapping[str, Callable[[Sequence[Case]], Sequence[Case]]] = {
    "all": lambda cases: cases,
    "single": single_page,
    "multi": multi_page,
}
"""Which questions a curve is over, by their number of gold pages."""

ROUND_COLUMNS = ("kind", "pages", "round", "recall", "all_hit", "n")


def round_rows(cases: Sequence[Case], rounds: int, *, forced: bool) -> list[Row]:
    """metrics/rounds.csv: evidence recall and all-hit of rounds 1..T, over `n` questions with gold pages.

    `kind` is natural (questions that stopped keep their pages) or forced (all rounds were run whatever the
    reader said), each over all questions, then reached (only questions that ran the round). `pages` is all, or
    single and multi: answerable questions with one gold page and with several.
    """
    steps = range(1, rounds + 1)
    rows = []
    for kind in ("forced" if forced else "natural", "reached"):
        for name, chosen in PAGES.items():
            for t in steps:
                curve = chosen(cases) if kind != "reached" else reached(chosen(cases), t)
                rows.append({"kind": kind, "pages": name, "round": t, **_round_figures(curve, t)})
    return rows


def _round_figures(cases: Sequence[Case], t: int) -> Row:
    return {
        "recall": page_interval(cases, recall_until(t)).value,
        "all_hit": page_interval(cases, all_hit_until(t)).value,
        "n": sum(bool(c.gold) for c in cases),
    }


CURVE_COLUMNS = (
    "round",
    *(f"{figure}{end}" for end in ("", "_single", "_multi") for figure in ("recall", "all_hit")),
)


def curve_rows(cases: Sequence[Case], rounds: int) -> list[Row]:
    """metrics/curves.csv: one row a round, for plots that draw a column as a line.

    The same figures as the natural (or forced) rows of metrics/rounds.csv, side by side.
    """
    rows = []
    for t in range(1, rounds + 1):
        row: Row = {"round": t}
        for name, chosen in PAGES.items():
            figures = _round_figures(chosen(cases), t)
            row |= {f"{key}{'' if name == 'all' else f'_{name}'}": figures[key] for key in ("recall", "all_hit")}
        rows.append(row)
    return rows


_LIMITED = ("accuracy", "f1")
SLICE_COLUMNS = (
    "dimension",
    "slice",
    "n",
    "n_evidence",
    *(f"{name}{end}" for name in _LIMITED for end in ("", "_low", "_high")),
    *(f"{name}_at_{k}" for name in ("recall", "all_hit") for k in KS),
    *(f"evidence_{name}{end}" for name in ("recall", "all_hit") for end in ("", "_low", "_high")),
    *(f"accuracy_judge{end}" for end in ("", "_low", "_high")),
)


def iterate_slices(scores: Mapping[str, Any]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """(dimension, slice, figures) of every slice in metrics/scores.json; dimension "pages" holds the single ones."""
    for dimension in DIMENSIONS:
        for name, figures in scores[dimension].items():
            yield dimension.removeprefix("by_"), name, figures
    for name in SINGLE_SLICES:
        yield "pages", name, scores[name]


def slice_rows(scores: Mapping[str, Any]) -> list[Row]:
    """metrics/slices.csv from metrics/scores.json."""
    rows = []
    for dimension, name, figures in iterate_slices(scores):
        row: Row = {"dimension": dimension, "slice": name, "n": figures["n"], "n_evidence": figures["n_evidence"]}
        groups = [(metric, figures[metric]) for metric in (*_LIMITED, "accuracy_judge")]
        groups += [(f"evidence_{metric}", figures["evidence"][metric]) for metric in ("recall", "all_hit")]
        for metric, group in groups:
            row |= {metric: group["value"], f"{metric}_low": group["low"], f"{metric}_high": group["high"]}
        rows.append(row | figures["retrieval"])
    return rows


def question_columns(rounds: int) -> list[str]:
    """Columns of metrics/questions.csv for T rounds."""
    return [
        *("question_id", "doc_id", "outcome", "rule_score", "judge", "unscored", "answer_format"),
        *("doc_type", "text_layer", "evidence_sources", "answerable", "answered"),
        *("gold_pages", "rounds", "pages_read", "page_reads"),
        *(f"recall_at_{k}" for k in KS),
        *(f"recall_round_{t}" for t in range(1, rounds + 1)),
        *(f"all_hit_round_{t}" for t in range(1, rounds + 1)),
        *("calls", "tokens", "cost_usd"),
    ]


def question_rows(cases: Sequence[Case], rounds: int) -> list[Row]:
    """metrics/questions.csv: one row a question, without any text of documents, questions or answers."""
    return [_question_row(case, rounds) for case in cases]


def _question_row(case: Case, rounds: int) -> Row:
    judgement = case.judgement
    row: Row = {
        "question_id": case.question.question_id,
        "doc_id": case.question.doc_id,
        "outcome": case.answer.outcome if case.answer else "failed",
        "rule_score": judgement.rule_score if judgement else None,
        "judge": int(judgement.verdict.correct) if judgement and judgement.verdict else None,
        "unscored": int(not case.failed and case.score is None),
        "answer_format": case.question.answer_format,
        "doc_type": case.doc_type,
        "text_layer": {True: "scanned", False: "text", None: None}[case.scanned],
        "evidence_sources": ";".join(case.question.evidence_sources),
        "answerable": None if case.question.answer is None else int(case.answerable),
        "answered": int(case.answered_positively),
        "gold_pages": len(case.gold),
        "rounds": len(case.reads),
        "pages_read": len(metrics.pages_read(case.reads, rounds)),
        "page_reads": sum(map(len, case.reads)),
    }
    if case.answer:
        usage = case.answer.usage
        row |= {"calls": usage.calls, "tokens": usage.input_tokens + usage.output_tokens, "cost_usd": usage.cost_usd}
    if case.gold:
        row |= {f"recall_at_{k}": metrics.recall_at_k(case.gold, case.ranking, k) for k in KS}
        for t in range(1, rounds + 1):
            row[f"recall_round_{t}"] = metrics.recall_at_round(case.gold, case.reads, t)
            row[f"all_hit_round_{t}"] = metrics.all_hit_at_round(case.gold, case.reads, t)
    return row


def provenance(
    *,
    params: Mapping[str, Any],
    models: Mapping[str, Any],
    prompts: Mapping[str, Any],
    code: str,
    dataset: str | Mapping[str, Any],
    judge: str | Mapping[str, Any],
) -> dict[str, Any]:
    """The content of metrics/provenance.json: what the figures were made with.

    No git id (a commit cannot name itself), no time, and no path of the machine: an absolute path is cut down to
    its last part, wherever it stands.

    Args:
        params: all parameters.
        models: the lock's entry a role.
        prompts: name to digest.
        code: digest of the working modules.
        dataset: digest, or name and digests.
        judge: judge or scorer identity.
    """
    content = {
        "params": dict(params),
        "models": dict(models),
        "prompts": dict(prompts),
        "code": code,
        "dataset": dataset,
        "judge": judge,
    }
    clean: dict[str, Any] = rounded(_without_machine_paths(content))
    return clean


def _without_machine_paths(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_machine_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_machine_paths(item) for item in value]
    if isinstance(value, str):
        if PurePosixPath(value).is_absolute() or value.startswith("~"):
            return PurePosixPath(value).name
        if PureWindowsPath(value).is_absolute():
            return PureWindowsPath(value).name
    return value
