"""A slide deck of 18 slides, 16:9, for a transport authority."""

from __future__ import annotations

from collections.abc import Sequence

from .. import charts
from ..canvas import BLACK, GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe

PLUM: RGB = (74, 32, 84)
ORANGE: RGB = (232, 119, 34)
MINT: RGB = (94, 176, 156)
SKY: RGB = (88, 140, 200)
COLORS = (PLUM, ORANGE, MINT, SKY, GREY)


class Deck:
    def __init__(self) -> None:
        self.c = Canvas("Line 4 extension: where we stand", 960, 540)

    def blank(self, title: str, fill: RGB | None = None) -> None:
        self.c.add_page()
        self.c.bookmark(1, title)
        if fill:
            self.c.rect(0, 0, 960, 540, fill=fill)

    def slide(self, title: str, subtitle: str = "") -> None:
        c = self.c
        self.blank(title)
        c.rect(0, 0, 14, 540, fill=PLUM)
        c.font("ubuntu", "B", 29)
        c.text(52, 66, title, PLUM)
        if subtitle:
            c.font("ubuntu", "", 15)
            c.text(52, 92, subtitle, GREY)
        c.line(52, 506, 908, 506, RULE, 0.7)
        c.font("ubuntu", "", 10)
        c.text(52, 524, "Ellmouth Transit Authority  |  Line 4 extension  |  Steering group, May 2025", GREY)
        c.font("ubuntu", "B", 11)
        c.text(908, 524, str(c.page), PLUM, "R")

    def bullets(
        self, items: Sequence[str], x: float = 60, y: float = 140, size: float = 19, step: float = 44
    ) -> None:
        c = self.c
        for item in items:
            c.circle(x + 5, y - size * 0.32, 4.5, fill=ORANGE)
            c.font("ubuntu", "", size)
            for k, part in enumerate(item.split("/")):
                c.text(x + 24, y + k * size * 1.25, part.strip())
            y += step + (item.count("/")) * size * 1.25

    def big(self, x: float, y: float, value: str, label: str, color: RGB = PLUM) -> None:
        c = self.c
        c.font("ubuntu", "B", 44)
        c.text(x, y, value, color)
        c.font("ubuntu", "", 14)
        for k, part in enumerate(label.split("/")):
            c.text(x, y + 26 + 18 * k, part.strip(), GREY)

    def box(self, x: float, y: float, w: float, h: float, size: float = 12.5) -> Box:
        return Box(x, y, w, h, "ubuntu", size, COLORS)

    def grid(
        self, rows: Sequence[Sequence[str]], widths: Sequence[float], x: float = 60, y: float = 128, row: float = 34
    ) -> None:
        c = self.c
        for r, cells in enumerate(rows):
            c.rect(x, y, sum(widths), row, fill=PLUM if r == 0 else (LIGHT if r % 2 else WHITE))
            at = x
            for k, cell in enumerate(cells):
                c.font("ubuntu", "B" if r == 0 else "", 14.5)
                color = WHITE if r == 0 else BLACK
                if k == 0:
                    c.text(at + 12, y + row * 0.64, cell, color)
                else:
                    c.text(at + widths[k] - 14, y + row * 0.64, cell, color, "R")
                at += widths[k]
            y += row


