"""A research article in two columns: numbered figures, tables, equations and an appendix of site data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .. import charts
from ..canvas import BLACK, GREY, LIGHT, RGB, RULE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..tables import draw_table

WINE: RGB = (122, 32, 50)
THEME = Theme(
    body="times",
    head="helvetica",
    size=11.2,
    leading=1.4,
    accent=BLACK,
    justify=True,
    left=54,
    right=54,
    top=72,
    bottom=62,
    columns=2,
    gutter=22,
    indent=1,
    h1=17,
    h2=11,
    h3=10,
    h1_space=8,
)
COLORS: tuple[RGB, ...] = ((31, 73, 125), (192, 80, 50), (110, 150, 70), (120, 90, 150), (90, 90, 90))
APIARIES = (8, 10, 9, 9)
HIVES = (52, 74, 58, 64)
SWARMS = {"2022": [31, 44, 27, 38], "2023": [36, 29, 41, 47]}
VALLEYS = ("Arden", "Breck", "Corrie", "Dunmere")


class Article:
    def __init__(self) -> None:
        self.canvas = Canvas("Listening for swarms: two seasons of hive acoustics at 36 apiaries", 612, 792)
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {
                "title": self.title,
                "fig": self.figure,
                "sites": self.sites,
                "mark": self.canvas.mark,
                "plain": self.plain,
            },
        )

    def furniture(self) -> None:
        c, page = self.canvas, self.canvas.page
        c.font("times", "I", 8.8)
        if page == 1:
            c.text(54, 46, "Annals of Field Bioacoustics 11 (2024) 201–220")
            c.text(558, 46, "Open access", WINE, "R")
        elif page % 2:
            c.text(54, 46, "Listening for swarms")
        else:
            c.text(558, 46, "Annals of Field Bioacoustics 11 (2024)", align="R")
        c.line(54, 52, 558, 52, RULE, 0.5)
        c.font("times", "", 9.5)
        c.text(306, 766, str(200 + page), align="C")

    def title(self, _: str) -> None:
        c, flow = self.canvas, self.flow
        flow.new_page()
        c.bookmark(1, "Listening for swarms")
        c.font("times", "B", 21)
        c.text(54, 102, "Listening for swarms: two seasons of hive acoustics")
        c.text(54, 127, "at 36 apiaries")
        c.font("times", "", 10.5)
        c.text(
            54,
            152,
            "Institute for Upland Ecology, Dunmere; and Association of Beekeepers of the Four Valleys",
        )
        c.font("times", "I", 9)
        c.text(54, 168, "Received 4 March 2024; accepted 19 August 2024; published 2 September 2024", GREY)
        flow.theme = replace(THEME, columns=1, left=72, right=72, size=9.8)
        c.line(54, 182, 558, 182, BLACK, 0.8)
        flow.y = 190
        flow.paragraph("**Abstract.** " + content("research_abstract.md").replace("\n", " "))
        flow.paragraph("**Keywords:** honeybee, swarming, acoustic monitoring, low-cost sensor, early warning")
        c.line(54, flow.y + 2, 558, flow.y + 2, BLACK, 0.8)
        flow.y += 14
        flow.theme = THEME
        flow.columns(2)

    def plain(self, _: str) -> None:
        self.flow.columns(1)

    def box(self, height: float) -> Box:
        self.flow.need(height + 44)
        return Box(self.flow.x, self.flow.y + 4, self.flow.column_width, height - 6, "helvetica", 7.6, COLORS)

    def figure(self, name: str) -> None:
        heights = {"hive": 214.0, "map": 204.0, "pipeline": 156.0}
        box = self.box(heights.get(name, 224.0))
        getattr(self, f"fig_{name}")(box)
        self.canvas.mark(f"ra-fig-{name}")
        self.flow.y += heights.get(name, 224.0)

    def fig_hive(self, b: Box) -> None:
        c = self.canvas
        x, y = b.x + 62, b.y + 24
        c.polygon([(x - 8, y + 16), (x + 128, y + 16), (x + 118, y), (x + 2, y)], fill=(210, 210, 205), stroke=BLACK)
        for i in range(3):
            c.rect(x, y + 16 + 44 * i, 120, 44, fill=(244, 232, 205), stroke=BLACK, width=0.9)
        for k in range(8):
            c.line(x + 11 + 14 * k, y + 64, x + 11 + 14 * k, y + 142, GREY, 1.2)
        c.rect(x - 4, y + 148, 128, 8, fill=(200, 190, 170), stroke=BLACK)
        c.circle(x + 60, y + 96, 5, fill=WINE)
        c.rect(x + 132, y + 26, 22, 30, fill=LIGHT, stroke=BLACK)
        c.polyline([(x + 65, y + 96), (x + 126, y + 96), (x + 143, y + 56)], WINE, 0.9)
        c.circle(x + 30, y + 36, 4, fill=(31, 73, 125))
        c.font("helvetica", "", 7)
        for text, tx, ty, px, py in [
            ("A  microphone between combs", b.x, y + 176, x + 58, y + 100),
            ("B  temperature probe", b.x - 2, y - 8, x + 28, y + 34),
            ("C  logger and battery", b.x + 160, y - 8, x + 143, y + 26),
            ("D  load cell under floor", b.x + 150, y + 176, x + 110, y + 154),
        ]:
            c.text(tx, ty, text)
            c.line(tx + 40, ty + (2 if ty < y + 50 else -8), px, py, GREY, 0.5)

    def fig_map(self, b: Box) -> None:
        c, rng = self.canvas, np.random.default_rng(36)
        c.rect(b.x, b.y, b.w, b.h - 4, fill=(246, 246, 240), stroke=GREY)
        for i, (valley, color) in enumerate(zip(VALLEYS, COLORS, strict=False)):
            path = [(b.x + 12 + t * 24, b.y + 26 + 44 * i + 12 * math.sin(t * 0.8 + i)) for t in range(10)]
            c.polyline(path, (150, 180, 210), 2.2)
            for px, py in path[: APIARIES[i]]:
                dx, dy = rng.uniform(-6, 6, 2)
                c.circle(px + float(dx), py + float(dy) * 1.6, 2.6, fill=color)
            c.font("helvetica", "B", 7.4)
            c.text(b.x + b.w - 6, b.y + 17 + 44 * i, f"{valley} ({APIARIES[i]})", color, "R")
        c.line(b.x + 14, b.y + b.h - 14, b.x + 64, b.y + b.h - 14, BLACK, 1)
        c.font("helvetica", "", 7)
        c.text(b.x + 39, b.y + b.h - 18, "10 km", align="C")

    def fig_spectrum(self, b: Box) -> None:
        hz = list(range(100, 601, 20))
        calm = [round(34 + 16 * math.exp(-(((f - 250) / 60) ** 2)) - f / 60, 1) for f in hz]
        warn = [
            round(35 + 12 * math.exp(-(((f - 255) / 60) ** 2)) + 14 * math.exp(-(((f - 410) / 32) ** 2)) - f / 60, 1)
            for f in hz
        ]
        charts.lines(
            self.canvas,
            b,
            [str(f) for f in hz],
            {"28 days before": calm, "1 day before swarming": warn},
            unit="Level, dB",
            low=20,
            every=5,
        )

    def fig_pipeline(self, b: Box) -> None:
        c = self.canvas
        steps = [
            "30 s of sound,\nevery 15 min",
            "Band levels,\n24 values",
            "Hourly\nmedian",
            "Gradient-\nboosted trees",
            "Score,\n0 to 1",
        ]
        for i, step in enumerate(steps):
            x, y = b.x + (i % 3) * 84, b.y + 10 + (i // 3) * 70
            c.rect(x, y, 68, 40, fill=LIGHT, stroke=COLORS[0], radius=3)
            c.font("helvetica", "", 7)
            for k, part in enumerate(step.split("\n")):
                c.text(x + 34, y + 18 + 9 * k, part, align="C")
            if i in (0, 1, 3):
                c.arrow(x + 68, y + 20, x + 84, y + 20)
        c.polyline(
            [(b.x + 202, b.y + 50), (b.x + 202, b.y + 64), (b.x + 34, b.y + 64), (b.x + 34, b.y + 74)], GREY, 0.9
        )
        c.arrow(b.x + 34, b.y + 72, b.x + 34, b.y + 80)

    def fig_roc(self, b: Box) -> None:
        xs = [i / 20 for i in range(21)]
        curves = {
            "Sound and weight": [round(v**0.16, 3) for v in xs],
            "Sound": [round(v**0.22, 3) for v in xs],
            "Weight": [round(v**0.42, 3) for v in xs],
            "Date only": [round(v**0.62, 3) for v in xs],
        }
        charts.lines(self.canvas, b, [f"{v:.2g}" for v in xs], curves, unit="Swarms found", every=4)

    def fig_lead(self, b: Box) -> None:
        charts.bars(
            self.canvas,
            b,
            ["1", "2", "3", "5", "7", "10", "14"],
            {"Sound": [91, 86, 79, 68, 57, 41, 28], "Weight": [74, 58, 49, 33, 25, 20, 19]},
            unit="Swarms found at one false alarm a month, %",
        )

    def fig_valleys(self, b: Box) -> None:
        charts.bars(self.canvas, b, list(VALLEYS), SWARMS, unit="Swarms")

    def fig_temperature(self, b: Box) -> None:
        rng = np.random.default_rng(7)
        groups = {}
        for name, base in (("Swarmed", 396), ("Did not swarm", 262)):
            t = rng.uniform(32.2, 35.8, 44)
            groups[name] = [
                (float(a), float(base + 9 * (a - 34) + e)) for a, e in zip(t, rng.normal(0, 16, 44), strict=True)
            ]
        charts.scatter(
            self.canvas, b, groups, unit="Peak frequency, Hz", x_unit="Brood temperature, °C", x_low=32, low=200
        )

    def fig_battery(self, b: Box) -> None:
        charts.lines(
            self.canvas,
            b,
            ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep"],
            {"With panel": [100, 99, 98, 99, 98, 97, 95], "Battery only": [100, 88, 74, 61, 47, 35, 22]},
            unit="Charge, %",
        )

    def sites(self, argument: str) -> None:
        """An appendix table: a row an apiary, for one valley and season, and its swarms by month."""
        valley, season = argument.split()
        index, year = VALLEYS.index(valley), int(season) - 2022
        rng = np.random.default_rng(100 + 10 * index + year)
        count = APIARIES[index]
        hives = 4 + np.random.default_rng(index).multinomial(HIVES[index] - 4 * count, [1 / count] * count)
        swarms = rng.multinomial(SWARMS[season][index], [1 / count] * count)
        rows = [["Apiary", "Altitude, m", "Hives", "Swarms", "Found", "False alarms", "Hours recorded", "Gaps, %"]]
        for k in range(count):
            found = max(int(swarms[k]) - int(rng.integers(0, 3)), 0)
            rows.append(
                [
                    f"{valley[0]}{k + 1:02d}",
                    str(180 + 37 * k + 60 * index),
                    str(hives[k]),
                    str(swarms[k]),
                    str(found),
                    str(int(rng.integers(0, 6))),
                    f"{int(rng.integers(2100, 3600)):,}",
                    f"{rng.uniform(0.4, 9.0):.1f}",
                ]
            )
        draw_table(self.flow, rows, size=10)
        self.canvas.mark(f"ra-sites-{valley.lower()}-{season}")
        months = rng.multinomial(
            SWARMS[season][index], (0.22, 0.36, 0.24, 0.13, 0.05) if year == 0 else (0.04, 0.38, 0.30, 0.20, 0.08)
        )
        charts.bars(
            self.canvas,
            self.box(210),
            ["April/May", "late May", "June", "July", "August"],
            {"Swarms": [int(m) for m in months]},
            title=f"Swarms in {valley} by month, {season}",
        )
        self.flow.y += 216


def draw() -> Canvas:
    article = Article()
    article.flow.render(content("research_article.md"))
    article.flow.render(content("research_appendix.md"))
    return article.canvas


RECIPE = Recipe("research_article.pdf", "research article", draw)
