"""A comparison as text: tables for the terminal and Markdown, out of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from docmemo.evaluation.compare import DEFINITIONS, Comparison, FigureRow, Flips
from docmemo.evaluation.compare_answers import AnswerView
from docmemo.evaluation.intervals import NO_DIFFERENCE, TOO_FEW
from docmemo.evaluation.paired import PairedDifference
from docmemo.evaluation.terminal import percent
from docmemo.evaluation.trace_view import clean

MINUS = "−"
UNKNOWN = "unknown"
_LONG = 56


@dataclass(frozen=True)
class Block:
    """A table with its title; the first column holds names, the others figures unless `prose`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    prose: bool = False


def points(value: float | None) -> str:
    """A difference of shares in percentage points: +1.8."""
    if value is None:
        return "–"
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def interval(result: PairedDifference) -> str:
    """The limits of a difference in points, or why there are none."""
    if result.low is None or result.high is None:
        return result.note
    return f"{points(result.low)} to {points(result.high)}"


def p_value(p: float | None) -> str:
    """A p value with three decimals."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def number(value: float | None) -> str:
    """A count or a mean; None is unknown."""
    if value is None:
        return UNKNOWN
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return text.replace("-", MINUS)


def signed(value: float | None) -> str:
    """A difference of counts or means."""
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def ratio(value: float | None) -> str:
    """A ratio with two decimals; a dash where there is none, as of 0 to 0."""
    return "–" if value is None else f"{value:.2f}"


def verdict(comparison: Comparison) -> str:
    """The comparison in one sentence."""
    deciding = [f for f in comparison.figures if f.decides]
    if comparison.regressions:
        return "Regression: " + "; ".join(_moved(f, "fell") for f in comparison.regressions) + "."
    better = [f for f in deciding if f.verdict == "improvement"]
    if better:
        return "Better: " + "; ".join(_moved(f, "rose") for f in better) + "."
    lower = [f for f in deciding if f.verdict.startswith("lower")]
    if lower:
        within = f"which is within the threshold of {points(comparison.threshold).lstrip('+')} points"
        return "Lower: " + "; ".join(_moved(f, "fell") for f in lower) + f", {within}."
    labels = ", ".join(f.label for f in deciding)
    if all(f.p_holm is None and f.verdict == TOO_FEW for f in deciding):
        return (
            f"Undecided: {comparison.n_documents} documents are too few to tell a difference from noise ({labels})."
        )
    return f"No significant difference in {labels}."


def _moved(row: FigureRow, word: str) -> str:
    by = points(abs(row.result.difference or 0.0)).lstrip("+")
    return f"{row.label} {word} by {by} points ({interval(row.result)}, p {p_value(row.p_holm)})"


def shown(value: Any) -> str:
    """A value of provenance, short enough for a table."""
    if value is None:
        return "–"
    text = str(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def blocks(comparison: Comparison, most: int = 40) -> list[Block]:
    """The tables, most important first.

    Args:
        most: flipped questions listed in each direction; the rest are only counted.
    """
    coverage = f"{100 * (1 - comparison.alpha):g}% interval"
    found = [_figures(comparison, coverage)]
    found += [_flips(f, most) for f in comparison.flips]
    if comparison.answers:
        found.append(_answers(comparison))
    found += _slices(comparison, coverage)
    found.append(
        Block(
            "Counts",
            ("", "A", "B"),
            [(n.removeprefix("n_"), number(a), number(b)) for n, a, b in comparison.counts()],
        )
    )
    found.append(
        Block(
            "Cost",
            ("", "A", "B", "difference", "B / A"),
            [(r.label, number(r.a), number(r.b), signed(r.difference), ratio(r.ratio)) for r in comparison.costs],
        )
    )
    found.append(
        Block(
            "Efficiency, A as the baseline",
            ("ratio", "value", "formula"),
            [(r.name, ratio(r.value), r.formula) for r in comparison.efficiency],
        )
    )
    rows = [(c.what, shown(c.a), shown(c.b)) for c in comparison.changes]
    found.append(Block("Made with, where it differs", ("", "A", "B"), rows, "" if rows else "nothing", prose=True))
    return found


def _figures(comparison: Comparison, coverage: str) -> Block:
    rows = [
        (
            f.label,
            str(f.result.n),
            percent(f.result.a),
            percent(f.result.b),
            points(f.result.difference),
            interval(f.result),
            p_value(f.p_holm if f.decides and f.p_holm is not None else f.result.p),
            f.verdict,
        )
        for f in comparison.figures
    ]
    columns = ("figure", "n", "A", "B", "points", coverage, "p", "decides")
    few = ", Holm-corrected where several decide" if sum(f.decides for f in comparison.figures) > 1 else ""
    note = f"{comparison.n_pairs} questions on {comparison.n_documents} documents under both; p: clustered t{few}."
    return Block("Figures", columns, rows, note)


def _flips(found: Flips, most: int) -> Block:
    rows = []
    for flips, word in ((found.lost, "lost"), (found.gained, "gained")):
        rows += [
            (
                f.question_id,
                word,
                f"{f.a_score:.2f}",
                f"{f.b_score:.2f}",
                f.a_outcome.replace("_", " "),
                f.b_outcome.replace("_", " "),
                f"{f.a_rounds}, {f.b_rounds}",
            )
            for f in flips[:most]
        ]
    hidden = max(0, len(found.lost) - most) + max(0, len(found.gained) - most)
    note = (
        f"{len(found.lost)} lost, {len(found.gained)} gained, {found.both} right in both, {found.neither} in "
        f"neither; exact McNemar p {p_value(found.p)}." + (f" {hidden} more are in --json." if hidden else "")
    )
    columns = ("question", "", "A", "B", "outcome A", "outcome B", "rounds")
    return Block(f"Questions that flipped: {found.label}", columns, rows, note)


def _answers(comparison: Comparison) -> Block:
    rows = [(name, *(_said(view) for view in views)) for name, views in comparison.answers.items()]
    return Block("What they said", ("question", "A", "B"), rows, prose=True)


def _said(view: AnswerView | None) -> str:
    if view is None:
        return "not on this machine"
    pages = "; ".join(", ".join(map(str, read)) or "none" for read in view.pages)
    return f"{view.answer} (pages {pages})" if pages else view.answer


def _slices(comparison: Comparison, coverage: str) -> list[Block]:
    made = []
    for name in dict.fromkeys(s.figure for s in comparison.slices):
        label = next(f.label for f in comparison.figures if f.name == name)
        equal = [s for s in comparison.slices if s.figure == name and s.result.note == NO_DIFFERENCE]
        rows = [
            (
                f"{s.dimension}: {s.slice}",
                str(s.result.n),
                percent(s.result.a),
                percent(s.result.b),
                points(s.result.difference),
                interval(s.result),
                p_value(s.p_holm),
            )
            for s in comparison.slices
            if s.figure == name and s not in equal
        ]
        columns = ("slice", "n", "A", "B", "points", coverage, "p (Holm)")
        note = f"Nothing differs in {len(equal)} {'more ' if rows else ''}slices." if equal else ""
        made.append(Block(f"Slices: {label}", columns, rows, note))
    return made


def print_comparison(comparison: Comparison, console: Console, most: int = 40) -> None:
    """The comparison as tables on the caller's console."""
    bad = bool(comparison.regressions)
    console.print(Text(verdict(comparison), style="bold red" if bad else "bold"))
    for side, run in (("A", comparison.a), ("B", comparison.b)):
        about = f"{side}: {run.revision.label}  {run.revision.date[:10]}  {clean(run.revision.subject)}"
        console.print(Text(about.rstrip(), "dim"))
    for block in blocks(comparison, most):
        console.print()
        table = Table(title=block.title, title_justify="left", show_edge=False, pad_edge=False, title_style="bold")
        for index, column in enumerate(block.columns):
            right = index > 0 and not block.prose and column not in ("decides", "formula", "outcome A", "outcome B")
            table.add_column(column, justify="right" if right else "left", overflow="fold")
        for row in block.rows:
            table.add_row(*(Text(clean(cell)) for cell in row))
        if block.rows:
            console.print(table)
        else:
            console.print(Text(block.title, style="bold"))
        if block.note:
            console.print(Text(block.note, style="dim"))
    console.print()
    for note in comparison.notes:
        console.print(Text(note))
    for name, meaning in DEFINITIONS.items():
        console.print(Text(f"{name}: ", style="bold").append(meaning, style="dim"))
    console.print(Text(f"right: from {comparison.right:g} on; alpha {comparison.alpha:g}.", style="dim"))


def markdown(comparison: Comparison, most: int = 40) -> str:
    """The comparison as Markdown."""
    lines = [f"**{_escape(verdict(comparison))}**", ""]
    for side, run in (("A", comparison.a), ("B", comparison.b)):
        revision = run.revision
        lines.append(f"- {side}: {_escape(' '.join([revision.label, revision.date[:10], revision.subject]).strip())}")
    for block in blocks(comparison, most):
        lines += ["", f"### {_escape(block.title)}", ""]
        if block.rows:
            rule = ["---" if i == 0 or block.prose else "---:" for i in range(len(block.columns))]
            for cells in (block.columns, rule, *block.rows):
                lines.append("| " + " | ".join(_escape(cell) if cells is not rule else cell for cell in cells) + " |")
        if block.note:
            lines += ["", _escape(block.note)]
    lines.append("")
    lines += [f"- {_escape(note)}" for note in comparison.notes]
    lines += [f"- *{name}*: {_escape(meaning)}" for name, meaning in DEFINITIONS.items()]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Text as Markdown that shows it and nothing else."""
    kept = " ".join(text.split())
    for character in "\\`*_[]<>|#":
        kept = kept.replace(character, f"\\{character}")
    return kept
