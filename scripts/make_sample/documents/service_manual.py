"""The service manual of a bench band saw, drawn like print of the eighties and then scanned."""

from __future__ import annotations

import math

from ..canvas import BLACK, Canvas
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..scan import scanned

THEME = Theme(
    body="times",
    head="helvetica",
    size=11.4,
    leading=1.36,
    accent=BLACK,
    justify=True,
    left=54,
    right=46,
    top=70,
    bottom=54,
    h1=16,
    h2=13,
    h3=11.2,
    h1_space=6,
)


class Manual:
    def __init__(self) -> None:
        self.canvas = Canvas("Service manual: Tarn 350 band saw", width=504, height=684)
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {
                "cover": self.cover,
                "exploded": self.exploded,
                "wiring": self.wiring,
                "mark": self.canvas.mark,
                "guide": self.guide,
            },
        )

    def furniture(self) -> None:
        c, page = self.canvas, self.canvas.page
        if page == 1:
            return
        c.font("helvetica", "B", 8.5)
        c.text(54, 42, "TARN 350 BAND SAW")
        c.text(458, 42, "SERVICE MANUAL", align="R")
        c.line(54, 47, 458, 47, width=1.2)
        c.font("helvetica", "", 9)
        c.text(256, 654, f"- {page} -", align="C")

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(40, 40, 424, 604, stroke=BLACK, width=2)
        c.rect(46, 46, 412, 592, stroke=BLACK, width=0.6)
        c.font("helvetica", "B", 30)
        c.text(252, 130, "TARN 350", align="C")
        c.font("helvetica", "", 17)
        c.text(252, 158, "METAL-CUTTING BAND SAW", align="C")
        c.font("times", "B", 22)
        c.text(252, 215, "Service Manual", align="C")
        self.saw(160, 270, 1.0)
        c.font("times", "", 11)
        c.text(252, 560, "For serial numbers 4000 and above", align="C")
        c.text(252, 578, "Publication TM-350-3, third printing, June 1987", align="C")
        c.font("helvetica", "B", 11)
        c.text(252, 612, "ORWELL TOOL WORKS LIMITED", align="C")

    def saw(self, x: float, y: float, s: float) -> None:
        """Outline of the machine."""
        c = self.canvas
        c.rect(x - 30 * s, y + 170 * s, 250 * s, 70 * s, stroke=BLACK, width=1.2)
        c.rect(x - 10 * s, y + 150 * s, 210 * s, 20 * s, stroke=BLACK, width=1.2)
        for cx in (20, 170):
            c.circle(x + cx * s, y + 70 * s, 46 * s, stroke=BLACK, width=1.4)
            c.circle(x + cx * s, y + 70 * s, 40 * s, stroke=BLACK, width=0.6)
            c.circle(x + cx * s, y + 70 * s, 7 * s, stroke=BLACK, width=1.0)
        c.line(x + 20 * s, y + 24 * s, x + 170 * s, y + 24 * s, width=1.2)
        c.line(x + 20 * s, y + 116 * s, x + 170 * s, y + 116 * s, width=1.2)
        c.rect(x + 82 * s, y + 108 * s, 12 * s, 44 * s, stroke=BLACK, width=0.9)
        c.rect(x + 112 * s, y + 108 * s, 12 * s, 44 * s, stroke=BLACK, width=0.9)
        c.rect(x + 96 * s, y + 128 * s, 14 * s, 22 * s, fill=(170, 170, 170), stroke=BLACK)
        for leg in (-20, 190):
            c.rect(x + leg * s, y + 240 * s, 14 * s, 26 * s, stroke=BLACK, width=1.0)

    def callout(self, number: int, x: float, y: float, tx: float, ty: float) -> None:
        c = self.canvas
        c.line(x, y, tx, ty, width=0.6)
        c.circle(x, y, 9, fill=(255, 255, 255), stroke=BLACK, width=0.9)
        c.font("helvetica", "B", 9)
        c.text(x, y + 3.2, str(number), align="C")

    def exploded(self, _: str) -> None:
        """Figure 3: the drive shaft assembly pulled apart along its axis."""
        c, y = self.canvas, self.flow.y + 120
        c.dashed(62, y, 452, y, BLACK, 0.6)
        x = 84.0
        c.circle(x + 18, y, 52, stroke=BLACK, width=1.2)
        c.circle(x + 18, y, 44, stroke=BLACK, width=0.5)
        for k in range(5):
            a = math.radians(72 * k - 90)
            c.circle(x + 18 + 30 * math.cos(a), y + 30 * math.sin(a), 5, stroke=BLACK, width=0.6)
        c.circle(x + 18, y, 9, fill=(255, 255, 255), stroke=BLACK)
        c.rect(x + 84, y - 16, 9, 32, fill=(255, 255, 255), stroke=BLACK, width=1.0)
        c.rect(x + 106, y - 28, 24, 56, fill=(255, 255, 255), stroke=BLACK, width=1.1)
        for dy in (-18, 18):
            c.circle(x + 118, y + dy, 7, stroke=BLACK, width=0.8)
        c.rect(x + 146, y - 11, 92, 22, fill=(255, 255, 255), stroke=BLACK, width=1.1)
        c.rect(x + 176, y - 15, 30, 8, fill=(200, 200, 200), stroke=BLACK, width=0.8)
        c.rect(x + 254, y - 28, 24, 56, fill=(255, 255, 255), stroke=BLACK, width=1.1)
        for dy in (-18, 18):
            c.circle(x + 266, y + dy, 7, stroke=BLACK, width=0.8)
        c.rect(x + 294, y - 40, 16, 80, fill=(255, 255, 255), stroke=BLACK, width=1.1)
        for k in range(8):
            c.line(x + 294, y - 38 + 10.5 * k, x + 310, y - 32 + 10.5 * k, width=0.4)
        c.polygon(
            [(x + 326, y - 12), (x + 346, y - 12), (x + 354, y), (x + 346, y + 12), (x + 326, y + 12)],
            fill=(255, 255, 255),
            stroke=BLACK,
        )
        for number, at, up in [
            (1, 18, 52),
            (2, 88, 16),
            (3, 118, 28),
            (4, 160, 11),
            (5, 191, 15),
            (6, 266, 28),
            (7, 302, 40),
            (8, 340, 12),
        ]:
            side = -1 if number % 2 else 1
            self.callout(number, x + at + 12, y + side * 92, x + at, y + side * up)
        self.flow.y += 236

    def wiring(self, _: str) -> None:
        """Figure 5: block diagram of the control circuit."""
        c, x, y = self.canvas, 70.0, self.flow.y + 14
        blocks = [
            ("MAINS\nSWITCH S1", 0, 0),
            ("FUSES\nF1 F2 F3", 130, 0),
            ("CONTACTOR\nK1", 260, 0),
            ("GUARD\nSWITCH S4", 0, 110),
            ("STOP\nBUTTON S2", 130, 110),
            ("MOTOR M1\n1.1 kW", 260, 110),
        ]
        for text, bx, by in blocks:
            c.rect(x + bx, y + by, 96, 48, stroke=BLACK, width=1.1)
            c.font("helvetica", "B", 8.5)
            for i, part in enumerate(text.split("\n")):
                c.text(x + bx + 48, y + by + 21 + 12 * i, part, align="C")
        for x1, y1, x2, y2 in [(96, 24, 130, 24), (226, 24, 260, 24), (308, 48, 308, 110), (96, 134, 130, 134)]:
            c.arrow(x + x1, y + y1, x + x2, y + y2, BLACK)
        c.polyline([(x + 178, y + 110), (x + 178, y + 78), (x + 286, y + 78), (x + 286, y + 54)], BLACK, 0.9)
        c.arrow(x + 286, y + 56, x + 286, y + 48, BLACK)
        c.font("helvetica", "", 7.5)
        c.text(x + 190, y + 74, "24 V control")
        c.text(x + 312, y + 84, "415 V")
        self.flow.y += 184

    def guide(self, _: str) -> None:
        """Figure 4: clearance of the blade guides."""
        c, x, y = self.canvas, 130.0, self.flow.y + 10
        c.rect(x + 100, y, 6, 130, fill=(150, 150, 150), stroke=BLACK)
        c.rect(x + 20, y + 40, 74, 40, stroke=BLACK, width=1.1)
        c.rect(x + 112, y + 40, 74, 40, stroke=BLACK, width=1.1)
        c.circle(x + 103, y + 146, 16, stroke=BLACK, width=1.1)
        c.font("helvetica", "", 8.5)
        c.text(x + 57, y + 64, "GUIDE A", align="C")
        c.text(x + 149, y + 64, "GUIDE B", align="C")
        c.arrow(x + 60, y + 20, x + 94, y + 20, BLACK)
        c.arrow(x + 146, y + 20, x + 112, y + 20, BLACK)
        c.text(x + 152, y + 23, "0.04 mm each side")
        c.text(x + 126, y + 150, "backing roller: 0.15 mm behind blade")
        self.flow.y += 178


def draw() -> Canvas:
    manual = Manual()
    manual.flow.render(content("service_manual.md"))
    return manual.canvas


RECIPE = Recipe(
    "service_manual.pdf", "scanned manual", draw, lambda canvas: scanned(canvas.to_bytes(), seed=350, quality=42)
)
