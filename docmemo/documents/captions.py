"""Labels such as "Figure 4", "Tab. 2-1", "图3": their words in several languages, and where captions begin."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

LabelKind = Literal["figure", "chart", "table", "exhibit", "algorithm", "box", "section", "appendix"]

_WORDS: dict[LabelKind, tuple[str, str]] = {
    "figure": (
        r"figures?|figs?\.?|abbildung(?:en)?|abb\.?|figuras?|illustrations?|рис(?:унок|унке|\.)|rysunek|obrázek|şekil"
        r"|الشكل|شكل",
        "图|圖|図|그림",
    ),
    "chart": (
        r"charts?|graphs?|diagrams?|diagramme?|schaubild|grafik|graphiques?|gráficos?|grafico|график[еа]?",
        "图表|圖表|グラフ",
    ),
    "table": (
        r"tables?|tab\.|tabellen?|tableaux?|tablas?|tabelas?|tabell[ae]|таблиц[аеуы]|جدول|الجدول|tablo|tabulka",
        "(?<![图圖代])表格?|표",
    ),
    "exhibit": (r"exhibits?", ""),
    "algorithm": (r"algorithms?|algorithmus|algorithme|algoritmo", "算法"),
    "box": (r"box(?:es)?|kasten|encadré", ""),
    "section": (
        r"sections?|sec\.|§|chapters?|abschnitt|kapitel|chapitres?|capítulos?|capitolo|secci[oó]n|sezione|seção"
        r"|раздел[еа]?|глав[аеы]",
        "",
    ),
    "appendix": (
        r"appendix|appendices|annex(?:e|es)?|anhang|anexo|apéndice|allegato|приложени[ея]",
        "附录|附錄|付録|부록",
    ),
}
"""Kind to (words of languages that put spaces between words, words of Chinese, Japanese and Korean)."""

LABEL_WORDS: dict[LabelKind, str] = {
    kind: rf"(?:(?<![^\W\d_])(?:{spaced})" + (f"|{unspaced})" if unspaced else ")")
    for kind, (spaced, unspaced) in _WORDS.items()
}
"""Kind to the pattern of its word; to be used with re.I."""
LABEL = r"(?:[A-Z]{1,2}[.\-–]?)?\d+(?:[.\-–]\d+)*[a-z]?|(?-i:[IVX]{1,5})|(?-i:[A-Z])(?:[.\-–]\d+)*"
"""Pattern of a label: 4, 4a, 2-1, A.3, S1, IV, B."""
NO_MORE = r"(?![0-9A-Za-z\u00c0-\u024f\u0370-\u06ff])"
"""What ends a label; a Chinese character may follow at once."""

_BEFORE_LABEL = re.compile(r"(?:(?<![^\W\d_])([^\W\d_]++)|(§))\.?\s*+(?=\d|[A-Z]{1,5}(?![a-z]))")
_SPACED = re.compile("|".join(spaced for spaced, _ in _WORDS.values()), re.I)
_UNSPACED_END = re.compile(f"(?:{'|'.join(unspaced for _, unspaced in _WORDS.values() if unspaced)})$")
_STARTS = [
    (kind, re.compile(rf"^\W{{0,3}}{word}\s*({LABEL}){NO_MORE}(.*)$", re.I | re.S))
    for kind, word in LABEL_WORDS.items()
]
_MENTIONS = [(kind, re.compile(rf"{word}\s*({LABEL}){NO_MORE}", re.I)) for kind, word in LABEL_WORDS.items()]
_CONTENTS_LINE = re.compile(r"(?:\.\s?){4,}|…|\s\d{1,4}\s*$")
_GOES_ON = re.compile(r"^\s*(?:[a-zà-ÿ]|\)|,|;|\]|所示|中|显示|表明|zeigt\b|montre\b|muestra\b)")


@dataclass(frozen=True)
class LabelStart:
    """A label a line begins with, and as what: its caption, an entry of a list of figures, or the text running on."""

    kind: LabelKind
    label: str
    role: Literal["caption", "listed", "sentence"]


def normal_label(label: str) -> str:
    """A label as it is compared: one kind of hyphen, no case, no final point."""
    return label.replace("–", "-").strip(".").casefold()


def is_contents_line(text: str) -> bool:
    """Whether a line looks like one of a table of contents: leaders, or a number at its end."""
    return bool(_CONTENTS_LINE.search(text))


@lru_cache(maxsize=100_000)
def _is_label_word(word: str) -> bool:
    spaced = _SPACED.fullmatch(word) or _SPACED.fullmatch(f"{word}.")
    return bool(spaced or _UNSPACED_END.search(word))


def may_hold_label(text: str) -> bool:
    """A quick test before `label_starts` and `labels_in`: one of the words stands before a number or capital."""
    return any(_is_label_word(word or sign) for word, sign in _BEFORE_LABEL.findall(text))


def label_starts(text: str) -> Iterator[LabelStart]:
    """The labels that `text` (NFKC) begins with; more than one only where a word belongs to two kinds."""
    for kind, pattern in _STARTS:
        match = pattern.match(text)
        if match:
            rest = match[2]
            role: Literal["caption", "listed", "sentence"] = "caption"
            if len(rest) > 6 and is_contents_line(rest):
                role = "listed"
            elif _GOES_ON.match(rest):
                role = "sentence"
            yield LabelStart(kind, normal_label(match[1]), role)


def labels_in(text: str) -> Iterator[tuple[LabelKind, str]]:
    """(kind, label) of every label in `text` (NFKC)."""
    for kind, pattern in _MENTIONS:
        for match in pattern.finditer(text):
            yield kind, normal_label(match[1])


def caption_of(text: str) -> tuple[LabelKind, str] | None:
    """(kind, label) if `text` begins as the caption of a figure, chart, table, exhibit, algorithm or box does."""
    for start in label_starts(unicodedata.normalize("NFKC", text).strip()):
        if start.role == "caption" and start.kind not in ("section", "appendix"):
            return start.kind, start.label
    return None
