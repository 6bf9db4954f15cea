"""A user guide on small pages, with one page carrying a landscape table and /Rotate 90."""

from __future__ import annotations

from dataclasses import replace

from ..canvas import BLACK, GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..tables import draw_table

CORAL: RGB = (214, 72, 62)
WIDTH, HEIGHT = 420.0, 595.0
THEME = Theme(
    body="ubuntu",
    head="ubuntu",
    size=9.7,
    leading=1.52,
    accent=CORAL,
    left=46,
    right=46,
    top=62,
    bottom=52,
    h1=18,
    h2=16,
    h3=10.6,
)
MATERIALS = [
    ["Material", "Code", "Width, mm", "Density", "Speed, mm/s", "Cutter", "Outdoor", "Oven", "Freezer", "Remarks"],
    ["Paper, matt", "PM", "12–62", "60%", "100", "standard", "no", "no", "yes", "for post and shelves"],
    ["Paper, removable", "PR", "25–62", "60%", "100", "standard", "no", "no", "no", "comes off within 6 months"],
    [
        "Polyester, white",
        "YW",
        "12–50",
        "85%",
        "60",
        "standard",
        "{@ug-yw}5 years",
        "120 °C",
        "yes",
        "for type plates",
    ],
    ["Polyester, clear", "YC", "12–50", "90%", "60", "standard", "3 years", "120 °C", "yes", "use bold type"],
    [
        "Polyester, silver",
        "YS",
        "12–38",
        "95%",
        "{@ug-silver}45",
        "standard",
        "5 years",
        "150 °C",
        "yes",
        "dark print only",
    ],
    ["Fabric, sew-in", "FS", "12–25", "100%", "40", "none", "washable", "no", "no", "40 washes at 60 °C"],
    ["Fabric, iron-on", "FI", "12–25", "100%", "40", "none", "washable", "iron", "no", "25 washes at 40 °C"],
    ["Linerless paper", "PL", "38–62", "65%", "80", "linerless", "no", "no", "yes", "clean cutter weekly"],
    ["Cable wrap", "CW", "25–38", "90%", "60", "standard", "2 years", "80 °C", "yes", "clear tail 20 mm"],
    ["Tamper void", "TV", "25–50", "80%", "60", "standard", "1 year", "no", "yes", "leaves a pattern"],
]


