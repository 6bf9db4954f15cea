"""Tables with ruled heads, wrapped cells, totals in bold, and heads repeated after a page break."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .canvas import GREY, RGB, RULE, WHITE

if TYPE_CHECKING:
    from .flow import Flow

_NUMBER = re.compile(r"^[(\-–+]?[\d.,\u00a0 ]*\d[\d.,]*\)?\s?(%|pp|x|€|h)?$|^[–-]$|^$")
_ANCHOR = re.compile(r"\{@[a-z0-9_-]+\}")


def _plain(cell: str) -> str:
    return _ANCHOR.sub("", cell).replace("**", "")


def column_widths(flow: Flow, rows: list[list[str]], size: float, width: float) -> list[float]:
    """Natural widths, scaled down (widest first) or up to fill `width` points."""
    flow.canvas.font(flow.theme.head, "B", size)
    natural = [max(flow.canvas.measure(_plain(row[i]).lstrip("*")) + 12 for row in rows) for i in range(len(rows[0]))]
    total = sum(natural)
    if total <= width:
        spare = width - total
        return [n + spare * (0.5 if i == 0 else 0.5 / max(len(natural) - 1, 1)) for i, n in enumerate(natural)]
    cap = width / len(natural)
    narrow = sum(n for n in natural if n <= cap)
    wide = sum(n for n in natural if n > cap)
    return [n if n <= cap else n * (width - narrow) / wide for n in natural]


def draw_table(
    flow: Flow,
    rows: list[list[str]],
    *,
    widths: list[float] | None = None,
    size: float | None = None,
    style: str = "rules",
    fill: RGB | None = None,
) -> None:
    """Draw `rows` (the first is the head) at the cursor. A first cell starting with `*` makes a total row,
    with `!` a sub-head row. `style` is "rules" (horizontal rules) or "grid" (boxes)."""
    from .flow import parse_inline

    t = flow.theme
    size = size or t.size - 1
    lead = size * 1.28
    family = t.head if t.body != "cjk" else "cjk"
    head, body = rows[0], rows[1:]
    widths = widths or column_widths(flow, rows, size, flow.column_width)
    numeric = [all(_NUMBER.match(_plain(r[i])) for r in body if not r[0].startswith("!")) for i in range(len(head))]

    def draw_row(cells: list[str], kind: str) -> None:
        bold = kind in ("head", "total", "sub")
        laid = []
        for i, cell in enumerate(cells):
            text = cell.lstrip("*!") if i == 0 else cell
            words = parse_inline(f"**{text}**" if bold and "**" not in text else text)
            limit = sum(widths) if kind == "sub" else widths[i] - 8
            laid.append(flow.lines(words, limit, family, size))
        height = max(max(len(lines) for lines in laid), 1) * lead + 5
        if kind == "head":
            flow.need(height * 3)
        elif flow.y + height > flow.bottom:
            flow.advance()
            draw_row(head, "head")
        c, x = flow.canvas, flow.x
        if kind == "head" and fill:
            c.rect(x, flow.y, sum(widths), height, fill=fill)
        if kind == "head" and not fill:
            c.line(x, flow.y, x + sum(widths), flow.y, t.accent, 1.1)
        for i, lines in enumerate(laid):
            y = flow.y + 2.5
            for line, _ in lines:
                color = WHITE if kind == "head" and fill else t.ink
                c.font(family, "B" if bold else "", size)
                run = sum(
                    c.measure(w.text.replace("¦", "")) + (c.measure(" ") if w.space and k else 0)
                    for k, w in enumerate(line)
                )
                shift = widths[i] - 4 - run if numeric[i] and i else 4.0
                flow.put_line(line, x + shift, y + size, widths[i], family, size, color, False)
                y += lead
            if style == "grid":
                c.rect(x, flow.y, widths[i], height, stroke=GREY)
            x += widths[i]
        if style == "rules":
            heavy = kind in ("head", "total")
            c.line(flow.x, flow.y + height, x, flow.y + height, t.accent if heavy else RULE, 0.9 if heavy else 0.35)
        flow.y += height

    draw_row(head, "head")
    for row in body:
        draw_row(row, "total" if row[0].startswith("*") else "sub" if row[0].startswith("!") else "row")
    flow.y += size * 1.1
