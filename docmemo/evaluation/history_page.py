"""The runs of a project, as a table for the terminal and as one offline HTML page with plots over commits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from docmemo.artifacts import write_atomic
from docmemo.evaluation.history_charts import Point, history_chart
from docmemo.evaluation.report import environment
from docmemo.evaluation.run_history import FIGURES, Headline, Run
from docmemo.evaluation.terminal import limits, percent
from docmemo.evaluation.trace_view import clean

PLOTS = (
    ("Answers", (("rule", "a"), ("f1", "b"))),
    ("Answers, judged by a language model", (("judge", "a"),)),
    ("Evidence pages, all rounds", (("recall", "a"), ("all_hit", "b"))),
)


def count(value: float | None) -> str:
    """A count or a sum of dollars; None is unknown."""
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def figure(value: Headline) -> str:
    """A figure with its interval."""
    if value.value is None:
        return "–"
    return f"{percent(value.value)} ({limits(value.low, value.high)})"


def label(run: Run) -> str:
    """How a run is called in tables and plots."""
    return run.revision.name if run.kind == "experiment" else run.revision.short


def marks(run: Run) -> list[str]:
    """What else is to say of a run."""
    found = [*run.names]
    if run.kind == "experiment":
        found.append("experiment")
    if run.accepted:
        found.append("accepted")
    if run.cut_off:
        found.append("or older: the clone is shallow")
    return found


def print_runs(runs: Sequence[Run], console: Console) -> None:
    """The runs as text, newest first: a line of names, then figures with intervals, then counts, cost and reader."""
    for run in runs:
        title = Text(f"{label(run)}  {run.revision.date[:10]}  {clean(run.revision.subject)}".rstrip(), style="bold")
        for mark in marks(run):
            title.append(f"  [{mark}]", style="green" if mark == "accepted" else "dim")
        console.print(title)
        table = Table.grid(padding=(0, 2))
        names = [name for name in FIGURES if run.figures[name].value is not None]
        if names:
            table.add_row("", *(Text(FIGURES[name], style="dim") for name in names))
            table.add_row("", *(Text(percent(run.figures[name].value)) for name in names))
            intervals = [limits(run.figures[name].low, run.figures[name].high) for name in names]
            table.add_row("", *(Text(interval, style="dim") for interval in intervals))
            console.print(table)
        counts = [("questions", run.n_questions), ("failed", run.n_failed), ("unscored", run.n_unscored)]
        parts = [f"{count(value)} {name}" for name, value in counts]
        parts += [f"{count(run.cost_usd)} US dollars", run.reasoner]
        console.print(Text("  " + " · ".join(filter(None, parts)), style="red" if run.n_failed else "dim"))


def write_history_page(target: Path, runs: Sequence[Run]) -> None:
    """Write the page, atomically.

    Raises:
        OSError: if the file cannot be written.
    """
    ordered = list(runs)[::-1]
    ordered.sort(key=lambda r: (r.revision.date == "", r.revision.date))
    charts = []
    for title, lines in PLOTS:
        if any(r.figures[name].value is not None for r in ordered for name, _ in lines):
            points = [_point(r, [name for name, _ in lines]) for r in ordered]
            charts.append((title, history_chart(title, [(FIGURES[n], c) for n, c in lines], points)))
    text = (
        environment()
        .get_template("history.html")
        .render(
            runs=runs,
            charts=charts,
            figures={n: t for n, t in FIGURES.items() if any(r.figures[n].value is not None for r in runs)},
            n_series=len({r.series for r in runs}),
            evidence_finder=any(r.evidence_finder for r in runs),
            label=label,
            marks=marks,
            count=count,
            thumbnail_width=0,
        )
    )
    write_atomic(target, text.encode("utf-8", errors="replace"))


def _point(run: Run, names: Sequence[str]) -> Point:
    figures = [run.figures[name] for name in names]
    about = " ".join([label(run), run.revision.date[:10], run.revision.subject]).strip()
    return Point(
        label=label(run)[:14],
        title=about,
        series=run.series,
        values=[f.value for f in figures],
        limits=[(f.low, f.high) for f in figures],
    )
