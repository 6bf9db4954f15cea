"""Text to index terms, by language: Unicode folding, numbers, stop words, Snowball stems, character bigrams.

A term is what is compared: "Erhöhungen" -> "erhoh", "1,234,567" -> "1234567", "上海市" -> "上海", "海市".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import Stemmer

from docmemo.documents.language import detect_language
from docmemo.retrieval.instructions import without_answer_form
from docmemo.retrieval.stopwords import languages, stop_words

SNOWBALL = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "cs": "czech", "da": "danish", "nl": "dutch",
    "en": "english", "eo": "esperanto", "et": "estonian", "fi": "finnish", "fr": "french", "de": "german",
    "el": "greek", "hi": "hindi", "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "no": "norwegian", "nb": "norwegian", "nn": "norwegian", "fa": "persian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""ISO 639-1 code to Snowball algorithm."""

_COMMA_DECIMAL = frozenset(set(SNOWBALL) - {"ar", "en", "fa", "ga", "he", "hi", "ne", "ta", "yi"})
"""Languages that write 1.234,5 for what English writes as 1,234.5."""

_UNSPACED = (
    "\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Kana, Han: written without spaces between words."""
_HANGUL = "\u1100-\u11ff\uac00-\ud7af"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0970-\u0dff"
)
"""Combining marks inside words: Python's \\w leaves them out, which would cut Hindi words at every vowel."""

_TOKEN = re.compile(
    rf"(?P<number>(?>\d+(?:\.\d+)*)(?!(?![{_UNSPACED}{_HANGUL}])[^\W\d_]))|(?P<run>[{_UNSPACED}{_HANGUL}]+)"
    rf"|(?P<word>(?:(?![{_UNSPACED}{_HANGUL}])(?:[^\W_]|[{_MARKS}]))+)"
)
_SUPERSCRIPTS = re.compile("[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]+")
_NARROW_THOUSANDS = re.compile(r"(?<=\d)[\u00a0\u202f\u2009'’](?=\d{3}(?!\d))")
_SOFT_HYPHEN = re.compile("\u00ad[ \\t]*\n?[ \\t]*")
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ac][ \t]*\n[ \t]*(?=[^\W\d_])(?![A-ZÀ-ÞА-Я])")
_UNSPACED_BREAK = re.compile(rf"(?<=[{_UNSPACED}])[ \t]*\n[ \t]*(?=[{_UNSPACED}])")
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u0640]")
_ABBREVIATION = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.){2,}(?:[^\W\d_](?![^\W_]))?")
_POSSESSIVE = re.compile(r"(?<=[^\W\d_])['’]s(?![^\W_])")
_THOUSANDS_COMMA = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_THOUSANDS_POINT = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?![\d.])")
_POINTS_TWICE = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.])")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_FOLDED = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")


def normalise(text: str, language: str = "") -> str:
    """`text` as it is cut into tokens: joined over line-end hyphens, folded by NFKC and case, numbers made plain.

    Thousands separators go ("1,234,567", in German text "1.234.567", in French text "1 234 567" with narrow spaces);
    decimals are written with a point. Footnote marks (superscript digits) are cut off the number before them.
    """
    text = _SOFT_HYPHEN.sub("", text)
    text = _SUPERSCRIPTS.sub(" ", text)
    text = _NARROW_THOUSANDS.sub("", text)
    text = unicodedata.normalize("NFKC", text)
    text = _INVISIBLE.sub("", text)
    text = _LINE_END_HYPHEN.sub("", text)
    text = _UNSPACED_BREAK.sub("", text)
    text = _POSSESSIVE.sub("", text)
    text = _ABBREVIATION.sub(lambda m: m[0].replace(".", ""), text)
    if not text.isascii():
        text = "".join(str(unicodedata.digit(c)) if c.isdigit() and not c.isascii() else c for c in text)
    if language in _COMMA_DECIMAL:
        text = _THOUSANDS_POINT.sub(lambda m: m[0].replace(".", ""), text)
        text = _DECIMAL_COMMA.sub(".", text)
    else:
        text = _THOUSANDS_COMMA.sub(lambda m: m[0].replace(",", ""), text)
        text = _POINTS_TWICE.sub(lambda m: m[0].replace(".", ""), text)
    return text.casefold()


