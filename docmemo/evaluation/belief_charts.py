"""Beliefs of pages over the rounds, drawn: a heat strip of all pages and lines of those that mattered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from docmemo.evaluation.trace_view import TraceView, decimal, verdict

MARKS = {"useful": "▲", "irrelevant": "▼", "none": "●"}
"""One sign a verdict, in the page and in the terminal."""

_WIDTH, _HEIGHT = 470, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 72, 12, 40
_GAP = 13.5
_CRISP = 150
"""Up to so many pages cells have sharp edges; with more they are narrower than a pixel may be."""


def scale(view: TraceView) -> tuple[float, float]:
    """Lower and upper end of the colours and of the lines' axis: all means, rounded outward to tenths."""
    values = [value for step in view.belief for value in step]
    low, high = math.floor(min(values) * 10 + 1e-9) / 10, math.ceil(max(values) * 10 - 1e-9) / 10
    return low, max(high, low + 0.1)


def step_name(view: TraceView, step: int) -> str:
    """ "before round 1" or "after round t"."""
    return "before round 1" if step == 0 else f"after round {view.rounds[step - 1].round}"


def heat_strip(view: TraceView) -> Markup:
    """Rows: before round 1 and after each round. Columns: all pages in scope. Colour: posterior mean.

    Under each row, signs for what the reader said of the pages it read in that round; above all, gold pages. Widths
    are per cent, so the strip fits a phone; beyond some 600 pages it scrolls sideways there rather than vanish.
    """
    n = len(view.scope)
    rows = [_gold_row(view)] if any(page in view.scope for page in view.gold) else []
    for step, means in enumerate(view.belief):
        marks = _verdict_marks(view, step - 1) if step else Markup("")
        rows.append(
            Markup(
                '<div class="hrow"><span class="hname">{}</span><div class="track">{}'
                '<div class="marks">{}</div></div></div>'
            ).format(step_name(view, step), _cells(means, scale(view)), marks)
        )
    ticks = Markup("").join(
        Markup('<i style="left:{:.3f}%">{}</i>').format(_percent(i, n), view.scope[i]) for i in _ticks(view.scope)
    )
    rows.append(
        Markup('<div class="hrow axis"><span class="hname">page</span><div class="track">{}</div></div>').format(
            ticks
        )
    )
    inner = Markup('<div class="heat" style="min-width:{}px">{}</div>').format(
        max(230, round(0.5 * n) + 90), Markup("").join(rows)
    )
    return Markup('<div class="wide" tabindex="0" role="img" aria-label="{}">{}</div>').format(_spoken(view), inner)


def _percent(i: int, n: int) -> float:
    return 100 * (i + 0.5) / n


def _cells(means: Sequence[float], limits: tuple[float, float]) -> Markup:
    """One row of cells; neighbours of the same shade are one."""
    low, high = limits
    shades = [round(0.04 + 0.96 * (m - low) / (high - low), 2) for m in means]
    parts, start = [], 0
    for i in range(1, len(shades) + 1):
        if i == len(shades) or shades[i] != shades[start]:
            rect = '<rect x="{}" width="{}" height="1" fill-opacity="{}"/>'
            parts.append(Markup(rect).format(start, i - start, shades[start]))
            start = i
    crisp = Markup(' shape-rendering="crispEdges"') if len(shades) <= _CRISP else Markup("")
    return Markup('<svg viewBox="0 0 {} 1" preserveAspectRatio="none" aria-hidden="true"{}>{}</svg>').format(
        len(shades), crisp, Markup("").join(parts)
    )


def _verdict_marks(view: TraceView, index: int) -> Markup:
    record, n = view.rounds[index], len(view.scope)
    marks = []
    order = ("none", "irrelevant", "useful")  # where signs overlap, the useful page's lies on top
    for page in sorted(record.evidence, key=lambda p: order.index(verdict(record, p))):
        if page in view.scope:
            kind = verdict(record, page)
            mark = '<i class="{}" style="left:{:.3f}%" title="page {}: {}">{}</i>'
            words = "no verdict" if kind == "none" else kind
            marks.append(Markup(mark).format(kind, _percent(view.scope.index(page), n), page, words, MARKS[kind]))
    return Markup("").join(marks)


def _gold_row(view: TraceView) -> Markup:
    n = len(view.scope)
    marks = Markup("").join(
        Markup('<i class="gold" style="left:{:.3f}%" title="gold page {}">◆</i>').format(
            _percent(view.scope.index(page), n), page
        )
        for page in view.gold
        if page in view.scope
    )
    return Markup(
        '<div class="hrow"><span class="hname">gold pages</span><div class="track"><div class="marks">{}</div></div>'
        "</div>"
    ).format(marks)


def _ticks(scope: Sequence[int]) -> list[int]:
    """Positions that get their page number: at most about ten, on round numbers."""
    n = len(scope)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if n / s <= 10)
    inner = [i for i, page in enumerate(scope) if page % step == 0 and i >= step / 2 and n - 1 - i >= step / 2]
    return list(dict.fromkeys([0, *inner, n - 1]))


