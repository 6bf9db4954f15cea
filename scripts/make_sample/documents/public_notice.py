"""A public notice with a form: boxes, check-boxes, dates and fees."""

from __future__ import annotations

from ..canvas import BLACK, GREY, LIGHT, RGB, WHITE, Canvas
from ..corpus import Recipe, content
from ..flow import Flow, Theme

GREEN: RGB = (0, 88, 66)
THEME = Theme(
    body="helvetica",
    head="helvetica",
    size=9.8,
    leading=1.36,
    accent=GREEN,
    left=56,
    right=56,
    top=96,
    bottom=52,
    h1=19,
    h2=12.5,
    h3=10.2,
)


class Notice:
    def __init__(self) -> None:
        self.canvas = Canvas("Public notice: moorings on the River Ell, season 2026")
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {
                "field": self.fields,
                "check": self.checks,
                "box": self.section,
                "mark": self.canvas.mark,
                "office": self.office,
            },
        )

    def furniture(self) -> None:
        c = self.canvas
        c.rect(0, 0, c.width, 62, fill=GREEN)
        c.circle(82, 31, 18, fill=WHITE)
        c.polygon([(72, 36), (92, 36), (88, 42), (76, 42)], fill=GREEN)
        c.polygon([(81, 20), (81, 34), (91, 34)], fill=GREEN)
        c.font("helvetica", "B", 13)
        c.text(112, 28, "ELL NAVIGATION BOARD", WHITE)
        c.font("helvetica", "", 9.5)
        c.text(112, 43, "Public notice 2025/17", WHITE)
        c.font("helvetica", "B", 9.5)
        c.text(c.width - 56, 36, "FORM NB-40", WHITE, "R")
        c.line(56, c.height - 46, c.width - 56, c.height - 46, GREY, 0.5)
        c.font("helvetica", "", 8)
        c.text(56, c.height - 33, "NB-40 (10/2025)", GREY)
        c.text(c.width - 56, c.height - 33, f"Page {c.page} of 5", GREY, "R")

    def section(self, title: str) -> None:
        self.flow.need(60)
        c, f = self.canvas, self.flow
        c.rect(f.x, f.y, f.column_width, 18, fill=GREEN)
        c.font("helvetica", "B", 10)
        c.text(f.x + 8, f.y + 12.8, title, WHITE)
        f.y += 24

    def fields(self, argument: str) -> None:
        """A row of empty boxes; `label:share; label:share`."""
        c, f = self.canvas, self.flow
        f.need(40)
        x = f.x
        for item in argument.split(";"):
            label, _, share = item.strip().partition(":")
            wide = f.column_width * float(share)
            c.font("helvetica", "", 7.6)
            c.text(x + 2, f.y + 8, label, GREY)
            c.rect(x, f.y + 11, wide - 8, 20, stroke=BLACK, width=0.7)
            x += wide
        f.y += 37

    def checks(self, argument: str) -> None:
        """Check-boxes in a row; a leading `x ` ticks one."""
        c, f = self.canvas, self.flow
        f.need(20)
        x = f.x
        items = argument.split(";")
        for item in items:
            text = item.strip()
            c.rect(x, f.y + 2, 10, 10, stroke=BLACK, width=0.9)
            if text.startswith("x "):
                text = text[2:]
                c.line(x + 2, f.y + 4, x + 8, f.y + 10, width=1.4)
                c.line(x + 2, f.y + 10, x + 8, f.y + 4, width=1.4)
            c.font("helvetica", "", 9)
            c.text(x + 15, f.y + 10.4, text)
            x += f.column_width / max(len(items), 2)
        f.y += 19

    def office(self, _: str) -> None:
        c, f = self.canvas, self.flow
        f.need(98)
        c.rect(f.x, f.y, f.column_width, 96, fill=LIGHT, stroke=GREY)
        c.font("helvetica", "B", 8.5)
        c.text(f.x + 8, f.y + 14, "FOR USE BY THE BOARD - DO NOT WRITE IN THIS SPACE")
        c.font("helvetica", "", 8)
        for k, label in enumerate(
            ["Received", "Reference", "Fee checked", "Mooring", "Refused, reason", "Clerk's mark"]
        ):
            x, y = f.x + 8 + (k % 3) * 158, f.y + 26 + (k // 3) * 34
            c.text(x, y + 8, label, GREY)
            c.rect(x, y + 11, 148, 17, fill=WHITE, stroke=GREY)
        f.y += 108


def draw() -> Canvas:
    notice = Notice()
    notice.flow.render(content("public_notice.md"))
    return notice.canvas


RECIPE = Recipe("public_notice.pdf", "public notice and form", draw)
