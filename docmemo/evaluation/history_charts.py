"""Figures over a series of runs as inline SVG, without script or network; colours are the page's CSS variables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from docmemo.evaluation.terminal import limits, percent

_WIDTH, _HEIGHT = 720, 310
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 24, 16, 96
_LABELS = 12
"""Most runs named below the axis."""


@dataclass(frozen=True)
class Point:
    """One run: values 0..1 of each line, with limits where there are."""

    label: str
    title: str
    """What is said about the run when the pointer rests on it."""
    series: Hashable
    """Runs are joined by a line only within the same series."""
    values: Sequence[float | None]
    limits: Sequence[tuple[float | None, float | None]]


def history_chart(title: str, lines: Sequence[tuple[str, str]], points: Sequence[Point]) -> Markup:
    """Lines over runs, oldest first, y from 0 to 100%.

    Args:
        title: of the whole picture, for screen readers.
        lines: (label, CSS class "a" or "b") of each line.
        points: the runs.
    """
    parts = [_grid(), _breaks(points), _names(points)]
    for index, (label, colour) in enumerate(lines):
        shift = (index - (len(lines) - 1) / 2) * 5  # whiskers of two lines must not cover each other
        parts.append(_line(index, label, colour, points, shift))
        parts.append(_legend(label, colour, index))
    spoken = "; ".join(
        f"{label}: " + ", ".join(f"{p.label} {percent(p.values[i])}" for p in points)
        for i, (label, _) in enumerate(lines)
    )
    return Markup('<svg class="chart wide" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, f"{title}. {spoken}", Markup("").join(parts)
    )


def _x(index: int, n: int) -> float:
    if n == 1:
        return (_LEFT + _WIDTH - _RIGHT) / 2
    return _LEFT + 14 + (_WIDTH - _LEFT - _RIGHT - 28) * index / (n - 1)


def _y(value: float) -> float:
    return _TOP + (1 - value) * (_HEIGHT - _TOP - _BOTTOM)


def _grid() -> Markup:
    line = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
    text = Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.0f}%</text>')
    parts = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(line.format(_LEFT, _WIDTH - _RIGHT, _y(tick), _y(tick)))
        parts.append(text.format(_LEFT - 6, _y(tick) + 4, 100 * tick))
    return Markup("").join(parts)


def _breaks(points: Sequence[Point]) -> Markup:
    """An upright line where the dataset or the scorer changes: figures on its two sides are not comparable."""
    parts = []
    for i in range(1, len(points)):
        if points[i].series != points[i - 1].series:
            x = (_x(i - 1, len(points)) + _x(i, len(points))) / 2
            parts.append(
                Markup('<line class="break" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
                    x, x, _TOP, _HEIGHT - _BOTTOM
                )
            )
    return Markup("").join(parts)


def _names(points: Sequence[Point]) -> Markup:
    step = -(-len(points) // _LABELS)
    parts = []
    for i in range(len(points) - 1, -1, -step):  # the newest is always named
        x, y = _x(i, len(points)), _HEIGHT - _BOTTOM + 14
        text = '<text class="tick" x="{:.1f}" y="{}" text-anchor="end" transform="rotate(-35 {:.1f} {})">{}</text>'
        parts.append(Markup(text).format(x + 4, y, x + 4, y, points[i].label))
    return Markup("").join(parts)


def _line(index: int, label: str, colour: str, points: Sequence[Point], shift: float) -> Markup:
    n = len(points)
    parts: list[Markup] = []
    path: list[str] = []
    for i, point in enumerate(points):
        value = point.values[index]
        if path and (value is None or point.series != points[i - 1].series):
            parts.append(Markup('<polyline class="line {}" points="{}"/>').format(colour, " ".join(path)))
            path = []
        if value is None:
            continue
        x, y = _x(i, n) + shift, _y(value)
        path.append(f"{x:.1f},{y:.1f}")
        low, high = point.limits[index]
        if low is not None and high is not None:
            whisker = '<path class="whisker {}" d="M{:.1f},{:.1f}V{:.1f}M{:.1f},{:.1f}h6M{:.1f},{:.1f}h6"/>'
            ends = (x, _y(low), _y(high), x - 3, _y(low), x - 3, _y(high))
            parts.append(Markup(whisker).format(colour, *ends))
        said = f"{point.title}: {label} {percent(value)} ({limits(low, high)})"
        dot = '<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>'
        parts.append(Markup(dot).format(colour, x, y, said))
    if path:
        parts.append(Markup('<polyline class="line {}" points="{}"/>').format(colour, " ".join(path)))
    return Markup("").join(parts)


def _legend(label: str, colour: str, index: int) -> Markup:
    x, y = _LEFT + 150 * index, _HEIGHT - 6
    return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/><text class="tick" x="{}" y="{}">{}</text>').format(
        colour, x, y - 4, x + 10, y, label
    )
