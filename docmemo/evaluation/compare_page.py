"""A comparison as one HTML file that opens anywhere, without network; everything in it is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from docmemo.artifacts import write_atomic
from docmemo.evaluation.compare import DEFINITIONS, Comparison, FigureRow, SliceRow
from docmemo.evaluation.compare_text import interval, number, p_value, points, ratio, shown, signed, verdict
from docmemo.evaluation.intervals import NO_DIFFERENCE
from docmemo.evaluation.paired import PairedDifference
from docmemo.evaluation.report import environment

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Scale:
    """The axis of a column of differences: from -reach to +reach."""

    reach: float

    @classmethod
    def of(cls, results: Sequence[PairedDifference]) -> Scale:
        """The smallest round axis that holds every difference and interval."""
        values = [abs(v) for r in results for v in (r.difference, r.low, r.high) if v is not None]
        most = max(values, default=0.0)
        return cls(next((step for step in _STEPS if most <= step + 1e-12), 1.0))

    def at(self, value: float) -> float:
        """Per cent of the column's width."""
        return 50 + 50 * max(-1.0, min(1.0, value / self.reach))

    def bar(self, result: PairedDifference, significant: bool) -> Markup:
        """The difference as a dot with its interval; the column's middle is 0. Coloured when significant."""
        if result.difference is None:
            return Markup("")
        kind = "same" if not significant else "up" if result.difference > 0 else "down"
        if result.low is not None and result.high is not None:
            whisker = Markup('<b style="left:{:.2f}%;width:{:.2f}%"></b>').format(
                self.at(result.low), self.at(result.high) - self.at(result.low)
            )
        else:
            whisker = Markup("")
        dot = Markup('<i style="left:{:.2f}%"></i>').format(self.at(result.difference))
        return Markup('<span class="diff {}" aria-hidden="true">{}{}</span>').format(kind, whisker, dot)


@dataclass(frozen=True)
class SliceTable:
    """All slices of one figure."""

    label: str
    scale: Scale
    groups: dict[str, list[SliceRow]]
    equal: int
    """How many slices there are, where nothing differs in any of them; else 0."""


def write_comparison_page(target: Path, comparison: Comparison) -> None:
    """Write the page, atomically.

    Raises:
        OSError: if the file cannot be written.
    """
    rows = list(comparison.figures)
    text = (
        environment()
        .get_template("compare.html")
        .render(
            comparison=comparison,
            verdict=verdict(comparison),
            state=_state(comparison),
            deciding=[f for f in rows if f.decides],
            figures=rows,
            scale=Scale.of([f.result for f in rows]),
            slices=_slice_tables(comparison),
            coverage=f"{100 * (1 - comparison.alpha):g}%",
            definitions=DEFINITIONS,
            points=points,
            interval=interval,
            p_value=p_value,
            number=number,
            signed=signed,
            ratio=ratio,
            shown=shown,
            thumbnail_width=0,
        )
    )
    write_atomic(target, text.encode("utf-8", errors="replace"))


def _state(comparison: Comparison) -> str:
    """good, bad or "" for the colour of the verdict."""
    if comparison.regressions:
        return "bad"
    return "good" if any(f.verdict == "improvement" for f in comparison.figures) else ""


def _slice_tables(comparison: Comparison) -> list[SliceTable]:
    labels: dict[str, FigureRow] = {f.name: f for f in comparison.figures}
    tables = []
    for name in dict.fromkeys(s.figure for s in comparison.slices):
        rows = [s for s in comparison.slices if s.figure == name]
        groups: dict[str, list[SliceRow]] = {}
        for row in rows:
            groups.setdefault(row.dimension, []).append(row)
        same = all(row.result.note == NO_DIFFERENCE for row in rows)
        scale = Scale.of([row.result for row in rows])
        tables.append(SliceTable(labels[name].label, scale, groups, len(rows) if same else 0))
    return tables
