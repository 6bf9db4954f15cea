"""Charts as inline SVG without script or network; colours are the page's CSS variables, in light and in dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from docmemo.evaluation.terminal import percent

_WIDTH, _HEIGHT = 420, 264
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 26, 66
_GAP = 13
"""Pixels between the base lines of two labels at the same place."""

Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Series:
    """One line of a chart: values 0..1 at the axis' positions, with limits where there are."""

    label: str
    colour: str
    """CSS class that sets the colour: "a", "b" or "c"."""
    values: Sequence[float | None]
    limits: Sequence[Limits] = field(default_factory=tuple)
    dash: str = ""
    """CSS class of the line's pattern: "", "dashed" or "dotted"."""


@dataclass(frozen=True)
class Dot:
    """One point of a scatter chart."""

    label: str
    """Written beside it; "" only shows when the pointer rests on the dot."""
    title: str
    colour: str
    x: float
    y: float


class _Frame:
    """Places on the picture for values `low`..1, written from 0 or from a round number below the lowest value."""

    def __init__(self, values: Sequence[float | None], limits: Sequence[Limits]) -> None:
        lows = [low for low, _ in limits]
        known = [v for v in (*values, *lows) if v is not None]
        self.low = 0.5 if known and min(known) >= 0.55 else 0.0

    def y(self, value: float) -> float:
        return _TOP + (1 - value) / (1 - self.low) * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> Markup:
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
        mark = Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:.0f}%</text>')
        parts = []
        steps = 5 if self.low else 4
        for i in range(steps + 1):
            tick = self.low + (1 - self.low) * i / steps
            parts.append(line.format(_LEFT, _WIDTH - _RIGHT, self.y(tick), self.y(tick)))
            parts.append(mark.format(_LEFT - 6, self.y(tick) + 4, 100 * tick))
        return Markup("").join(parts)


def _x(index: int, n: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) / n * (index + 0.5)


def _picture(spoken: str, parts: Sequence[Markup]) -> Markup:
    """The whole chart as one image to a screen reader, whose text lists every value."""
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, spoken, Markup("").join(parts)
    )


def line_chart(title: str, axis: str, positions: Sequence[str], series: Sequence[Series]) -> Markup:
    """Lines over evenly spaced `positions`, y up to 100%, whiskers where there are limits.

    The y axis starts at 0, or at 50% when nothing lies below 55%, as its ticks say.
    """
    frame = _Frame([v for s in series for v in s.values], [limit for s in series for limit in s.limits])
    parts = [frame.grid(), _positions(axis, positions)]
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * 9  # whiskers of two lines must not cover each other
        parts.append(_line(frame, one, len(positions), shift))
    parts += [_values(frame, series, i, len(positions)) for i in range(len(positions))]
    parts.append(_legend([(s.label, s.colour, s.dash) for s in series]))
    spoken = "; ".join(
        f"{s.label}: " + ", ".join(f"{axis} {p} {percent(v)}" for p, v in zip(positions, s.values, strict=True))
        for s in series
    )
    return _picture(f"{title}. {spoken}", parts)


def _positions(axis: str, positions: Sequence[str]) -> Markup:
    label = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
    parts = [label.format(_x(i, len(positions)), _HEIGHT - _BOTTOM + 16, p) for i, p in enumerate(positions)]
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 32, axis))
    return Markup("").join(parts)


def _line(frame: _Frame, series: Series, n: int, shift: float) -> Markup:
    points = [(_x(i, n) + shift, frame.y(v)) for i, v in enumerate(series.values) if v is not None]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [Markup('<polyline class="line {} {}" points="{}"/>').format(series.colour, series.dash, path)]
    for i, (low, high) in enumerate(series.limits):
        if low is not None and high is not None:
            x = _x(i, n) + shift
            whisker = '<path class="whisker {}" d="M{:.1f},{:.1f}V{:.1f}M{:.1f},{:.1f}h6M{:.1f},{:.1f}h6"/>'
            ends = (x, frame.y(low), frame.y(high), x - 3, frame.y(low), x - 3, frame.y(high))
            parts.append(Markup(whisker).format(series.colour, *ends))
    dot = Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>')
    parts += [dot.format(series.colour, x, y) for x, y in points]
    return Markup("").join(parts)


