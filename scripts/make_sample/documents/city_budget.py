"""A municipal budget: parts A to C with their own printed numbers (A-1, B-1 ...) and PDF page labels."""

from __future__ import annotations

from .. import charts
from ..canvas import GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme
from ..tables import draw_table

BROWN: RGB = (120, 62, 30)
COLORS: tuple[RGB, ...] = (BROWN, (206, 160, 88), (90, 120, 110), (150, 150, 150), (70, 90, 140))
THEME = Theme(
    body="noto",
    head="noto",
    size=11,
    leading=1.55,
    accent=BROWN,
    left=66,
    right=66,
    top=88,
    bottom=66,
    h1=20,
    h2=15,
    h3=11,
)
PARTS = {"A": 5, "B": 8, "C": 3}
# Adopted spending in thousand crowns: staff, supplies, contracts, capital for 2024 and 2025; posts for 2024 and 2025.
DEPARTMENTS: dict[str, tuple[list[int], list[int], tuple[float, float]]] = {
    "Schools and nurseries": ([41250, 3820, 6190, 2400], [43980, 3910, 6655, 5100], (812.5, 826.0)),
    "Streets and bridges": ([9870, 4410, 7720, 12800], [10140, 4650, 8905, 9350], (171.0, 168.5)),
    "Parks and cemeteries": ([6120, 1180, 940, 850], [6405, 1215, 1010, 1630], (118.0, 121.0)),
    "Fire and rescue": ([15430, 1290, 610, 1950], [16120, 1340, 655, 3720], (236.0, 239.0)),
    "Water and drains": ([7340, 2890, 3150, 8100], [7585, 3020, 3480, 10450], (129.5, 129.5)),
    "Library and museum": ([4980, 1020, 730, 240], [5075, 1060, 790, 1980], (92.0, 90.5)),
    "Housing and care": ([18760, 2240, 11900, 1300], [19910, 2315, 13140, 900], (344.0, 352.0)),
    "Town hall and data": ([12240, 1560, 4830, 1700], [12385, 1590, 5720, 2150], (198.0, 195.0)),
}


def printed(page: int) -> str:
    for letter, count in PARTS.items():
        if page <= count:
            return f"{letter}-{page}"
        page -= count
    raise ValueError("more pages than parts have")


class Budget:
    def __init__(self) -> None:
        self.canvas = Canvas("City of Maren Ford: adopted budget 2025")
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {"cover": self.cover, "chart": self.chart, "dept": self.department, "mark": self.canvas.mark},
        )

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1:
            return
        label = printed(c.page)
        part = {"A": "Part A  Overview", "B": "Part B  Departments", "C": "Part C  Capital and debt"}[label[0]]
        c.rect(0, 0, 22, c.height, fill=COLORS[ord(label[0]) - 65])
        c.font("noto", "", 8)
        c.text(66, 50, "City of Maren Ford  |  Adopted budget 2025", GREY)
        c.text(c.width - 66, 50, part, GREY, "R")
        c.line(66, 58, c.width - 66, 58, RULE, 0.6)
        c.font("noto", "B", 9)
        c.text(c.width / 2, c.height - 36, label, BROWN, "C")

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, c.width, c.height, fill=(247, 241, 230))
        c.rect(0, 300, c.width, 170, fill=BROWN)
        c.font("noto", "B", 34)
        c.text(66, 372, "Adopted budget 2025", WHITE)
        c.font("noto", "", 16)
        c.text(66, 408, "with plan for 2026 and 2027", WHITE)
        c.font("noto", "B", 16)
        c.text(66, 110, "CITY OF MAREN FORD", BROWN)
        c.font("noto", "", 10)
        c.text(66, 520, "Adopted by the council on 12 December 2024", GREY)
        c.text(66, 538, "Amounts in thousand crowns unless stated otherwise", GREY)
        for k in range(5):
            c.rect(66 + 70 * k, 250 - 22 * k, 50, 50 + 22 * k, fill=(206 - 14 * k, 160 - 16 * k, 88 - 8 * k))

    def chart(self, name: str) -> None:
        f, c = self.flow, self.canvas
        f.need(240)
        box = Box(f.x, f.y, f.column_width, 216, "noto", 8, COLORS)
        if name == "income":
            charts.pie(
                c,
                box,
                {
                    "Property tax": 43.0,
                    "State grants": 22.0,
                    "Fees and charges": 19.0,
                    "Business tax": 12.0,
                    "Other": 4.0,
                },
            )
        elif name == "spending":
            data = {n: [round(sum(v[1]) / 1000, 1)] for n, v in DEPARTMENTS.items()}
            charts.hbars(
                c, box, data, ["m"], title="Spending by department, 2025, million crowns", suffix="", label_width=0.27
            )
        elif name == "debt":
            charts.lines(
                c,
                box,
                ["2019", "2020", "2021", "2022", "2023", "2024", "2025", "2026", "2027"],
                {"Debt": [61.2, 66.8, 70.4, 68.1, 64.9, 72.3, 81.5, 84.0, 79.6]},
                unit="million crowns",
                low=40,
                values=True,
            )
        f.y += 236

    def department(self, name: str) -> None:
        """The page of one department: table of four kinds of spending, posts, chart."""
        f, c = self.flow, self.canvas
        before, now, posts = DEPARTMENTS[name]
        slug = name.split()[0].lower()
        rows = [["Thousand crowns", "Adopted 2024", "Adopted 2025", "Change"]]
        for kind, a, b in zip(("Staff", "Supplies", "Contracts", "Capital"), before, now, strict=True):
            rows.append([kind, f"{a:,}", f"{{@cb-{slug}-{kind.lower()}}}{b:,}", f"{100 * (b - a) / a:+.1f}%"])
        total = sum(now), sum(before)
        rows.append(["*Total", f"{total[1]:,}", f"{total[0]:,}", f"{100 * (total[0] - total[1]) / total[1]:+.1f}%"])
        rows.append(
            [
                "Posts (full-time)",
                f"{posts[0]:.1f}",
                f"{{@cb-{slug}-posts}}{posts[1]:.1f}",
                f"{posts[1] - posts[0]:+.1f}",
            ]
        )
        draw_table(f, rows, size=9.8, fill=BROWN)
        box = Box(f.x, f.y, f.column_width, 246, "noto", 8, COLORS)
        charts.bars(
            c,
            box,
            ["Staff", "Supplies", "Contracts", "Capital"],
            {"2024": before, "2025": now},
            unit="thousand crowns",
        )
        c.rect(f.x, f.y + 254, f.column_width, 1, fill=LIGHT)
        f.y += 272


def draw() -> Canvas:
    budget = Budget()
    budget.flow.render(content("city_budget.md"))
    start = 0
    for letter, count in PARTS.items():
        budget.canvas.labels.append({"startpage": start, "prefix": f"{letter}-", "style": "D", "firstpagenum": 1})
        start += count
    return budget.canvas


RECIPE = Recipe("city_budget.pdf", "municipal budget", draw)
