"""Vector charts: bars, lines, pies and horizontal bars, with axes, ticks and legends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .canvas import BLACK, GREY, RGB, RULE, Canvas

PALETTE: list[RGB] = [(24, 78, 119), (82, 160, 152), (224, 142, 69), (158, 85, 122), (120, 128, 140), (200, 180, 80)]


@dataclass(frozen=True)
class Box:
    """Where a chart goes, in points: left, top, width, height; and how its text looks."""

    x: float
    y: float
    w: float
    h: float
    family: str = "helvetica"
    size: float = 8.0
    colors: tuple[RGB, ...] = tuple(PALETTE)


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9)))
    for factor in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0):
        if (high - low) / (step * factor) <= 6:
            step *= factor
            break
    start = math.floor(low / step) * step
    count = math.ceil((high - start) / step - 1e-9)
    return [start + i * step for i in range(count + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.2f}".rstrip("0")


def _title(c: Canvas, box: Box, title: str) -> float:
    if not title:
        return box.y
    c.font(box.family, "B", box.size + 1.2)
    c.text(box.x, box.y + box.size + 1, title)
    return box.y + box.size * 2.2


def _legend(c: Canvas, box: Box, names: Sequence[str], y: float) -> float:
    c.font(box.family, "", box.size)
    x = box.x
    for i, name in enumerate(names):
        need = 16 + c.measure(name)
        if x + need > box.x + box.w and x > box.x:
            x, y = box.x, y + box.size * 1.5
        c.rect(x, y, box.size - 1, box.size - 1, fill=box.colors[i % len(box.colors)])
        c.text(x + box.size + 3, y + box.size - 1.3, name, GREY)
        x += need + 8
    return y + box.size * 2


def _axes(c: Canvas, box: Box, top: float, ticks: list[float], unit: str) -> tuple[float, float, float, float]:
    """Draw grid and labels; returns the plot's left, top, width and height."""
    c.font(box.family, "", box.size)
    if unit:
        c.text(box.x, top + box.size, unit, GREY)
        top += box.size * 1.9
    left = box.x + max(c.measure(_number(v)) for v in ticks) + 6
    bottom = box.y + box.h - box.size * 2
    for i, value in enumerate(ticks):
        y = bottom - (bottom - top) * i / (len(ticks) - 1)
        c.line(left, y, box.x + box.w, y, BLACK if i == 0 else RULE, 0.7 if i == 0 else 0.35)
        c.text(left - 5, y + box.size * 0.35, _number(value), GREY, "R")
    return left, top, box.x + box.w - left, bottom - top


def bars(
    c: Canvas,
    box: Box,
    categories: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    unit: str = "",
    stacked: bool = False,
    values: bool = True,
) -> None:
    """Grouped or stacked vertical bars."""
    top = _title(c, box, title)
    if len(series) > 1:
        top = _legend(c, box, list(series), top)
    if stacked:
        peak = max(sum(s[i] for s in series.values()) for i in range(len(categories)))
    else:
        peak = max(max(s) for s in series.values())
    ticks = _ticks(0, peak * 1.04)
    left, top, width, height = _axes(c, box, top, ticks, unit)
    slot = width / len(categories)
    each = slot * 0.62 / (1 if stacked else len(series))
    for i, category in enumerate(categories):
        x = left + slot * i + slot * 0.19
        base = 0.0
        for k, data in enumerate(series.values()):
            tall = height * data[i] / ticks[-1]
            y = top + height - tall - (height * base / ticks[-1] if stacked else 0)
            c.rect(x, y, each * (1 if stacked else 0.94), tall, fill=box.colors[k % len(box.colors)])
            c.font(box.family, "", box.size - 1)
            if values and not stacked and each > 9:
                c.text(x + each / 2, y - 2.5, _number(data[i]), BLACK, "C")
            elif values and stacked and tall > box.size * 1.3:
                c.text(x + each / 2, y + tall / 2 + box.size * 0.3, _number(data[i]), (255, 255, 255), "C")
            if stacked:
                base += data[i]
            else:
                x += each
        c.font(box.family, "", box.size)
        c.text(left + slot * (i + 0.5), top + height + box.size * 1.4, category, GREY, "C")


def lines(
    c: Canvas,
    box: Box,
    xs: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    unit: str = "",
    low: float = 0.0,
    values: bool = False,
    every: int = 1,
) -> None:
    """Line series with point markers."""
    top = _title(c, box, title)
    top = _legend(c, box, list(series), top) if len(series) > 1 else top
    ticks = _ticks(low, max(max(s) for s in series.values()))
    left, top, width, height = _axes(c, box, top, ticks, unit)
    span = ticks[-1] - ticks[0]
    step = width / max(len(xs) - 1, 1) * 0.94
    at = [left + width * 0.03 + step * i for i in range(len(xs))]
    for k, data in enumerate(series.values()):
        color = box.colors[k % len(box.colors)]
        points = [(at[i], top + height - height * (v - ticks[0]) / span) for i, v in enumerate(data)]
        c.polyline(points, color, 1.4)
        for i, (x, y) in enumerate(points):
            if len(points) <= 30:
                c.circle(x, y, 1.9, fill=color)
            if values:
                c.font(box.family, "", box.size - 1)
                c.text(x, y - 4.5, _number(data[i]), BLACK, "C")
    c.font(box.family, "", box.size)
    for i, label in enumerate(xs):
        if i % every == 0:
            c.text(at[i], top + height + box.size * 1.4, label, GREY, "C")


