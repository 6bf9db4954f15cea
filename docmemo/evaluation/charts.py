"""Charts as inline SVG without script or network; colours are the page's CSS variables, in light and in dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from docmemo.evaluation.aggregate import KS
from docmemo.evaluation.terminal import evidence_curves, percent

_WIDTH, _HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 14, 44

Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Series:
    """One line of a chart: values 0..1 at the axis' positions, with limits where there are."""

    label: str
    colour: str
    """CSS class that sets the colour: "a" or "b"."""
    values: Sequence[float | None]
    limits: Sequence[Limits]


def rounds_chart(scores: Mapping[str, Any]) -> Markup:
    """Evidence recall and all-hit by round, of metrics/scores.json."""
    curves, kind = evidence_curves(scores)
    rounds = sorted(curves["recall_at_round"], key=int)
    series = [
        _series(
            label,
            colour,
            [curves[name][t] for t in rounds],
            [scores["evidence"]["intervals"][name][t] for t in rounds],
        )
        for name, label, colour in (("recall_at_round", "recall", "a"), ("all_hit_at_round", "all-hit", "b"))
    ]
    return line_chart(f"Evidence found by round ({kind})", "round", rounds, series)


def retrieval_chart(scores: Mapping[str, Any]) -> Markup:
    """Recall and all-hit of the first round's ranking by cut-off k."""
    retrieval = scores["retrieval"]
    series = [
        _series(
            label, colour, [retrieval[f"{name}_{k}"] for k in KS], [retrieval["intervals"][f"{name}_{k}"] for k in KS]
        )
        for name, label, colour in (("recall_at", "recall", "a"), ("all_hit_at", "all-hit", "b"))
    ]
    return line_chart("First ranking", "k best pages", [str(k) for k in KS], series)


def _series(
    label: str, colour: str, values: Sequence[float | None], limits: Sequence[Mapping[str, float | None]]
) -> Series:
    return Series(label, colour, values, [(item["low"], item["high"]) for item in limits])


def line_chart(title: str, axis: str, positions: Sequence[str], series: Sequence[Series]) -> Markup:
    """Lines over evenly spaced `positions`, y from 0 to 100%, whiskers where there are limits.

    The whole chart is one image to a screen reader, whose text lists every value.
    """
    spoken = "; ".join(
        f"{s.label}: " + ", ".join(f"{axis} {p} {percent(v)}" for p, v in zip(positions, s.values, strict=True))
        for s in series
    )
    inner = [_axes(axis, positions)]
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * 8  # whiskers of two lines must not cover each other
        inner.append(_line(one, len(positions), shift))
    inner += [_legend(s.label, s.colour, i) for i, s in enumerate(series)]
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, f"{title}. {spoken}", Markup("").join(inner)
    )


def _x(index: int, n: int) -> float:
    step = (_WIDTH - _LEFT - _RIGHT) / n
    return _LEFT + step * (index + 0.5)


def _y(value: float) -> float:
    return _TOP + (1 - value) * (_HEIGHT - _TOP - _BOTTOM)


def _axes(axis: str, positions: Sequence[str]) -> Markup:
    parts = []
    grid = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
    mark = Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.0f}%</text>')
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(grid.format(_LEFT, _WIDTH - _RIGHT, _y(tick), _y(tick)))
        parts.append(mark.format(_LEFT - 6, _y(tick) + 4, 100 * tick))
    label = Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
    parts += [label.format(_x(i, len(positions)), _HEIGHT - _BOTTOM + 16, p) for i, p in enumerate(positions)]
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, axis))
    return Markup("").join(parts)


def _line(series: Series, n: int, shift: float) -> Markup:
    points = [(_x(i, n) + shift, _y(v), v) for i, v in enumerate(series.values) if v is not None]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    parts = [Markup('<polyline class="line {}" points="{}"/>').format(series.colour, path)]
    for i, (low, high) in enumerate(series.limits):
        if low is not None and high is not None:
            x = _x(i, n) + shift
            whisker = '<path class="whisker {}" d="M{:.1f},{:.1f}V{:.1f}M{:.1f},{:.1f}h6M{:.1f},{:.1f}h6"/>'
            ends = (x, _y(low), _y(high), x - 3, _y(low), x - 3, _y(high))
            parts.append(Markup(whisker).format(series.colour, *ends))
    above = 1 if series.colour == "a" else -1
    for x, y, value in points:
        # The lines rise: above left of the upper one and below right of the lower one is free.
        side = "end" if above > 0 else "start"
        parts.append(Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(series.colour, x, y))
        text = '<text class="value {}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{:.0f}</text>'
        parts.append(Markup(text).format(series.colour, x - above * 7, y - above * 9 + 4, side, 100 * value))
    return Markup("").join(parts)


def _legend(label: str, colour: str, row: int) -> Markup:
    x, y = _WIDTH - _RIGHT - 70, _HEIGHT - _BOTTOM - 26 + 16 * row
    return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/><text class="tick" x="{}" y="{}">{}</text>').format(
        colour, x, y - 4, x + 10, y, label
    )
