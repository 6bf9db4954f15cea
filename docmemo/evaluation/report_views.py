"""What the report's sections show beside plain figures: charts, the ablation table, calibration, accepted runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from docmemo.evaluation import charts
from docmemo.evaluation.ablation_record import AblationTable
from docmemo.evaluation.ablations import BASELINES, DESCRIPTIONS, FULL, METRICS, SLICES
from docmemo.evaluation.aggregate import KS
from docmemo.evaluation.efficiency import RATIOS
from docmemo.evaluation.history import HistoryRow
from docmemo.evaluation.history_charts import Point, history_chart
from docmemo.evaluation.intervals import MIN_CLUSTERS, NO_DIFFERENCE, TOO_FEW
from docmemo.evaluation.tables import iterate_slices
from docmemo.evaluation.terminal import evidence_curves, percent

LABELS = {"recall": "evidence recall", "all_hit": "evidence all-hit", "accuracy": "accuracy (rule)"}
NAMED = (FULL, *BASELINES, "fixed_rounds")
"""Configurations whose names stand in the efficiency chart; the others are dots."""
HISTORY_ROWS = 12
"""Accepted runs in the table; the chart has all."""


def grouped_slices(scores: Mapping[str, Any]) -> dict[str, list[tuple[str, tuple[str, ...], Mapping[str, Any]]]]:
    """Dimension to (slice, its path in metrics/scores.json, figures), slices without questions left out."""
    groups: dict[str, list[tuple[str, tuple[str, ...], Mapping[str, Any]]]] = {}
    for dimension, name, figures in iterate_slices(scores):
        path = (name,) if dimension == "pages" else (f"by_{dimension}", name)
        if figures["n"]:
            groups.setdefault(dimension, []).append((name, path, figures))
    return groups


@dataclass(frozen=True)
class Cell:
    """A figure of the ablation table; `key` says where it stands in the CSV."""

    key: str
    text: str


@dataclass(frozen=True)
class AblationRow:
    """One configuration under one metric."""

    name: str
    description: str
    cells: Sequence[Cell]
    """By slice, overall last."""
    difference: Cell
    low: float | None
    value: float | None
    high: float | None
    """Paired difference to full and its interval, -1..1."""

    @property
    def direction(self) -> str:
        """up or down where the interval leaves 0 out."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return ""
        return "up" if self.low > 0 else "down"


@dataclass(frozen=True)
class AblationTableView:
    """The table under one metric."""

    label: str
    counts: Sequence[Cell]
    rows: Sequence[AblationRow]
    widest: float
    """Largest absolute end of a difference's interval, which the drawn ones share as their scale."""


@dataclass(frozen=True)
class Ablations:
    """The ablation table, as far as it belongs to the run's dataset."""

    tables: Sequence[AblationTableView]
    columns: Sequence[str]
    spend: Sequence[tuple[str, Sequence[Cell]]]
    """Configuration to rounds, page reads, calls, failed, changed."""
    ratios: Sequence[tuple[str, Sequence[Cell]]]
    """Ratio to its value for full against each baseline."""
    baselines: Sequence[str]
    chart: Markup
    curves: Mapping[str, Any]
    same: bool
    """Whether it was made with this run's parameters and models."""
    no_calls: bool
    """Whether no configuration called a model."""


SPEND_COLUMNS = ("rounds", "page_reads", "distinct_pages", "calls", "n_failed", "n_unscored", "changed")


def ablations(
    table: AblationTable | None, provenance: Mapping[str, Any], parameters: str, models: str
) -> Ablations | None:
    """The ablation table of this run's dataset; None when there is none.

    Args:
        table: what is in metrics/.
        provenance: this run's; its `dataset.digest` decides.
        parameters, models: digests of this run.
    """
    dataset = provenance.get("dataset")
    mine = dataset.get("digest") if isinstance(dataset, Mapping) else dataset
    if table is None or not mine or table.record.dataset != mine or not table.configurations:
        return None
    order = METRICS if table.record.evidence_finder else ("accuracy", "recall", "all_hit")
    rows = [table.row(name, order[0]) or {} for name in table.configurations]
    baselines = [name for name in BASELINES if table.row(name, order[0])]
    full = table.row(FULL, order[0])
    return Ablations(
        tables=[_table(table, metric) for metric in order],
        columns=(*SLICES, "overall"),
        spend=[
            (r["configuration"], [Cell(f"{r['configuration']}/{order[0]}/{c}", _plain(r[c])) for c in SPEND_COLUMNS])
            for r in rows
        ],
        ratios=[
            (ratio, [_ratio(full, order[0], f"{ratio}_to_{name}") for name in baselines]) for ratio in RATIOS if full
        ],
        baselines=baselines if full else [],
        chart=_cost_chart(rows, table.record.n_questions, LABELS[order[0]]),
        curves={name: found.model_dump() for name, found in table.record.curves.items()},
        same=(table.record.parameters, table.record.models) == (parameters, models),
        no_calls=not any(r["calls"] for r in rows),
    )


def _ratio(full: Mapping[str, Any], metric: str, column: str) -> Cell:
    value = full[column]
    return Cell(f"{FULL}/{metric}/{column}", "–" if value is None else f"{value:.2f}")


