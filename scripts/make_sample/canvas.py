"""A page canvas over fpdf2: fonts, marks (which page a fact landed on), and byte-stable saving."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fpdf import FPDF

from .pdfs import open_pdf, shipped_font

RGB = tuple[int, int, int]

logging.getLogger("fontTools.subset").setLevel(logging.ERROR)  # it warns of tables that a PDF does not need

CREATED = datetime(2025, 3, 14, 9, 0, 0, tzinfo=UTC)
WHITE: RGB = (255, 255, 255)
BLACK: RGB = (20, 20, 20)
GREY: RGB = (110, 115, 122)
LIGHT: RGB = (240, 242, 245)
RULE: RGB = (190, 195, 202)

# pymupdf-fonts codes by family and style; "cjk" is Droid Sans Fallback, shipped in PyMuPDF.
SHIPPED_FONTS: dict[str, dict[str, str]] = {
    "fira": {"": "figo", "B": "figbo", "I": "figit"},
    "noto": {"": "notos", "B": "notosbo", "I": "notosit"},
    "ubuntu": {"": "ubuntu", "B": "ubuntubo", "I": "ubuntuit"},
    "cjk": {"": "cjk"},
}
CORE_FONTS = ("helvetica", "times", "courier")
_font_folder = tempfile.TemporaryDirectory(prefix="make_sample_fonts_")  # fpdf2 reads fonts from files


def _font_file(code: str) -> Path:
    path = Path(_font_folder.name) / f"{code}.ttf"
    if not path.exists():
        path.write_bytes(shipped_font(code).buffer)
    return path


def _store_turned(document: Any, page_number: int) -> None:
    """Store a landscape page as a portrait one that carries /Rotate 90: it looks the same, its coordinates do not."""
    wide = document[page_number - 1].rect
    with open_pdf() as copy:
        copy.insert_pdf(document, from_page=page_number - 1, to_page=page_number - 1)
        tall = document.new_page(page_number, width=wide.height, height=wide.width)
        tall.show_pdf_page(tall.rect, copy, 0, rotate=90)
        tall.set_rotation(90)
    document.delete_page(page_number - 1)


@dataclass
class Canvas:
    """One PDF being drawn, in points, with the origin at the top left.

    `marks` maps an anchor name to the 1-based page it was placed on; a name may be placed only once.
    """

    title: str
    width: float = 595.28
    height: float = 841.89
    language: str = "en"
    ligatures: bool = False
    marks: dict[str, int] = field(default_factory=dict)
    outline: list[tuple[int, str, int]] = field(default_factory=list)
    labels: list[dict[str, str | int]] = field(default_factory=list)
    turned: list[int] = field(default_factory=list)
    on_page: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.pdf = FPDF(unit="pt", format=(self.width, self.height))
        self.pdf.set_auto_page_break(False)
        self.pdf.set_margin(0)
        self.pdf.c_margin = 0
        self.pdf.core_fonts_encoding = "windows-1252"
        self.pdf.set_creation_date(CREATED)
        self.pdf.set_title(self.title)
        self.pdf.set_lang(self.language)
        self._loaded: set[str] = set()

    @property
    def page(self) -> int:
        """The 1-based physical page being drawn."""
        return self.pdf.page

    def add_page(self, width: float | None = None, height: float | None = None) -> None:
        self.pdf.add_page(format=(width or self.width, height or self.height))

    def mark(self, name: str) -> None:
        if name in self.marks:
            raise ValueError(f"anchor {name!r} placed twice")
        self.marks[name] = self.page

    def bookmark(self, level: int, title: str) -> None:
        self.outline.append((level, title, self.page))

    def font(self, family: str, style: str = "", size: float = 10.0) -> None:
        if family not in CORE_FONTS and family not in self._loaded:
            for face, code in SHIPPED_FONTS[family].items():
                self.pdf.add_font(family, face, _font_file(code))
            self._loaded.add(family)
        bold_missing = family == "cjk" and "B" in style
        self.pdf.set_font(family, "" if family == "cjk" else style, size)
        self.pdf.text_mode = 2 if bold_missing else 0
        self._stroke = size / 30 if bold_missing else 0.0

    def measure(self, text: str) -> float:
        return float(self.pdf.get_string_width(self._shape(text)))

    def _shape(self, text: str) -> str:
        if self.ligatures:
            text = text.replace("fi", "\ufb01").replace("fl", "\ufb02")
        return text

    def text(
        self, x: float, y: float, text: str, color: RGB = BLACK, align: str = "L", word_space: float = 0.0
    ) -> None:
        """Print `text` with its baseline at `y`; `word_space` (points) needs a base-14 font."""
        shaped = self._shape(text)
        if align != "L":
            x -= self.measure(text) * (1.0 if align == "R" else 0.5)
        self.pdf.set_text_color(*color)
        if self._stroke:
            self.pdf.set_draw_color(*color)
            self.pdf.set_line_width(self._stroke)
        if word_space:
            self.pdf._out(f"{word_space:.3f} Tw")
        self.pdf.text(x, y, shaped)
        if word_space:
            self.pdf._out("0 Tw")
        if self._stroke:
            self.pdf._out("0 Tr")

    def line(self, x1: float, y1: float, x2: float, y2: float, color: RGB = BLACK, width: float = 0.5) -> None:
        self.pdf.set_draw_color(*color)
        self.pdf.set_line_width(width)
        self.pdf.line(x1, y1, x2, y2)

    def dashed(self, x1: float, y1: float, x2: float, y2: float, color: RGB = GREY, width: float = 0.5) -> None:
        self.pdf.set_dash_pattern(dash=3, gap=2)
        self.line(x1, y1, x2, y2, color, width)
        self.pdf.set_dash_pattern()

    def rect(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: RGB | None = None,
        stroke: RGB | None = None,
        width: float = 0.5,
        radius: float = 0.0,
    ) -> None:
        style = ("F" if fill else "") + ("D" if stroke else "")
        if fill:
            self.pdf.set_fill_color(*fill)
        if stroke:
            self.pdf.set_draw_color(*stroke)
            self.pdf.set_line_width(width)
        if radius:
            self.pdf.rect(x, y, w, h, style=style, round_corners=True, corner_radius=radius)
        else:
            self.pdf.rect(x, y, w, h, style=style)

    def polygon(
        self,
        points: list[tuple[float, float]],
        fill: RGB | None = None,
        stroke: RGB | None = None,
        width: float = 0.8,
    ) -> None:
        if fill:
            self.pdf.set_fill_color(*fill)
        if stroke:
            self.pdf.set_draw_color(*stroke)
            self.pdf.set_line_width(width)
        style = ("F" if fill else "") + ("D" if stroke else "")
        self.pdf.polygon(points, style=style)

    def polyline(self, points: list[tuple[float, float]], color: RGB, width: float = 1.2) -> None:
        self.pdf.set_draw_color(*color)
        self.pdf.set_line_width(width)
        self.pdf.polyline(points, style="D")

    def circle(
        self, x: float, y: float, r: float, fill: RGB | None = None, stroke: RGB | None = None, width: float = 0.8
    ) -> None:
        if fill:
            self.pdf.set_fill_color(*fill)
        if stroke:
            self.pdf.set_draw_color(*stroke)
            self.pdf.set_line_width(width)
        style = ("F" if fill else "") + ("D" if stroke else "")
        self.pdf.circle(x=x, y=y, radius=r, style=style)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, color: RGB = GREY, width: float = 0.9) -> None:
        self.line(x1, y1, x2, y2, color, width)
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 0.01)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        back, half = 6.0, 2.6
        self.polygon(
            [
                (x2, y2),
                (x2 - back * ux - half * uy, y2 - back * uy + half * ux),
                (x2 - back * ux + half * uy, y2 - back * uy - half * ux),
            ],
            fill=color,
        )

    def _toc(self) -> list[list[int | str]]:
        """The outline with no level skipped, as PDF wants it."""
        toc: list[list[int | str]] = []
        previous = 0
        for level, title, page in self.outline:
            previous = min(level, previous + 1)
            toc.append([previous, title, page])
        return toc

    def to_bytes(self) -> bytes:
        """The finished PDF; the same drawing calls give the same bytes."""
        with open_pdf(stream=bytes(self.pdf.output()), filetype="pdf") as document:
            if self.outline:
                document.set_toc(self._toc())
            if self.labels:
                document.set_page_labels(self.labels)
            for page_number in self.turned:
                _store_turned(document, page_number)
            return bytes(document.tobytes(garbage=3, deflate=True, use_objstms=1, no_new_id=True))
