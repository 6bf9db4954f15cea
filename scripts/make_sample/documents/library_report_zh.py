"""A Chinese annual report of a public library, set in Droid Sans Fallback (subset)."""

from __future__ import annotations

from .. import charts
from ..canvas import GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme

RED: RGB = (160, 42, 38)
COLORS: tuple[RGB, ...] = (RED, (60, 110, 140), (214, 160, 70), (90, 140, 96), (130, 120, 140))
THEME = Theme(
    body="cjk",
    head="cjk",
    size=12.6,
    leading=1.85,
    accent=RED,
    left=74,
    right=74,
    top=92,
    bottom=74,
    indent=1,
    h1=21,
    h2=17,
    h3=13.5,
)
MONTHS = [f"{m}月" for m in range(1, 13)]


class Library:
    def __init__(self) -> None:
        self.canvas = Canvas("云溪市图书馆2024年度服务报告", language="zh")
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {"cover": self.cover, "chart": self.chart, "mark": self.canvas.mark, "plan": self.floor_plan},
        )

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1:
            return
        c.font("cjk", "", 9)
        c.text(74, 50, "云溪市图书馆", RED)
        c.text(c.width - 74, 50, "2024年度服务报告", GREY, "R")
        c.line(74, 57, c.width - 74, 57, RULE, 0.6)
        c.text(c.width / 2, c.height - 40, f"第 {c.page} 页", GREY, "C")

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, c.width, c.height, fill=(248, 244, 236))
        c.rect(60, 60, c.width - 120, c.height - 120, stroke=RED, width=1.2)
        for k in range(9):
            tall = 120 + (k * 37) % 70
            c.rect(170 + 29 * k, 560 - tall, 25, tall, fill=COLORS[k % 5])
        c.line(160, 560, 440, 560, RED, 2)
        c.font("cjk", "B", 30)
        c.text(c.width / 2, 200, "云溪市图书馆", RED, "C")
        c.font("cjk", "B", 22)
        c.text(c.width / 2, 250, "2024年度服务报告", align="C")
        c.font("cjk", "", 13)
        c.text(c.width / 2, 650, "二〇二五年三月", GREY, "C")

    def chart(self, name: str) -> None:
        f = self.flow
        f.need(220)
        box = Box(f.x, f.y, f.column_width, 190, "cjk", 9, COLORS)
        c = self.canvas
        if name == "visits":
            charts.lines(
                c,
                box,
                MONTHS,
                {
                    "2024年": [9.1, 7.4, 10.2, 10.8, 11.5, 12.6, 17.9, 18.4, 12.2, 11.7, 10.9, 10.3],
                    "2023年": [7.2, 7.9, 8.8, 9.3, 9.9, 11.0, 15.1, 15.6, 10.4, 10.1, 9.6, 9.0],
                },
                unit="万人次",
            )
        elif name == "collection":
            charts.pie(c, box, {"文学": 34.0, "少儿": 27.0, "科技": 16.0, "历史地理": 13.0, "其他": 10.0})
        elif name == "digital":
            charts.bars(
                c,
                box,
                ["2020", "2021", "2022", "2023", "2024"],
                {"电子书": [21, 26, 33, 41, 52], "有声书": [5, 9, 16, 28, 45]},
                unit="万次",
            )
        else:
            charts.hbars(
                c,
                box,
                {"总馆": [61.2], "东湖分馆": [28.7], "石桥分馆": [22.4], "新城分馆": [19.5], "流动书车": [11.2]},
                ["万人次"],
                suffix="",
                label_width=0.18,
            )
        f.y += 206

    def floor_plan(self, _: str) -> None:
        c, f = self.canvas, self.flow
        f.need(210)
        x, y = f.x, f.y
        rooms = [
            ("少儿阅览室", 0, 0, 170, 90),
            ("服务台", 180, 0, 90, 60),
            ("报刊区", 280, 0, 167, 90),
            ("自习室", 0, 100, 120, 80),
            ("电子阅览室", 130, 100, 150, 80),
            ("地方文献室", 290, 100, 157, 80),
        ]
        for name, dx, dy, w, h in rooms:
            c.rect(x + dx, y + dy, w, h, fill=LIGHT, stroke=GREY, width=1)
            c.font("cjk", "", 11)
            c.text(x + dx + w / 2, y + dy + h / 2 + 4, name, align="C")
        c.rect(x + 200, y + 62, 50, 5, fill=WHITE, stroke=RED)
        c.font("cjk", "", 9)
        c.text(x + 225, y + 82, "入口", RED, "C")
        f.y += 196


def draw() -> Canvas:
    library = Library()
    library.flow.render(content("library_report_zh.md"))
    return library.canvas


RECIPE = Recipe("library_report_zh.pdf", "annual report (Chinese)", draw)