def fold(word: str) -> str:
    """`word` without accents and vowel points (Latin, Greek, Cyrillic, Arabic, Hebrew; Indic vowels stay)."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _FOLDED.sub("", unicodedata.normalize("NFD", word)))


class Analyzer:
    """Text to terms for one language.

    Attributes:
        language: ISO 639-1 code; '' or an unknown code means no stemming and no stop words.
    """

    def __init__(self, language: str = "") -> None:
        self.language = language.split("-")[0].lower()
        algorithm = SNOWBALL.get(self.language)
        self._stemmer = Stemmer.Stemmer(algorithm) if algorithm else None
        self._stop = frozenset(unicodedata.normalize("NFC", w) for w in stop_words(self.language))
        self._known: dict[str, str] = {}

    def _term(self, word: str) -> str:
        """The term of a word token; '' for a stop word."""
        known = self._known.get(word)
        if known is None:
            if word in self._stop:
                known = ""
            elif self._stemmer is None or (not word.isalpha() and word.isascii()):
                known = fold(word)
            else:
                known = fold(self._stemmer.stemWord(word))
            if len(self._known) < 200_000:
                self._known[word] = known
        return known

    def words(self, text: str) -> list[tuple[str, str]]:
        """(token as written after `normalise`, its term), in reading order, without stop words."""
        pairs: list[tuple[str, str]] = []
        for match in _TOKEN.finditer(normalise(text, self.language)):
            token = match[0]
            if match.lastgroup == "run":
                grams = [token] if len(token) == 1 else [token[i : i + 2] for i in range(len(token) - 1)]
                pairs.extend((gram, gram) for gram in grams if gram not in self._stop)
                continue
            term = token if match.lastgroup == "number" else self._term(token)
            if term:
                pairs.append((token, term))
        return pairs

    def terms(self, text: str) -> list[str]:
        """Terms in reading order, without stop words."""
        return [term for _, term in self.words(text)]


@lru_cache(maxsize=64)
def analyzer(language: str) -> Analyzer:
    """The analyser of a language, made once per process."""
    return Analyzer(language)


@lru_cache(maxsize=1)
def _function_words() -> dict[str, frozenset[str]]:
    return {language: stop_words(language) for language in languages() if language not in ("zh", "ja", "ko")}


def query_language(query: str, default: str = "") -> str:
    """ISO 639-1 code of a query; `default` when it is too short to tell.

    `documents.language` wants a page of text. In Latin and Cyrillic letters a query's language must hold more
    function and question words than any other, at least two, and at least a tenth of the words; other scripts
    decide alone.
    """
    letters = [c for c in query if c.isalpha()]
    if not letters:
        return default
    if sum(c < "\u0250" or "\u0400" <= c < "\u0530" for c in letters) * 2 < len(letters):
        return detect_language(query) or default
    words = re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", query).casefold())
    counts = {language: sum(w in stops for w in words) for language, stops in _function_words().items()}
    (best, most), (_, second) = sorted(counts.items(), key=lambda item: -item[1])[:2]
    return best if most >= 2 and most > second and most * 10 >= len(words) else default


def query_terms(query: str, language: str) -> list[str]:
    """Terms of a query put to documents in `language`: analysed in it, and in the query's own language if it differs.

    What is a stop word in either language is dropped ("die" asked in English of a German document is lost; the
    alternative would make German articles count for every English verb). A term that both analyses give counts once
    more only if it stands in the query more than once.
    """
    query = without_answer_form(query)
    own = query_language(query, language)
    terms = analyzer(language).terms(query)
    if own == language:
        return terms
    stop = stop_words(own)
    terms = [term for word, term in analyzer(language).words(query) if word not in stop]
    seen = set(terms)
    stop = stop_words(language)
    terms += [term for word, term in analyzer(own).words(query) if term not in seen and word not in stop]
    return terms


def document_language(texts: Iterable[str], language: str = "") -> str:
    """`language` if it is known, else what the pages' text looks like; '' when that says nothing."""
    return language or detect_language("\n".join(texts))