def opening(d: Deck) -> None:
    c = d.c
    d.blank("Line 4 extension: where we stand", PLUM)
    c.rect(0, 372, 960, 8, fill=ORANGE)
    c.font("ubuntu", "B", 50)
    c.text(70, 210, "Line 4 extension:", WHITE)
    c.text(70, 270, "where we stand", WHITE)
    c.font("ubuntu", "", 20)
    c.text(70, 330, "Report of the project office to the steering group", (225, 210, 230))
    c.text(70, 430, "Ellmouth Transit Authority, 14 May 2025", WHITE)

    d.slide("What we ask of you today")
    d.bullets(
        [
            "Note progress: 61 per cent of the works are done",
            "Approve the change of track bed at Canal Street",
            "Release 4.5 million from the reserve / (18.0 million, of which 6.2 was used before)",
            "Decide on the opening date: December 2026 or March 2027",
            "Take note of two new risks",
        ]
    )
    c.mark("sd-ask")

    d.slide("The line in one picture", "7.4 kilometres, eleven new stops, one depot")
    stops = [
        "Old Harbour",
        "Fish Market",
        "Canal Street",
        "Library",
        "Hospital",
        "Ring Road",
        "Stadium",
        "Mill Lane",
        "School Park",
        "Weavers",
        "North Depot",
    ]
    c.polyline([(90, 330), (250, 330), (330, 270), (640, 270), (720, 330), (890, 330)], ORANGE, 7)
    xs = [90, 170, 250, 345, 425, 505, 585, 650, 735, 810, 890]
    ys = [330, 330, 330, 270, 270, 270, 270, 277, 330, 330, 330]
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        hub = stops[i] in ("Canal Street", "Hospital", "Stadium")
        c.circle(x, y, 11 if hub else 7.5, fill=WHITE, stroke=PLUM, width=3)
        c.font("ubuntu", "B" if hub else "", 12)
        c.text(x, y - 22 if i % 2 else y + 34, stops[i], BLACK, "C")
    c.circle(70, 440, 8, fill=WHITE, stroke=PLUM, width=3)
    c.font("ubuntu", "", 13)
    c.text(86, 445, "large circle: change to other lines")
    c.text(345, 445, "tunnel between Hospital and Ring Road: 610 m")
    c.mark("sd-map")


def progress(d: Deck) -> None:
    c = d.c
    d.slide("Works: what is done", "Share of contract value certified, end of April 2025")
    charts.hbars(
        c,
        d.box(60, 120, 800, 350, 14),
        {
            "Track": [58.0],
            "Overhead line": [34.0],
            "Stops": [49.0],
            "Tunnel": [88.0],
            "Depot": [72.0],
            "Signals": [23.0],
            "Bridges": [94.0],
        },
        ["done"],
        label_width=0.2,
    )
    c.mark("sd-done")

    d.slide("Milestones", "Planned and expected dates")
    d.grid(
        [
            ["Milestone", "Plan of 2023", "Expected", "Shift"],
            ["Tunnel lining complete", "Nov 2024", "Jan 2025", "+2 months"],
            ["Bridge over the canal open", "Mar 2025", "Feb 2025", "-1 month"],
            ["Depot handed over", "Sep 2025", "Oct 2025", "+1 month"],
            ["Last rail welded", "Feb 2026", "Jun 2026", "+4 months"],
            ["Test running begins", "May 2026", "Sep 2026", "+4 months"],
            ["Safety certificate", "Oct 2026", "Jan 2027", "+3 months"],
            ["Opening", "Dec 2026", "Mar 2027", "+3 months"],
        ],
        [340, 160, 160, 160],
    )
    c.mark("sd-milestones")

    d.slide("Why the track is late")
    d.bullets(
        [
            "Canal Street: peat under the old cobbles, 2.8 m deep / instead of 0.9 m in the survey of 2021",
            "A water main of 1911 was not on any map",
            "Rails came seven weeks late from the mill",
            "Night work was limited after complaints (24 nights lost)",
        ]
    )
    c.rect(640, 330, 250, 120, fill=LIGHT, radius=6)
    d.big(664, 385, "15 weeks", "total delay, of which 9 recoverable", ORANGE)
    c.mark("sd-late")

    d.slide("Canal Street: proposed track bed", "Section, not to scale")
    layers = [
        ("Paving 12 cm", (200, 196, 190)),
        ("Concrete slab 32 cm", (170, 172, 176)),
        ("Lightweight fill 95 cm", (222, 206, 160)),
        ("Geogrid, two layers", MINT),
        ("Peat, left in place", (120, 92, 70)),
    ]
    y = 140.0
    for k, (name, color) in enumerate(layers):
        tall = (34.0, 60.0, 108.0, 12.0, 100.0)[k]
        c.rect(90, y, 420, tall, fill=color, stroke=BLACK)
        c.line(510, y + tall / 2, 560, y + tall / 2, GREY, 0.8)
        c.font("ubuntu", "", 16)
        c.text(568, y + tall / 2 + 5, name)
        y += tall
    for x in (230, 330):
        c.rect(x, 124, 12, 20, fill=BLACK)
    c.font("ubuntu", "", 14)
    c.text(568, 478, "Settlement expected: 18 mm in 30 years", GREY)
    c.mark("sd-section")