class Guide:
    def __init__(self) -> None:
        self.canvas = Canvas("Lumen P2 label printer: user guide", WIDTH, HEIGHT)
        self.canvas.on_page = self.furniture
        self.landscape = False
        self.flow = Flow(
            self.canvas,
            THEME,
            {
                "cover": self.cover,
                "parts": self.parts,
                "display": self.display,
                "rotated": self.rotated,
                "mark": self.canvas.mark,
            },
        )

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1 or self.landscape:
            return
        c.rect(46, 34, 20, 3, fill=CORAL)
        c.font("ubuntu", "", 7.6)
        c.text(74, 38, "Lumen P2 user guide", GREY)
        c.font("ubuntu", "B", 8.5)
        c.text(WIDTH - 46 if c.page % 2 else 46, HEIGHT - 26, str(c.page), CORAL, "R" if c.page % 2 else "L")

    def printer(self, x: float, y: float, s: float) -> None:
        c = self.canvas
        c.rect(x, y, 110 * s, 76 * s, fill=(236, 238, 240), stroke=BLACK, width=1.1, radius=10 * s)
        c.rect(x + 8 * s, y + 8 * s, 94 * s, 22 * s, fill=WHITE, stroke=GREY, radius=4 * s)
        c.rect(x + 20 * s, y + 42 * s, 52 * s, 5 * s, fill=BLACK)
        c.rect(x + 24 * s, y + 47 * s, 44 * s, 26 * s, fill=WHITE, stroke=GREY)
        c.circle(x + 90 * s, y + 54 * s, 8 * s, fill=WHITE, stroke=CORAL, width=2.4 * s)

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, WIDTH, HEIGHT, fill=LIGHT)
        c.rect(0, 0, WIDTH, 14, fill=CORAL)
        c.font("ubuntu", "B", 40)
        c.text(46, 120, "Lumen P2")
        c.font("ubuntu", "", 17)
        c.text(46, 148, "Label printer", GREY)
        self.printer(110, 220, 1.9)
        c.font("ubuntu", "B", 13)
        c.text(46, 510, "User guide", CORAL)
        c.font("ubuntu", "", 9)
        c.text(46, 528, "Edition 4, for firmware 2.3 and later", GREY)

    def parts(self, _: str) -> None:
        c, f = self.canvas, self.flow
        y = f.y
        c.rect(f.x, y, f.column_width, 130, fill=LIGHT, radius=5)
        self.printer(f.x + 18, y + 26, 0.9)
        c.rect(f.x + 140, y + 60, 46, 30, stroke=BLACK, radius=3)
        c.circle(f.x + 214, y + 72, 15, stroke=BLACK)
        c.circle(f.x + 214, y + 72, 6, stroke=BLACK)
        c.polyline([(f.x + 244, y + 50), (f.x + 262, y + 84), (f.x + 274, y + 50)], BLACK, 1.6)
        c.rect(f.x + 284, y + 54, 8, 38, fill=GREY)
        c.circle(f.x + 310, y + 72, 13, fill=WHITE, stroke=CORAL, width=4)
        for k, x in enumerate((66, 163, 214, 258, 288, 310)):
            c.font("ubuntu", "B", 9)
            c.text(f.x + x, y + 118, str(k + 1), CORAL, "C")
        f.y += 138

    def display(self, _: str) -> None:
        c, f = self.canvas, self.flow
        y = f.y
        c.rect(f.x + 40, y, 240, 110, fill=(236, 238, 240), stroke=BLACK, radius=8)
        c.rect(f.x + 56, y + 14, 130, 60, fill=(40, 50, 60), radius=3)
        c.font("ubuntu", "", 9)
        c.text(f.x + 64, y + 34, "PM 62 mm", WHITE)
        c.text(f.x + 64, y + 52, "14.2 m left", (150, 220, 170))
        for k, name in enumerate("ABC"):
            c.circle(f.x + 72 + 44 * k, y + 92, 9, fill=WHITE, stroke=BLACK)
            c.text(f.x + 72 + 44 * k, y + 95, name, BLACK, "C")
        c.circle(f.x + 236, y + 54, 25, fill=WHITE, stroke=CORAL, width=5)
        c.text(f.x + 236, y + 57, "D", BLACK, "C")
        f.y += 120

    def rotated(self, _: str) -> None:
        """A landscape table on a portrait sheet: drawn turned, and the page carries /Rotate 90."""
        c, f = self.canvas, self.flow
        self.landscape = True
        f.canvas.height = WIDTH
        c.add_page(HEIGHT, WIDTH)
        c.bookmark(1, "Materials")
        f.y, f.column, f.theme = 66, 0, replace(THEME, left=40, right=40)
        c.width = HEIGHT
        c.font("ubuntu", "B", 16)
        c.text(40, 50, "Materials and settings", CORAL)
        draw_table(f, MATERIALS, size=8.7, fill=CORAL)
        c.font("ubuntu", "", 8)
        c.text(
            40,
            f.y + 10,
            "Density is the factory setting at 23 °C. Outdoor life in a temperate climate, facing south.",
            GREY,
        )
        c.line(40, WIDTH - 40, HEIGHT - 40, WIDTH - 40, RULE)
        c.font("ubuntu", "B", 8.5)
        c.text(HEIGHT - 40, WIDTH - 26, str(c.page), CORAL, "R")
        c.mark("ug-materials")
        self.rotated_page = c.page
        c.width, c.height, f.theme, self.landscape = WIDTH, HEIGHT, THEME, False


def draw() -> Canvas:
    guide = Guide()
    guide.flow.render(content("user_guide.md"))
    guide.canvas.turned.append(guide.rotated_page)
    return guide.canvas


RECIPE = Recipe("user_guide.pdf", "user guide", draw)