def _values(frame: _Frame, series: Sequence[Series], index: int, n: int) -> Markup:
    """The values at one position: the highest above its dot, the others below the lowest one, in their order."""
    found = [(v, s, number) for number, s in enumerate(series) if (v := s.values[index]) is not None]
    if not found:
        return Markup("")
    found.sort(key=lambda item: -item[0])
    lowest = frame.y(found[-1][0])
    lowest = min(lowest, _HEIGHT - _BOTTOM - 4 - _GAP * (len(found) - 1))
    texts = []
    for place, (value, one, number) in enumerate(found):
        x = _x(index, n) + ((number - (len(series) - 1) / 2) * 9 if place == 0 else 0)
        at = frame.y(value) - 9 if place == 0 else lowest + 4 + _GAP * place
        text = '<text class="value {}" x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.1f}</text>'
        texts.append(Markup(text).format(one.colour, x, at, 100 * value))
    return Markup("").join(texts)


def _legend(entries: Sequence[tuple[str, str, str]]) -> Markup:
    width = (_WIDTH - 12) / len(entries)
    parts = []
    for i, (label, colour, dash) in enumerate(entries):
        x, y = 6 + width * i, _HEIGHT - 10
        line = '<line class="line {} {}" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>'
        parts.append(Markup(line).format(colour, dash, x, x + 22, y - 4, y - 4))
        parts.append(Markup('<text class="tick" x="{:.1f}" y="{}">{}</text>').format(x + 27, y, label))
    return Markup("").join(parts)


def scatter_chart(title: str, x_axis: str, y_axis: str, dots: Sequence[Dot]) -> Markup:
    """Points over a cost from 0 (x) and a share up to 100% (y); labels that would cover each other are stacked."""
    frame = _Frame([dot.y for dot in dots], [])
    most = max((dot.x for dot in dots), default=0.0) * 1.12 or 1.0
    step = _round_step(most / 5)
    parts = [frame.grid()]
    label = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
    ticks = [step * i for i in range(int(most / step) + 1)]
    parts += [label.format(_along(t, most), _HEIGHT - _BOTTOM + 16, f"{t:g}") for t in ticks]
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 34, x_axis))
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 52, f"up: {y_axis}"))
    taken: list[tuple[float, float, float]] = []
    for dot in sorted(dots, key=lambda d: (not d.label, -d.y, d.x)):
        x, y = _along(dot.x, most), frame.y(dot.y)
        circle = '<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>'
        parts.append(Markup(circle).format(dot.colour, x, y, 5 if dot.label else 3.5, dot.title))
        if dot.label:
            parts.append(_beside(dot, x, y, taken))
    spoken = "; ".join(f"{dot.title}" for dot in dots)
    return _picture(f"{title}. {spoken}", parts)


def _along(value: float, most: float) -> float:
    return _LEFT + value / most * (_WIDTH - _LEFT - _RIGHT)


def _round_step(rough: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 .. (or tenths of them)."""
    scale = 1.0
    while scale > rough:
        scale /= 10
    while scale * 10 < rough:
        scale *= 10
    return next(scale * m for m in (1, 2, 5, 10) if scale * m >= rough)


def _beside(dot: Dot, x: float, y: float, taken: list[tuple[float, float, float]]) -> Markup:
    """The dot's label: right of it, near the right edge above it, lower where another label already is."""
    width = 7.2 * len(dot.label)
    edge = x + 9 + width > _WIDTH
    start, at = (x + 8 - width, y - 9) if edge else (x + 9, y + 4)
    while any(abs(at - b) < _GAP and start < e and s < start + width for s, e, b in taken):
        at += _GAP
    taken.append((start, start + width, at))
    text = '<text class="value {}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
    return Markup(text).format(dot.colour, x + 8 if edge else start, at, "end" if edge else "start", dot.label)


def reliability_chart(title: str, bins: Sequence[tuple[float, float, int]]) -> Markup:
    """Mean score over mean confidence by bin; the area of a dot goes with the number of its questions.

    Args:
        title: of the picture, for screen readers.
        bins: (mean confidence, mean score, number of questions) of each bin that holds something.
    """
    frame = _Frame([0.0], [])
    label = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
    parts = [frame.grid()]
    parts += [label.format(_along(i / 4, 1.0), _HEIGHT - _BOTTOM + 16, f"{25 * i}%") for i in range(5)]
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 34, "confidence"))
    parts.append(label.format((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 52, "up: score; line: perfect"))
    diagonal = '<line class="line c dashed" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
    parts.append(Markup(diagonal).format(_along(0, 1), frame.y(0), _along(1, 1), frame.y(1)))
    most = max((n for _, _, n in bins), default=1)
    for confidence, score, n in bins:
        dot = '<circle class="dot a" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>'
        said = f"confidence {percent(confidence)}, score {percent(score)}, {n} questions"
        parts.append(Markup(dot).format(_along(confidence, 1.0), frame.y(score), 3 + 7 * (n / most) ** 0.5, said))
    spoken = "; ".join(f"confidence {percent(c)}: score {percent(s)}, {n} questions" for c, s, n in bins)
    return _picture(f"{title}. {spoken}", parts)
