"""A laboratory safety handbook; one of its pages is a scanned inspection record."""

from __future__ import annotations

import math

from ..canvas import BLACK, GREY, RGB, WHITE, Canvas
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..scan import scanned

YELLOW: RGB = (250, 200, 20)
INK: RGB = (40, 60, 90)
THEME = Theme(
    body="helvetica",
    head="helvetica",
    size=10.6,
    leading=1.46,
    accent=INK,
    left=70,
    right=70,
    top=92,
    bottom=66,
    h1=20,
    h2=17,
    h3=11.6,
)


class Handbook:
    def __init__(self) -> None:
        self.canvas = Canvas("Laboratory safety handbook, Lakemont College")
        self.canvas.on_page = self.furniture
        self.record_page = 0
        self.flow = Flow(
            self.canvas,
            THEME,
            {"cover": self.cover, "signs": self.signs, "record": self.record, "mark": self.canvas.mark},
        )

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1:
            return
        for k in range(60):
            if k % 2 == 0:
                c.polygon([(k * 10.0, 0), (k * 10.0 + 10, 0), (k * 10.0, 12), (k * 10.0 - 10, 12)], fill=YELLOW)
        c.font("helvetica", "B", 8.5)
        c.text(70, 48, "LAKEMONT COLLEGE", INK)
        c.font("helvetica", "", 8.5)
        c.text(c.width - 70, 48, "Laboratory safety handbook  |  Version 7", GREY, "R")
        c.text(c.width - 70, c.height - 36, f"{c.page} / 8", GREY, "R")
        c.text(70, c.height - 36, "In an emergency: internal 555", (180, 30, 30))

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, c.width, c.height, fill=INK)
        c.polygon([(297, 180), (417, 390), (177, 390)], fill=YELLOW)
        c.polygon([(297, 212), (392, 378), (202, 378)], fill=INK)
        c.rect(290, 262, 14, 66, fill=YELLOW)
        c.circle(297, 348, 9, fill=YELLOW)
        c.font("helvetica", "B", 32)
        c.text(297, 480, "Laboratory safety", WHITE, "C")
        c.text(297, 518, "handbook", WHITE, "C")
        c.font("helvetica", "", 14)
        c.text(297, 556, "Lakemont College, School of Sciences", WHITE, "C")
        c.text(297, 578, "Version 7, in force from 1 September 2024", WHITE, "C")

    def signs(self, _: str) -> None:
        """Six signs: triangle warns, disc orders, square informs."""
        c, f = self.canvas, self.flow
        names = ["Laser", "Cold", "Goggles", "Gloves", "Eye wash", "Assembly"]
        for k, name in enumerate(names):
            x, y = f.x + 38 + k * 76, f.y + 34
            if k < 2:
                c.polygon([(x, y - 26), (x + 28, y + 22), (x - 28, y + 22)], fill=YELLOW, stroke=BLACK, width=2)
                for a in range(8):
                    c.line(x, y + 6, x + 9 * math.cos(a * 0.785), y + 6 + 9 * math.sin(a * 0.785), BLACK, 1.2)
            elif k < 4:
                c.circle(x, y, 26, fill=(0, 90, 170))
                c.circle(x - 8, y, 6, stroke=WHITE, width=2)
                c.circle(x + 8, y, 6, stroke=WHITE, width=2)
            else:
                c.rect(x - 25, y - 25, 50, 50, fill=(0, 130, 70))
                c.arrow(x, y + 14, x, y - 16, WHITE, 3)
            c.font("helvetica", "", 9)
            c.text(x, y + 44, name, align="C")
        f.y += 92

    def record(self, _: str) -> None:
        """The record that will be replaced by its scan."""
        c, f = self.canvas, self.flow
        self.record_page = c.page
        c.font("courier", "B", 15)
        c.text(297, f.y + 18, "INSPECTION RECORD - FUME CUPBOARDS", align="C")
        c.font("courier", "", 11)
        rows = [
            "Building C, floor 2              Date: 17 June 2024",
            "",
            "No.    Room    Face velocity   Alarm   Result",
            "       (sash at 400 mm)  m/s",
            "-----------------------------------------------",
            "FC-1   C201    0.52            ok      PASS",
            "FC-2   C201    0.49            ok      PASS",
            "FC-3   C204    0.31            ok      FAIL",
            "FC-4   C207    0.55            none    FAIL",
            "FC-5   C210    0.47            ok      PASS",
            "FC-6   C212    0.50            ok      PASS",
            "-----------------------------------------------",
            "Required: 0.40 m/s or more, alarm working.",
            "",
            "FC-3: belt of fan slipping, to be replaced by",
            "      28 June. Out of use until re-tested.",
            "FC-4: alarm unit ordered. Use permitted with",
            "      hand-held meter.",
            "",
            "Next inspection due: June 2025",
        ]
        for k, row in enumerate(rows):
            c.text(118, f.y + 62 + 21 * k, row)
        c.rect(100, f.y + 36, 400, 450, stroke=BLACK, width=1.4)
        c.font("times", "I", 15)
        c.text(118, f.y + 520, "checked: safety desk")
        c.polyline([(330.0 + 7 * i, f.y + 516 + 9 * math.sin(i * 1.9)) for i in range(16)], INK, 1.6)
        c.mark("lh-record")


def draw() -> Canvas:
    handbook = Handbook()
    handbook.flow.render(content("lab_handbook.md"))
    return handbook.canvas


def finish(canvas: Canvas) -> bytes:
    return scanned(canvas.to_bytes(), seed=71, pages={canvas.marks["lh-record"]}, quality=46)


RECIPE = Recipe("lab_handbook.pdf", "safety handbook", draw, finish)