def money(d: Deck) -> None:
    c = d.c
    d.slide("Budget and forecast", "Million; prices of 2023")
    d.grid(
        [
            ["Item", "Budget", "Spent", "Forecast", "Difference"],
            ["Track and stops", "96.0", "52.3", "101.8", "+5.8"],
            ["Tunnel and bridges", "71.5", "64.9", "70.2", "-1.3"],
            ["Depot", "38.0", "27.1", "37.4", "-0.6"],
            ["Power and signals", "44.5", "12.6", "46.1", "+1.6"],
            ["Trams (14)", "58.8", "29.4", "58.8", "0.0"],
            ["Land and fees", "21.2", "19.7", "20.2", "-1.0"],
            ["Total without reserve", "330.0", "206.0", "334.5", "+4.5"],
        ],
        [300, 130, 130, 130, 140],
    )
    c.mark("sd-budget")

    d.slide("Spending by quarter", "Million")
    q = ["Q1 24", "Q2 24", "Q3 24", "Q4 24", "Q1 25", "Q2 25", "Q3 25", "Q4 25"]
    charts.bars(
        c,
        d.box(60, 110, 820, 370),
        q,
        {"Plan": [18, 21, 24, 22, 20, 23, 25, 22], "Actual or forecast": [16, 19, 25, 20, 17, 24, 28, 26]},
    )
    c.mark("sd-quarters")

    d.slide("Who pays", "Shares of 348 million including the reserve")
    charts.pie(
        c,
        d.box(110, 110, 740, 370, 17),
        {"State government": 45, "City of Ellmouth": 24, "Infrastructure fund": 19, "Loan of the authority": 12},
        hole=0.5,
    )
    c.mark("sd-pay")


def riders(d: Deck) -> None:
    c = d.c
    d.slide("How many will ride?", "Weekday passengers by year after opening, thousand")
    charts.lines(
        c,
        d.box(60, 108, 820, 375),
        ["Year 1", "Year 2", "Year 3", "Year 5", "Year 10"],
        {
            "High": [26.0, 31.0, 35.0, 39.0, 45.0],
            "Central": [21.5, 26.0, 29.0, 32.5, 36.0],
            "Low": [17.0, 20.0, 22.0, 24.0, 25.5],
        },
        values=True,
    )
    c.mark("sd-riders")

    d.slide("How people will reach the stops", "Survey of 2,140 residents, autumn 2024; several answers possible")
    charts.hbars(
        c,
        d.box(60, 120, 800, 350, 14),
        {
            "On foot": [81.0],
            "By bicycle": [37.0],
            "By bus": [29.0],
            "Dropped off by car": [11.0],
            "Park and ride": [16.0],
        },
        ["share"],
        label_width=0.24,
    )
    c.mark("sd-access")

    d.slide("The new trams")
    c.rect(70, 150, 560, 96, fill=LIGHT, stroke=PLUM, width=2, radius=16)
    for k in range(5):
        c.rect(92 + k * 106, 166, 88, 36, fill=SKY, radius=4)
    for k in range(3):
        c.line(70 + 140 * (k + 1), 150, 70 + 140 * (k + 1), 246, PLUM, 1.4)
    for x in (120, 160, 330, 370, 540, 580):
        c.circle(x, 252, 13, fill=BLACK)
    d.bullets(
        [
            "34 metres, five sections, low floor throughout",
            "72 seats and room for 138 standing",
            "Battery for 1.2 km without wire (Old Harbour)",
            "First tram expected in February 2026",
        ],
        y=320,
        step=38,
    )
    d.big(690, 200, "14", "trams ordered, / option for 6 more", ORANGE)
    c.mark("sd-trams")

    d.slide("Noise at night", "Nights with works above 55 dB, by district")
    charts.bars(
        c,
        d.box(60, 108, 820, 375),
        ["Harbour", "Canal", "Centre", "Stadium", "Mill", "North"],
        {"2024": [14, 38, 22, 9, 17, 4], "2025 to date": [3, 19, 11, 6, 12, 2]},
    )
    c.mark("sd-noise")