def scatter(
    c: Canvas,
    box: Box,
    points: Mapping[str, Sequence[tuple[float, float]]],
    *,
    unit: str = "",
    x_unit: str = "",
    x_low: float = 0.0,
    low: float = 0.0,
) -> None:
    """Scatter plot of named point sets."""
    top = _legend(c, box, list(points), box.y)
    flat = [p for group in points.values() for p in group]
    ticks = _ticks(low, max(p[1] for p in flat))
    inner = Box(box.x, box.y, box.w, box.h - box.size * 1.5, box.family, box.size, box.colors)
    left, top, width, height = _axes(c, inner, top, ticks, unit)
    x_ticks = _ticks(x_low, max(p[0] for p in flat))
    for i, value in enumerate(x_ticks):
        c.text(left + width * i / (len(x_ticks) - 1), top + height + box.size * 1.4, _number(value), GREY, "C")
    c.text(left + width / 2, top + height + box.size * 3, x_unit, GREY, "C")
    for k, group in enumerate(points.values()):
        for px, py in group:
            c.circle(
                left + width * (px - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]),
                top + height - height * (py - ticks[0]) / (ticks[-1] - ticks[0]),
                1.9,
                fill=box.colors[k],
            )


def pie(
    c: Canvas, box: Box, shares: Mapping[str, float], *, title: str = "", hole: float = 0.0, suffix: str = "%"
) -> None:
    """A pie, or with `hole` > 0 a ring, clockwise from the top, with a legend on the right."""
    top = _title(c, box, title)
    total = sum(shares.values())
    radius = min(box.h - (top - box.y), box.w * 0.5) / 2 - 2
    cx, cy = box.x + radius + 4, top + radius + 2
    angle = -90.0
    for k, value in enumerate(shares.values()):
        sweep = 360 * value / total
        steps = max(int(sweep / 4), 2)
        arc = [
            (
                cx + radius * math.cos(math.radians(angle + sweep * i / steps)),
                cy + radius * math.sin(math.radians(angle + sweep * i / steps)),
            )
            for i in range(steps + 1)
        ]
        c.polygon([(cx, cy), *arc], fill=box.colors[k % len(box.colors)], stroke=(255, 255, 255), width=0.8)
        angle += sweep
    if hole:
        c.circle(cx, cy, radius * hole, fill=(255, 255, 255))
    y = cy - len(shares) * box.size * 0.95
    for k, (name, value) in enumerate(shares.items()):
        x = cx + radius + 18
        c.rect(x, y, box.size, box.size, fill=box.colors[k % len(box.colors)])
        c.font(box.family, "", box.size)
        c.text(x + box.size + 5, y + box.size - 0.8, f"{name}  {_number(value)}{suffix}")
        y += box.size * 1.9


def hbars(
    c: Canvas,
    box: Box,
    rows: Mapping[str, Sequence[float]],
    names: Sequence[str],
    *,
    title: str = "",
    suffix: str = "%",
    label_width: float = 0.36,
) -> None:
    """Horizontal bars, stacked to a common length when there are several series."""
    top = _title(c, box, title)
    if len(names) > 1:
        top = _legend(c, box, names, top)
    left = box.x + box.w * label_width
    width = box.w * (1 - label_width) - 30
    peak = max(sum(v) for v in rows.values())
    each = (box.y + box.h - top) / len(rows)
    for i, (label, data) in enumerate(rows.items()):
        y = top + each * i + each * 0.18
        c.font(box.family, "", box.size)
        c.text(left - 6, y + each * 0.32 + box.size * 0.35, label, BLACK, "R")
        x = left
        for k, value in enumerate(data):
            wide = width * value / peak
            c.rect(x, y, wide, each * 0.64, fill=box.colors[k % len(box.colors)])
            c.font(box.family, "", box.size - 0.6)
            text = _number(value) + suffix
            if len(data) == 1:
                c.text(x + wide + 4, y + each * 0.32 + box.size * 0.35, text)
            elif wide > c.measure(text) + 4:
                c.text(x + wide / 2, y + each * 0.32 + box.size * 0.35, text, (255, 255, 255), "C")
            x += wide
    c.line(left, top, left, box.y + box.h, BLACK, 0.7)
