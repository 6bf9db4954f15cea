"""A survey report full of charts; its text layer carries the fi and fl ligatures."""

from __future__ import annotations

from .. import charts
from ..canvas import GREY, RGB, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme

VIOLET: RGB = (88, 60, 150)
COLORS: tuple[RGB, ...] = (VIOLET, (60, 160, 170), (236, 170, 60), (220, 96, 96), (140, 146, 156))
THEME = Theme(
    body="fira",
    head="fira",
    size=11.4,
    leading=1.52,
    accent=VIOLET,
    left=76,
    right=76,
    top=86,
    bottom=68,
    h1=22,
    h2=18,
    h3=11.5,
)
AGREE = ["agree", "partly", "disagree"]


class Survey:
    def __init__(self) -> None:
        self.canvas = Canvas("Working from anywhere? Survey of office work 2024", ligatures=True)
        self.canvas.on_page = self.furniture
        self.flow = Flow(self.canvas, THEME, {"cover": self.cover, "chart": self.chart, "mark": self.canvas.mark})

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1:
            return
        c.rect(0, 0, c.width, 26, fill=VIOLET)
        c.font("fira", "", 8)
        c.text(76, 17, "Working from anywhere?  Survey of office work 2024", WHITE)
        c.font("fira", "B", 9)
        c.text(c.width - 76, 17, str(c.page), WHITE, "R")
        c.font("fira", "", 7.5)
        c.text(76, c.height - 34, "Delta Institute for Work and Space, Garrow", GREY)

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, c.width, c.height, fill=VIOLET)
        for i in range(12):
            for j in range(7):
                shade = (i * 7 + j * 5) % 11
                c.circle(
                    70 + 42 * i, 420 + 46 * j, 6 + shade, fill=(104 + 6 * shade, 78 + 7 * shade, 164 + 4 * shade)
                )
        c.font("fira", "B", 36)
        c.text(70, 170, "Working from", WHITE)
        c.text(70, 212, "anywhere?", WHITE)
        c.font("fira", "", 15)
        c.text(70, 250, "Survey of office work 2024", WHITE)
        c.text(70, 274, "Findings from 3,204 employees and 188 firms", WHITE)

    def chart(self, name: str) -> None:
        f, c = self.flow, self.canvas
        f.need(292)
        b = Box(f.x, f.y, f.column_width, 264, "fira", 8.4, COLORS)
        if name == "days":
            charts.bars(
                c,
                b,
                ["0", "1", "2", "3", "4", "5"],
                {"2022": [22, 9, 18, 24, 11, 16], "2024": [27, 14, 26, 19, 6, 8]},
                title="Days a week worked at home",
                unit="% of employees",
            )
        elif name == "statements":
            charts.hbars(
                c,
                b,
                {
                    "I concentrate better at home": [61, 22, 17],
                    "I know what my team is doing": [48, 33, 19],
                    "My flat is suited to work": [54, 20, 26],
                    "I would change jobs to keep it": [37, 24, 39],
                    "New colleagues find their feet": [21, 34, 45],
                },
                AGREE,
                title="How far do you agree?",
                label_width=0.36,
            )
        elif name == "commute":
            charts.lines(
                c,
                b,
                ["<15", "15–30", "30–45", "45–60", ">60"],
                {"Wish": [1.4, 2.1, 2.7, 3.1, 3.6], "Actual": [1.0, 1.6, 2.0, 2.2, 2.4]},
                title="Days at home by time of travel (minutes, one way)",
                unit="days a week",
                values=True,
            )
        elif name == "desks":
            charts.bars(
                c,
                b,
                ["Finance", "Software", "Public", "Trade", "Health"],
                {"2020": [98, 94, 97, 95, 92], "2024": [66, 52, 88, 81, 90]},
                title="Desks per hundred office employees",
                unit="desks",
            )
        elif name == "firms":
            charts.pie(
                c,
                b,
                {
                    "Fixed days at the office": 41,
                    "Number of days, free choice": 33,
                    "No rule": 15,
                    "Always at the office": 11,
                },
                title="What rule applies in the firm?",
            )
        elif name == "meetings":
            charts.hbars(
                c,
                b,
                {"All in one room": [34], "All on screen": [29], "Mixed": [37]},
                ["m"],
                title="Meetings by form",
                label_width=0.25,
            )
        f.y += 284


def draw() -> Canvas:
    survey = Survey()
    survey.flow.render(content("survey_report.md"))
    return survey.canvas


RECIPE = Recipe("survey_report.pdf", "survey report", draw)
