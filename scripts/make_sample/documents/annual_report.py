"""The annual report: 40 pages, roman-numbered front matter, statements, segment notes and charts."""

from __future__ import annotations

from dataclasses import replace

from .. import charts
from ..canvas import GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..tables import draw_table
from . import annual_figures as fig

NAVY: RGB = (16, 52, 84)
TEAL: RGB = (46, 134, 130)
SAND: RGB = (231, 222, 205)
THEME = Theme(
    body="fira",
    head="fira",
    size=10.3,
    leading=1.52,
    accent=NAVY,
    left=184,
    right=62,
    top=92,
    bottom=70,
    h1=23,
    h2=18,
    h3=11,
    h1_space=12,
)
FRONT = 6
ROMAN = ["i", "ii", "iii", "iv", "v", "vi"]
COMPANY = "Northmere Flow Systems plc"


def printed(page: int) -> str:
    """The number printed on a physical page."""
    return ROMAN[page - 1] if page <= FRONT else str(page - FRONT)


class Report:
    """The report's page furniture and its directives."""

    def __init__(self, contents: list[tuple[int, str, int]]) -> None:
        self.contents = contents
        self.canvas = Canvas(f"{COMPANY} – Annual Report 2024")
        self.canvas.on_page = self.furniture
        self.section = "Overview"
        self.bare = False
        self.flow = Flow(
            self.canvas,
            THEME,
            {
                "cover": self.cover,
                "contents": self.table_of_contents,
                "divider": self.divider,
                "side": self.side,
                "figures": self.headline_figures,
                "chart": self.chart,
                "wide": self.wide,
                "narrow": self.narrow,
                "statement": self.statement,
                "segments": self.segments,
                "model": self.model,
                "section": self.set_section,
                "space": lambda a: setattr(self.flow, "y", self.flow.y + float(a)),
                "mark": self.canvas.mark,
            },
        )

    def set_section(self, name: str) -> None:
        self.section = name

    def furniture(self) -> None:
        if self.bare:
            return
        c, page = self.canvas, self.canvas.page
        c.font("fira", "", 7.6)
        c.text(62, 44, COMPANY, GREY)
        c.text(c.width - 62, 44, self.section, TEAL, "R")
        c.line(62, 51, c.width - 62, 51, RULE, 0.5)
        c.text(62, c.height - 36, "Annual Report and Accounts 2024", GREY)
        c.font("fira", "B", 8.5)
        c.text(c.width - 62, c.height - 36, printed(page), NAVY, "R")

    def plain_page(self) -> None:
        self.bare = True
        self.flow.new_page()
        self.bare = False

    def cover(self, _: str) -> None:
        self.plain_page()
        c = self.canvas
        c.rect(0, 0, c.width, c.height, fill=NAVY)
        for i in range(11):
            shade = (16 + 6 * i, 52 + 9 * i, 84 + 7 * i)
            points = [(x, 470 + 26 * i + 60 * ((x / 600) ** 2) - (x / (7 + i))) for x in range(0, 601, 20)]
            c.polygon([(0, c.height), *[(float(x), y) for x, y in points], (c.width + 10, c.height)], fill=shade)
        c.font("fira", "B", 15)
        c.text(62, 90, "NORTHMERE", WHITE)
        c.font("fira", "", 15)
        c.text(166, 90, "Flow Systems plc", WHITE)
        c.font("fira", "B", 40)
        c.text(62, 250, "Every litre", WHITE)
        c.text(62, 296, "accounted for", WHITE)
        c.font("fira", "", 15)
        c.text(62, 340, "Annual Report and Accounts", SAND)
        c.text(62, 360, "for the year ended 31 December 2024", SAND)

    def table_of_contents(self, _: str) -> None:
        flow = self.flow
        for level, title, page in self.contents:
            if level > 2 or page <= 3:
                continue
            c, size = self.canvas, 11.0 if level == 1 else 9.6
            if level == 1:
                flow.y += 7
            c.font("fira", "B" if level == 1 else "", size)
            c.text(184 if level == 1 else 198, flow.y + size, title, NAVY if level == 1 else THEME.ink)
            c.text(c.width - 62, flow.y + size, printed(page), NAVY, "R")
            c.line(184, flow.y + size + 4.5, c.width - 62, flow.y + size + 4.5, RULE, 0.35)
            flow.y += size * 1.62

    def divider(self, argument: str) -> None:
        title, _, items = argument.partition(":")
        self.section = title
        self.plain_page()
        c = self.canvas
        c.bookmark(1, title)
        c.rect(0, 0, c.width, c.height, fill=LIGHT)
        c.rect(0, 0, 150, c.height, fill=TEAL)
        c.font("fira", "B", 34)
        c.text(184, 240, title, NAVY)
        c.font("fira", "", 12)
        for i, item in enumerate(items.split(";")):
            c.text(184, 290 + 24 * i, item.strip(), GREY)
            c.line(184, 297 + 24 * i, c.width - 62, 297 + 24 * i, RULE, 0.4)
        c.font("fira", "B", 8.5)
        c.text(c.width - 62, c.height - 36, printed(c.page), NAVY, "R")

    def side(self, argument: str) -> None:
        """A key fact in the left margin: `value; what it is`, beside the text that follows."""
        value, _, label = argument.partition(";")
        c, y = self.canvas, self.flow.y
        c.line(62, y + 2, 164, y + 2, TEAL, 1.4)
        c.font("fira", "B", 21)
        c.text(62, y + 27, value, TEAL)
        c.font("fira", "", 8)
        for i, part in enumerate(label.strip().split("/")):
            c.text(62, y + 40 + 11 * i, part.strip(), GREY)

    def headline_figures(self, _: str) -> None:
        cells = [
            ("£555.5m", "Revenue (2023: £512.0m)"),
            ("£68.2m", "Operating profit (2023: £58.0m)"),
            ("38.4p", "Earnings per share (2023: 30.9p)"),
            ("14.0p", "Dividend for the year (2023: 12.0p)"),
            ("3,412", "Average employees (2023: 3,286)"),
            ("£93.8m", "Net debt with leases (2023: £126.6m)"),
        ]
        c, y = self.canvas, self.flow.y
        for i, (value, label) in enumerate(cells):
            x, top = 62 + (i % 3) * 160, y + (i // 3) * 92
            c.rect(x, top, 150, 80, fill=LIGHT, radius=4)
            c.font("fira", "B", 24)
            c.text(x + 12, top + 38, value, NAVY)
            c.font("fira", "", 7.6)
            c.text(x + 12, top + 60, label, GREY)
        self.flow.y += 200

    def wide(self, _: str) -> None:
        self.flow.margins(62, 62)

    def narrow(self, _: str) -> None:
        self.flow.margins(184, 62)

    def statement(self, name: str) -> None:
        self.flow.theme = replace(self.flow.theme, size=10.6)
        self.flow.render(fig.STATEMENTS[name])
        self.flow.theme = replace(self.flow.theme, size=10.3)

    def segments(self, name: str) -> None:
        rows = (
            fig.by_year(fig.REVENUE, "Group revenue")
            if name == "revenue"
            else fig.by_year(fig.PROFIT, "Operating profit")
        )
        draw_table(self.flow, rows, size=8.8)

    def model(self, _: str) -> None:
        """The business model: a loop of four activities around the customer."""
        c, x, y = self.canvas, 62.0, self.flow.y + 6
        steps = [
            ("Design", "Meters, valves and", "software in one team"),
            ("Build", "Four plants on", "two continents"),
            ("Install", "1,140 engineers", "and partner crews"),
            ("Look after", "Contracts of five", "to fifteen years"),
        ]
        for i, (name, first, second) in enumerate(steps):
            left = x + i * 121
            c.rect(left, y, 104, 86, fill=(NAVY, TEAL, (196, 122, 60), (120, 76, 100))[i], radius=6)
            c.font("fira", "B", 13)
            c.text(left + 52, y + 32, name, WHITE, "C")
            c.font("fira", "", 8.2)
            c.text(left + 52, y + 52, first, WHITE, "C")
            c.text(left + 52, y + 64, second, WHITE, "C")
            if i < 3:
                c.arrow(left + 106, y + 43, left + 119, y + 43)
        c.polyline([(x + 415, y + 90), (x + 415, y + 118), (x + 52, y + 118), (x + 52, y + 96)], GREY, 0.9)
        c.arrow(x + 52, y + 100, x + 52, y + 90)
        c.font("fira", "", 8.2)
        c.text(x + 233, y + 131, "Field data returns to the design teams every night", GREY, "C")
        self.flow.y += 158

    def chart(self, name: str) -> None:
        flow, c = self.flow, self.canvas
        height = 236.0 if name in ("metering", "valves", "services", "digital", "leakage", "regions") else 180.0
        flow.need(height + 30)
        box = Box(
            flow.x, flow.y, flow.column_width, height, "fira", 7.8, (NAVY, TEAL, (224, 142, 69), (158, 85, 122))
        )
        if name == "revenue":
            charts.bars(c, box, fig.YEARS, fig.REVENUE, title="Revenue by segment", unit="£ million", stacked=True)
        elif name == "margin":
            rates = {
                n: [round(100 * p / r, 1) for p, r in zip(fig.PROFIT[n], fig.REVENUE[n], strict=True)]
                for n in ("Metering", "Valves", "Services")
            }
            charts.lines(c, box, fig.YEARS, rates, title="Operating margin by segment", unit="%", values=True)
        elif name == "regions":
            shares = {n: round(100 * v / 555.5, 1) for n, v in fig.REGIONS.items()}
            charts.pie(c, box, shares, title="Revenue by region, 2024")
        elif name == "accidents":
            charts.lines(
                c, box, fig.YEARS, {"rate": fig.ACCIDENTS}, title="Lost-time accidents per million hours", values=True
            )
        elif name == "emissions":
            charts.bars(c, box, fig.YEARS, fig.EMISSIONS, title="Emissions", unit="thousand tonnes CO2e")
        elif name == "workforce":
            staff = {
                "Manufacturing": 1486.0,
                "Field engineering": 1140.0,
                "Research": 372.0,
                "Sales and office": 414.0,
            }
            charts.hbars(
                c,
                box,
                {k: [v] for k, v in staff.items()},
                ["people"],
                title="Employees by function, 2024",
                suffix="",
                label_width=0.24,
            )
        elif name == "share":
            quarters = [f"Q{q} {y}" for y in ("23", "24") for q in (1, 2, 3, 4)]
            prices = [402.0, 418, 396, 431, 455, 487, 472, 526]
            charts.lines(
                c,
                box,
                quarters,
                {"p": prices},
                title="Share price at quarter end",
                unit="pence",
                low=350,
                values=True,
            )
        else:
            year_data = {
                "valves": fig.REVENUE["Valves"],
                "metering": fig.REVENUE["Metering"],
                "services": fig.REVENUE["Services"],
                "digital": fig.REVENUE["Digital"],
                "leakage": fig.LEAKAGE,
            }[name]
            title = "Average leakage of monitored networks" if name == "leakage" else f"{name.title()} revenue"
            unit = "% of water put in" if name == "leakage" else "£ million"
            charts.bars(c, box, fig.YEARS, {name: year_data}, title=title, unit=unit)
        flow.y += height + 16


def _draw(contents: list[tuple[int, str, int]]) -> Canvas:
    report = Report(contents)
    for part in ("annual_report_1.md", "annual_report_2.md", "annual_report_3.md"):
        report.flow.render(content(part))
    report.canvas.labels = [
        {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 1},
        {"startpage": FRONT, "prefix": "", "style": "D", "firstpagenum": 1},
    ]
    return report.canvas


def draw() -> Canvas:
    """Two passes: the first finds the pages for the contents list."""
    return _draw(_draw([]).outline)


RECIPE = Recipe("annual_report.pdf", "financial report", draw)