def _plain(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _signed(value: float) -> str:
    points = f"{100 * abs(value):.1f}"
    return points if float(points) == 0 else f"{'+' if value > 0 else '−'}{points}"


def _table(table: AblationTable, metric: str) -> AblationTableView:
    columns = (*SLICES, "overall")
    made = []
    for name in table.configurations:
        row = table.row(name, metric) or {}
        value, low, high = row["difference"], row["low"], row["high"]
        text = "" if value is None else _signed(value)
        if low is not None and high is not None:
            text += f" ({_signed(low)} to {_signed(high)})"
        elif value is not None:
            few = table.record.n_documents < MIN_CLUSTERS
            text += f" ({TOO_FEW if few or value else NO_DIFFERENCE})"
        cells = [Cell(f"{name}/{metric}/{column}", _points(row[column])) for column in columns]
        difference = Cell(f"{name}/{metric}/difference", text)
        made.append(AblationRow(name, DESCRIPTIONS.get(name, ""), cells, difference, low, value, high))
    counts = table.row("questions", metric) or dict.fromkeys(columns)
    ends = [abs(v) for r in made for v in (r.low, r.value, r.high) if v is not None]
    return AblationTableView(
        label=LABELS[metric],
        counts=[Cell(f"questions/{metric}/{column}", _plain(counts[column])) for column in columns],
        rows=made,
        widest=max(ends, default=0.0) or 1.0,
    )


def _cost_chart(rows: Sequence[Mapping[str, Any]], n: int, label: str) -> Markup:
    calls = any(r["calls"] for r in rows)
    axis = "model calls a question" if calls else "pages read a question"
    dots = []
    for r in rows:
        x = (r["calls"] / n if n and r["calls"] is not None else None) if calls else r["page_reads"]
        if x is None or r["overall"] is None:
            continue
        name = r["configuration"]
        named = name if name in NAMED else ""
        title = f"{name}: {label} {percent(r['overall'])}, {x:.2f} {axis}"
        dots.append(charts.Dot(named, title, "b" if name == FULL else "a" if named else "c", x, r["overall"]))
    return charts.scatter_chart(f"{label} over {axis}", axis, label, dots)


def evidence_charts(scores: Mapping[str, Any], beside: Ablations | None) -> list[tuple[str, Markup]]:
    """Recall and all-hit by round with every curve there is, and the first ranking by cut-off."""
    curves, kind = evidence_curves(scores)
    rounds = sorted(curves["recall_at_round"], key=int)
    found = []
    for name, label in (("recall_at_round", "recall"), ("all_hit_at_round", "all-hit")):
        intervals = scores["evidence"]["intervals"][name]
        ends = [(intervals[t]["low"], intervals[t]["high"]) for t in rounds]
        series = [charts.Series(kind, "a", [curves[name][t] for t in rounds], ends)]
        forced = (beside.curves.get("fixed_rounds") or {}).get(name) if beside and beside.same else None
        if kind != "forced" and forced and sorted(forced, key=int) == rounds:
            series.append(charts.Series("forced", "b", [forced[t] for t in rounds], dash="dashed"))
        reached = scores["evidence"]["reached"][name]
        series.append(charts.Series("reached", "c", [reached[t] for t in rounds], dash="dotted"))
        found.append((f"Evidence {label} by round", charts.line_chart(f"Evidence {label}", "round", rounds, series)))
    retrieval = scores["retrieval"]
    ranking = [
        charts.Series(
            label,
            colour,
            [retrieval[f"{name}_{k}"] for k in KS],
            [(i["low"], i["high"]) for k in KS for i in [retrieval["intervals"][f"{name}_{k}"]]],
        )
        for name, label, colour in (("recall_at", "recall", "a"), ("all_hit_at", "all-hit", "b"))
    ]
    chart = charts.line_chart("First ranking", "k best pages", [str(k) for k in KS], ranking)
    return [*found, ("First ranking, before anything is read", chart)]


def calibrations(scores: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """(rule or judge, reliability chart) of each calibration there is."""
    made = []
    for by, found in sorted(scores["calibration"].items()):
        if found:
            bins = [(b["confidence"], b["score"], b["n"]) for b in found["bins"].values()]
            made.append((by, charts.reliability_chart(f"Score over confidence ({by})", bins)))
    return made


@dataclass(frozen=True)
class History:
    """Accepted runs."""

    charts: Sequence[tuple[str, Markup]]
    rows: Sequence[HistoryRow]
    """Newest first."""
    n: int


def history(rows: Sequence[HistoryRow]) -> History | None:
    """The accepted runs as charts and a table; None when there is none."""
    if not rows:
        return None
    plots = (
        ("Answers", (("accuracy (rule)", "accuracy", "a"), ("accuracy (LLM judge)", "judge", "b"))),
        ("Evidence pages", (("evidence recall", "recall", "a"), ("evidence all-hit", "all_hit", "b"))),
    )
    made = []
    for title, lines in plots:
        points = [
            Point(
                label=row.revision[:7],
                title=f"{row.revision[:7]}, {row.date[:10]}",
                series=row.dataset,
                values=[getattr(row, name) for _, name, _ in lines],
                limits=[
                    (getattr(row, f"{name}_low", None), getattr(row, f"{name}_high", None)) for _, name, _ in lines
                ],
            )
            for row in rows
        ]
        used = [i for i in range(len(lines)) if any(p.values[i] is not None for p in points)]
        kept = [replace(p, values=[p.values[k] for k in used], limits=[p.limits[k] for k in used]) for p in points]
        if used:
            made.append((title, history_chart(title, [(lines[i][0], lines[i][2]) for i in used], kept)))
    return History(made, list(reversed(rows))[:HISTORY_ROWS], len(rows))