def _spoken(view: TraceView) -> str:
    last = view.belief[-1]
    best = sorted(range(len(last)), key=lambda i: -last[i])[:3]
    tops = ", ".join(f"page {view.scope[i]} {decimal(last[i])}" for i in best)
    return (
        f"Belief of {len(view.scope)} pages over {len(view.rounds)} rounds. Highest at the end: {tops}. "
        "All values are in the table below."
    )


@dataclass(frozen=True)
class _Axes:
    """Where a step and a value lie in the line chart."""

    n: int
    low: float
    high: float

    def x(self, step: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / max(self.n - 1, 1)

    def y(self, value: float) -> float:
        return _TOP + (self.high - value) / (self.high - self.low) * (_HEIGHT - _TOP - _BOTTOM)


def belief_lines(view: TraceView, pages: Sequence[int]) -> Markup:
    """A line a page, from before round 1 to after the last; labels at the right end do not overlap."""
    axes = _Axes(len(view.belief), *scale(view))
    parts = [_grid(view, axes)]
    # Gold and useful last, so that they lie on top.
    order = ("candidate", "read", "irrelevant", "useful", "gold")
    for page in sorted(pages, key=lambda p: order.index(view.role(p))):
        means, role = view.means(page), view.role(page)
        points = " ".join(f"{axes.x(i):.1f},{axes.y(m):.1f}" for i, m in enumerate(means))
        title = f"page {page}, {view.fate(page)}: " + ", ".join(map(decimal, means))
        parts.append(
            Markup('<g class="page {}"><title>{}</title><polyline points="{}"/>{}</g>').format(
                role, title, points, _signs(view, page, axes)
            )
        )
    ends = sorted(pages, key=lambda p: (-view.means(p)[-1], p))
    right = axes.x(axes.n - 1)
    for page, at in zip(ends, _spread([axes.y(view.means(p)[-1]) for p in ends]), strict=True):
        role, end = view.role(page), axes.y(view.means(page)[-1])
        label = (
            '<g class="page {}"><path class="lead" d="M{:.1f},{:.1f}L{:.1f},{:.1f}"/>'
            '<text x="{:.1f}" y="{:.1f}">p. {}{}</text></g>'
        )
        where = (right + 5, end, right + 15, at, right + 18, at + 4)
        parts.append(Markup(label).format(role, *where, page, " ◆" if role == "gold" else ""))
    spoken = "; ".join(f"page {p} ({view.fate(p)}) {', '.join(map(decimal, view.means(p)))}" for p in pages)
    return Markup('<svg class="chart lines" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, f"Belief by page, before round 1 and after each round. {spoken}", Markup("").join(parts)
    )


def _grid(view: TraceView, axes: _Axes) -> Markup:
    parts = []
    count = round((axes.high - axes.low) * 10)
    for i in range(0, count + 1, 1 if count <= 6 else 2):
        at = axes.y(axes.low + i / 10)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.1f}</text>'
            ).format(_LEFT, _WIDTH - _RIGHT, at, at, _LEFT - 7, at + 4, axes.low + i / 10)
        )
    for step, name in enumerate(view.steps):
        anchor = "start" if step == 0 else "middle"
        left = axes.x(step) - (12 if step == 0 else 0)
        parts.append(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                left, _HEIGHT - _BOTTOM + 18, anchor, name
            )
        )
    parts.append(
        Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">round</text>').format(
            (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5
        )
    )
    return Markup("").join(parts)


def _signs(view: TraceView, page: int, axes: _Axes) -> Markup:
    """A dot at each step; a triangle where the reader's verdict moved the page."""
    parts = []
    for step, mean in enumerate(view.means(page)):
        record = view.rounds[step - 1] if step else None
        kind = verdict(record, page) if record and page in record.evidence else "none"
        cx, cy = axes.x(step), axes.y(mean)
        if kind == "none":
            parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.6"/>').format(cx, cy))
        else:
            d = 5 if kind == "irrelevant" else -5
            shape = '<path class="sign" d="M{:.1f},{:.1f}h10l-5,{:.1f}z"/>'
            parts.append(Markup(shape).format(cx - 5, cy - d / 1.6, 1.7 * d))
    return Markup("").join(parts)


def _spread(positions: Sequence[float]) -> list[float]:
    """Ascending positions moved as little as needed so that neighbours keep their distance, inside the chart."""
    placed: list[float] = []
    for position in positions:
        placed.append(max(position, placed[-1] + _GAP) if placed else max(position, _TOP + 4.0))
    bottom = _HEIGHT - _BOTTOM - 2.0
    for i in range(len(placed) - 1, -1, -1):
        limit = bottom if i == len(placed) - 1 else placed[i + 1] - _GAP
        placed[i] = min(placed[i], limit)
    return placed
