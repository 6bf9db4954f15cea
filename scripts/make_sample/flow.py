"""Text flow: a small markup is broken into lines, columns and pages; anchors remember where they landed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .canvas import BLACK, CORE_FONTS, GREY, LIGHT, RGB, Canvas
from .tables import draw_table

SOFT_HYPHEN = "¦"  # in content files: where a long word may be broken
_ANCHOR = re.compile(r"\{@([a-z0-9_-]+)\}")
_NO_LINE_START = "，。、；：？！）》”％%·"
_CJK = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]")


@dataclass(frozen=True)
class Theme:
    """How a document looks; sizes and margins in points."""

    body: str = "times"
    head: str = "helvetica"
    size: float = 10.0
    leading: float = 1.38
    accent: RGB = (24, 78, 119)
    ink: RGB = BLACK
    justify: bool = False
    left: float = 64.0
    right: float = 64.0
    top: float = 84.0
    bottom: float = 72.0
    columns: int = 1
    gutter: float = 20.0
    indent: float = 0.0
    h1: float = 22.0
    h2: float = 13.5
    h3: float = 10.5
    h1_new_page: bool = False
    h1_space: float = 10.0


@dataclass(frozen=True)
class Word:
    text: str
    bold: bool
    space: bool
    anchors: tuple[str, ...] = ()


def parse_inline(text: str) -> list[Word]:
    """Split markup text into words; CJK characters are words of their own, with no space before them."""
    words: list[Word] = []
    bold = False
    pending: list[str] = []
    for chunk in text.split():
        space = True
        for piece in re.split(r"(\*\*|\{@[a-z0-9_-]+\})", chunk):
            anchor = _ANCHOR.fullmatch(piece)
            if not piece:
                continue
            if piece == "**":
                bold = not bold
            elif anchor:
                pending.append(anchor.group(1))
            else:
                for part in re.findall(
                    r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]|[^\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]+",
                    piece,
                ):
                    words.append(Word(part, bold, space, tuple(pending)))
                    pending, space = [], False
    if pending and words:
        last = words[-1]
        words[-1] = Word(last.text, last.bold, last.space, last.anchors + tuple(pending))
    return words


@dataclass
class Flow:
    """A cursor over the columns and pages of one canvas."""

    canvas: Canvas
    theme: Theme
    directives: dict[str, Callable[[str], None]] = field(default_factory=dict)
    y: float = 0.0
    column: int = 0
    column_top: float = 0.0
    floats: list[tuple[float, Callable[[float], None]]] = field(default_factory=list)

    @property
    def column_width(self) -> float:
        t = self.theme
        return (self.canvas.width - t.left - t.right - (t.columns - 1) * t.gutter) / t.columns

    @property
    def x(self) -> float:
        return self.theme.left + self.column * (self.column_width + self.theme.gutter)

    @property
    def bottom(self) -> float:
        return self.canvas.height - self.theme.bottom

    def new_page(self) -> None:
        self.canvas.add_page()
        if self.canvas.on_page:
            self.canvas.on_page()
        self.y = self.column_top = self.theme.top
        self.column = 0
        while self.floats:
            height, draw = self.floats.pop(0)
            draw(self.y)
            self.y += height
            self.column_top = self.y
            if self.y > self.canvas.height * 0.5:
                break

    def advance(self) -> None:
        """Go to the next column, or the next page after the last one."""
        if self.column + 1 < self.theme.columns:
            self.column += 1
            self.y = self.column_top
        else:
            self.new_page()

    def need(self, height: float) -> None:
        if self.canvas.page == 0:
            self.new_page()
        if self.y + height > self.bottom:
            self.advance()

    def lines(self, words: list[Word], width: float, family: str, size: float) -> list[tuple[list[Word], bool]]:
        """Greedy line breaking: (words of the line, whether it ends its paragraph)."""
        c = self.canvas

        def wide(word: Word) -> float:
            c.font(family, "B" if word.bold else "", size)
            return c.measure(word.text.replace(SOFT_HYPHEN, ""))

        c.font(family, "", size)
        blank = c.measure(" ")
        result: list[tuple[list[Word], bool]] = []
        line: list[Word] = []
        used = 0.0
        queue = list(words)
        while queue:
            word = queue.pop(0)
            gap = blank if word.space and line else 0.0
            if line and used + gap + wide(word) > width and not (word.text[0] in _NO_LINE_START and not word.space):
                parts = word.text.split(SOFT_HYPHEN)
                for cut in range(len(parts) - 1, 0, -1):
                    start = "".join(parts[:cut])
                    head = Word(start if start.endswith("-") else start + "-", word.bold, word.space, word.anchors)
                    if used + gap + wide(head) <= width:
                        line.append(head)
                        word = Word(SOFT_HYPHEN.join(parts[cut:]), word.bold, True)
                        break
                result.append((line, False))
                line, used, gap = [], 0.0, 0.0
            line.append(word)
            used += gap + wide(word)
        if line:
            result.append((line, True))
        return result

    def put_line(
        self, words: list[Word], x: float, y: float, width: float, family: str, size: float, color: RGB, justify: bool
    ) -> None:
        """Print one line, its runs of equal style in one piece each, and place its anchors."""
        c = self.canvas
        runs: list[tuple[bool, str]] = []
        for i, word in enumerate(words):
            for name in word.anchors:
                c.mark(name)
            piece = (" " if word.space and i else "") + word.text.replace(SOFT_HYPHEN, "")
            if runs and runs[-1][0] == word.bold:
                runs[-1] = (word.bold, runs[-1][1] + piece)
            else:
                runs.append((word.bold, piece))
        widths = []
        for bold, text in runs:
            c.font(family, "B" if bold else "", size)
            widths.append(c.measure(text))
        gaps = sum(text.count(" ") for _, text in runs)
        slack = width - sum(widths)
        extra = slack / gaps if justify and gaps and family in CORE_FONTS and slack < 0.25 * width else 0.0
        for (bold, text), run_width in zip(runs, widths, strict=True):
            c.font(family, "B" if bold else "", size)
            c.text(x, y, text, color, word_space=extra)
            x += run_width + extra * text.count(" ")

    def paragraph(
        self,
        text: str,
        *,
        size: float | None = None,
        family: str | None = None,
        color: RGB | None = None,
        indent: float = 0.0,
        first: float = 0.0,
        after: float | None = None,
        justify: bool | None = None,
    ) -> None:
        t = self.theme
        size = size or t.size
        family = family or t.body
        lead = size * t.leading
        width = self.column_width - indent
        words = parse_inline(text)
        if first:  # a first-line indent, made with an unbreakable blank word
            self.canvas.font(family, "", size)
            words = [
                Word("\u3000" * 2 if t.body == "cjk" else "\u00a0" * 3, False, False),
                Word(words[0].text, words[0].bold, False, words[0].anchors),
                *words[1:],
            ]
        laid = self.lines(words, width, family, size)
        for i, (line, last) in enumerate(laid):
            self.need(lead * (2 if i == 0 and len(laid) > 1 else 1))
            self.put_line(
                line,
                self.x + indent,
                self.y + size,
                width,
                family,
                size,
                color or t.ink,
                (t.justify if justify is None else justify) and not last,
            )
            self.y += lead
        self.y += size * 0.55 if after is None else after

    def heading(self, level: int, text: str) -> None:
        t = self.theme
        size = (t.h1, t.h2, t.h3)[level - 1]
        if level == 1 and t.h1_new_page:
            self.new_page()
        self.need(size * 1.4 + 3.2 * t.size * t.leading)
        if self.y > self.column_top + 1:
            self.y += size * (0.55 if level > 1 else 0.9)
        plain = _ANCHOR.sub("", text)
        self.canvas.bookmark(level, plain)
        words = [Word(w.text, True, w.space, w.anchors) for w in parse_inline(text)]
        for line, _ in self.lines(words, self.column_width, t.head, size):
            color = t.accent if level < 3 else t.ink
            self.put_line(line, self.x, self.y + size, self.column_width, t.head, size, color, False)
            self.y += size * 1.22
        self.y += t.h1_space if level == 1 else size * 0.3

    def bullet(self, text: str, mark: str = "•") -> None:
        t = self.theme
        self.need(t.size * t.leading)
        indent = {1: 13.0, 2: 17.0}.get(len(mark), 22.0)
        page, column = self.canvas.page, self.column
        self.need(t.size * t.leading * 1.01)
        y = self.y
        if (page, column) == (self.canvas.page, self.column):
            self.canvas.font(t.body, "", t.size)
            self.canvas.text(self.x + 2, y + t.size, mark, t.accent)
        self.paragraph(text, indent=indent, after=t.size * 0.25)

    def callout(self, text: str) -> None:
        """A tinted box with a rule on its left."""
        t = self.theme
        width = self.column_width - 24
        laid = self.lines(parse_inline(text), width, t.body, t.size)
        height = len(laid) * t.size * t.leading + 14
        self.need(height + 6)
        self.canvas.rect(self.x, self.y, self.column_width, height, fill=LIGHT)
        self.canvas.rect(self.x, self.y, 3, height, fill=t.accent)
        y = self.y + 6
        for line, _ in laid:
            self.put_line(line, self.x + 14, y + t.size, width, t.body, t.size, t.ink, False)
            y += t.size * t.leading
        self.y += height + t.size * 0.9

    def equation(self, text: str, number: str) -> None:
        t = self.theme
        self.need(t.size * 2.6)
        self.canvas.font("fira", "I", t.size - 0.4)  # base-14 fonts lack the signs
        self.canvas.text(self.x + self.column_width / 2 - 8, self.y + t.size * 1.5, text, t.ink, "C")
        if number:
            self.canvas.font(t.body, "", t.size)
            self.canvas.text(self.x + self.column_width, self.y + t.size * 1.5, number, t.ink, "R")
        self.y += t.size * 2.6

    def caption(self, text: str) -> None:
        t = self.theme
        self.paragraph(
            text, size=t.size - 1.2, family=t.head if t.body != "cjk" else "cjk", color=GREY, justify=False
        )

    def render(self, source: str) -> None:
        """Lay out markup blocks, separated by blank lines."""
        for block in re.split(r"\n\s*\n", source.strip()):
            self._block(block.strip("\n"))

    def columns(self, count: int) -> None:
        """Go on in `count` columns below what stands on the page."""
        self.theme = replace(self.theme, columns=count)
        self.column, self.column_top = 0, self.y

    def margins(self, left: float, right: float) -> None:
        self.theme = replace(self.theme, left=left, right=right)

    def _block(self, block: str) -> None:
        head, _, rest = block.partition(" ")
        if block == "---":
            self.new_page()
        elif set(head) == {"#"}:
            self.heading(len(head), rest)
        elif block.startswith("::"):
            for line in block.splitlines():
                name, _, argument = line[2:].partition(" ")
                self.directives[name](argument)
        elif re.match(r"(- |\d+\. )", block):
            self._list(block)
        elif block.startswith("> "):
            self.callout(" ".join(line[2:] for line in block.splitlines()))
        elif block.startswith("^ "):
            self.caption(" ".join(block[2:].splitlines()))
        elif block.startswith("= "):
            body, _, number = block[2:].partition(" #")
            self.equation(body, number)
        elif block.startswith("|"):
            draw_table(self, [[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines()])
        else:
            self.paragraph(" ".join(block.splitlines()), first=self.theme.indent)

    def _list(self, block: str) -> None:
        for item in re.split(r"\n(?=- |\d+\. )", block):
            mark, _, text = item.partition(" ")
            self.bullet(" ".join(text.splitlines()), "•" if mark == "-" else mark)
        self.y += self.theme.size * 0.4