def ending(d: Deck) -> None:
    c = d.c
    d.slide("Risks", "Probability across, effect upward; number = entry in the register")
    x0, y0, s = 150, 470, 64
    for i in range(5):
        for j in range(5):
            level = i + j
            c.rect(
                x0 + i * s * 1.5,
                y0 - (j + 1) * s,
                s * 1.5 - 3,
                s - 3,
                fill=(208, 232, 214) if level < 3 else (250, 232, 190) if level < 6 else (244, 196, 178),
            )
    for number, i, j in [(3, 1, 4), (7, 3, 3), (11, 2, 2), (14, 4, 2), (19, 3, 4), (20, 0, 3)]:
        c.circle(x0 + i * s * 1.5 + 46, y0 - j * s - 32, 17, fill=PLUM)
        c.font("ubuntu", "B", 14)
        c.text(x0 + i * s * 1.5 + 46, y0 - j * s - 27, str(number), WHITE, "C")
    c.font("ubuntu", "", 13)
    notes = [
        "3  tunnel flooding",
        "7  supply of rails",
        "11  claims by shops",
        "14  night work limits",
        "19  peat settles (new)",
        "20  cyber rules (new)",
    ]
    for k, text in enumerate(notes):
        c.text(690, 180 + 34 * k, text)
    c.mark("sd-risks")

    d.slide("Opening date: two options")
    d.grid(
        [
            ["", "December 2026", "March 2027"],
            ["Extra cost of acceleration, million", "6.8", "0.0"],
            ["Weekend closures of line 2", "9", "4"],
            ["Probability of keeping the date", "45%", "85%"],
            ["Fare income lost, million", "0.0", "1.9"],
            ["Test running, weeks", "11", "22"],
        ],
        [420, 200, 200],
    )
    c.font("ubuntu", "B", 17)
    c.text(60, 400, "Recommendation of the project office: March 2027", ORANGE)
    c.mark("sd-options")

    d.slide("Talking with neighbours")
    for k, (value, label) in enumerate(
        [
            ("31", "public meetings / since January 2024"),
            ("1,870", "questions answered / by the Line 4 desk"),
            ("62", "shops that received / bridging payments"),
            ("3.4 days", "average time to answer / a complaint"),
        ]
    ):
        d.big(70 + (k % 2) * 430, 190 + (k // 2) * 160, value, label, (PLUM, ORANGE, MINT, SKY)[k])
    c.mark("sd-talk")

    d.blank("Next steps", PLUM)
    c.font("ubuntu", "B", 34)
    c.text(70, 110, "Next steps", WHITE)
    for k, (when, what) in enumerate(
        [
            ("20 May", "Order for lightweight fill"),
            ("4 June", "Council committee on transport"),
            ("16 June", "Closure of Canal Street begins, eleven weeks"),
            ("2 September", "Steering group visits the depot"),
            ("October", "Decision on the option for more trams"),
        ]
    ):
        c.font("ubuntu", "B", 19)
        c.text(70, 190 + 52 * k, when, ORANGE)
        c.font("ubuntu", "", 19)
        c.text(230, 190 + 52 * k, what, WHITE)
    c.font("ubuntu", "B", 11)
    c.text(908, 524, str(c.page), WHITE, "R")
    c.mark("sd-next")


def draw() -> Canvas:
    deck = Deck()
    for part in (opening, progress, money, riders, ending):
        part(deck)
    return deck.c


RECIPE = Recipe("slide_deck.pdf", "slide deck", draw)
