"""A German guide to a municipal grant, justified and hyphenated."""

from __future__ import annotations

import re

from .. import charts
from ..canvas import BLACK, GREY, LIGHT, RGB, RULE, WHITE, Canvas
from ..charts import Box
from ..corpus import Recipe, content
from ..flow import Flow, Theme

BLUE: RGB = (0, 70, 130)
COLORS: tuple[RGB, ...] = (BLUE, (220, 140, 40), (110, 150, 90), (150, 90, 110))
THEME = Theme(
    body="times",
    head="helvetica",
    size=12.2,
    leading=1.42,
    accent=BLUE,
    justify=True,
    left=78,
    right=78,
    top=96,
    bottom=76,
    h1=20,
    h2=16,
    h3=12,
)


_SUFFIX = re.compile(r"(?<=[a-zäöüß]{3})(?=(?:lich|keit|heit|schaft|[bdfglmnprstvwz]ung)(?:e[nrs]?|s)?\b)")
_PART = re.compile(
    r"(?<=[a-zäöüß]{3})(?=(?:pumpe|heizung|anlage|gebäude|wärme|behörde|netz|preis|betrieb|kosten|wert)[a-z]{0,2}\b)"
)


def _breakable(source: str) -> str:
    """Mark where long words may be broken: before common suffixes and second parts of compounds."""

    def broken(found: re.Match[str]) -> str:
        word = found[0]
        return word if word[0] in "{:" else _PART.sub("¦", _SUFFIX.sub("¦", word)).replace("¦¦", "¦")

    return re.sub(r"\{[^}]*\}|^::.*$|[^\W\d_]+(?:¦\w+)*", broken, source, flags=re.MULTILINE)


class Guide:
    def __init__(self) -> None:
        self.canvas = Canvas("Wärmewende Lindenau: Leitfaden zur Förderung 2025", language="de")
        self.canvas.on_page = self.furniture
        self.flow = Flow(
            self.canvas,
            THEME,
            {"cover": self.cover, "chart": self.chart, "mark": self.canvas.mark, "steps": self.steps},
        )

    def furniture(self) -> None:
        c = self.canvas
        if c.page == 1:
            return
        c.font("helvetica", "", 8.5)
        c.text(78, 54, "Stadt Lindenau · Amt für Gebäude und Energie", GREY)
        c.text(c.width - 78, 54, "Leitfaden zur Förderung 2025", BLUE, "R")
        c.line(78, 61, c.width - 78, 61, BLUE, 0.8)
        c.line(78, c.height - 52, c.width - 78, c.height - 52, RULE, 0.5)
        c.text(c.width - 78, c.height - 38, f"Seite {c.page} von 11", GREY, "R")

    def cover(self, _: str) -> None:
        self.flow.new_page()
        c = self.canvas
        c.rect(0, 0, c.width, 420, fill=BLUE)
        for k, (x, tall) in enumerate([(60, 90), (140, 130), (215, 100), (300, 150), (390, 110), (465, 140)]):
            c.rect(x, 420 - tall, 64, tall, fill=(30 + 12 * k, 96 + 10 * k, 156 + 6 * k))
            c.polygon([(x - 6, 420 - tall), (x + 70, 420 - tall), (x + 32, 385 - tall)], fill=WHITE)
            for w in range(2):
                c.rect(x + 12 + 26 * w, 436 - tall, 14, 18, fill=(250, 226, 150))
        c.font("helvetica", "B", 34)
        c.text(78, 130, "Wärmewende Lindenau", WHITE)
        c.font("helvetica", "", 18)
        c.text(78, 165, "Leitfaden zur Förderung 2025", WHITE)
        c.font("helvetica", "B", 13)
        c.text(78, 480, "Für Eigentümerinnen und Eigentümer von Wohngebäuden", BLUE)
        c.font("times", "", 12)
        for k, line in enumerate(
            [
                "Zuschüsse für Wärmepumpen, Anschlüsse an das Fernwärmenetz, Dämmung und Beratung",
                "Gültig für Anträge vom 1. Februar bis zum 30. November 2025",
                "3. Auflage",
            ]
        ):
            c.text(78, 508 + 20 * k, line, BLACK)
        c.font("helvetica", "", 9)
        c.text(78, 780, "Stadt Lindenau · Amt für Gebäude und Energie · Rathausplatz 2 · Lindenau", GREY)

    def chart(self, name: str) -> None:
        f, c = self.flow, self.canvas
        height = 190 if name == "kosten" else 146
        f.need(height + 40)
        box = Box(f.x, f.y, f.column_width, height, "helvetica", 8.6, COLORS)
        if name == "bestand":
            charts.pie(
                c,
                box,
                {"Erdgas": 58.0, "Heizöl": 17.0, "Fernwärme": 14.0, "Wärmepumpe": 7.0, "Holz und Sonstiges": 4.0},
            )
        elif name == "antraege":
            charts.bars(
                c,
                box,
                ["2021", "2022", "2023", "2024"],
                {"bewilligt": [142, 318, 407, 523], "abgelehnt": [19, 44, 61, 58]},
                unit="Anträge",
            )
        else:
            charts.hbars(
                c,
                box,
                {
                    "Gasheizung": [21.4, 3.1],
                    "Wärmepumpe Luft": [13.2, 2.2],
                    "Wärmepumpe Erdreich": [11.1, 2.0],
                    "Fernwärme": [15.0, 1.4],
                },
                ["Energie", "Wartung"],
                suffix="",
                label_width=0.26,
            )
        f.y += height + 16

    def steps(self, _: str) -> None:
        c, f = self.canvas, self.flow
        f.need(120)
        for k, (name, when) in enumerate(
            [
                ("Beratung", "kostenlos"),
                ("Antrag", "vor Auftrag"),
                ("Bescheid", "6 Wochen"),
                ("Umbau", "bis 18 Monate"),
                ("Nachweis", "3 Monate"),
                ("Auszahlung", "4 Wochen"),
            ]
        ):
            x = f.x + k * 74.5
            c.rect(x, f.y + 6, 64, 46, fill=BLUE if k % 2 == 0 else (70, 120, 170), radius=4)
            c.font("helvetica", "B", 8.6)
            c.text(x + 32, f.y + 33, name, WHITE, "C")
            c.font("helvetica", "", 8.2)
            c.text(x + 32, f.y + 66, when, GREY, "C")
            if k < 5:
                c.arrow(x + 65, f.y + 29, x + 74, f.y + 29)
        c.rect(f.x, f.y + 74, f.column_width, 0.6, fill=LIGHT)
        f.y += 88


def draw() -> Canvas:
    guide = Guide()
    guide.flow.render(_breakable(content("foerderung_de.md")))
    return guide.canvas


RECIPE = Recipe("foerderung_de.pdf", "guide (German)", draw)
