"""What the HTML pages share: the template environment, and marks on a question's terms. All text is escaped."""

from __future__ import annotations

import json
import re
from typing import Any

import Stemmer
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from docmemo.evaluation.terminal import limits, percent
from docmemo.evaluation.thumbnails import Thumbnail

_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]")
_PLAIN_WORDS = """
    a an and are as at be by did do does document for from had has have how in is it its many much of on or page
    that the their there these they this to was were what when where which who whose why with
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words of a question that are not marked in quotes."""


def environment() -> Environment:
    """Templates of docmemo/evaluation/templates, everything escaped, with the filters they share."""
    made = Environment(
        loader=PackageLoader("docmemo.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = percent
    made.filters["pretty_json"] = lambda value: json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)
    made.globals["limits"] = limits
    return made


def thumbnail_rule(thumbnail: Thumbnail, name: str) -> Markup:
    """The CSS rule that gives class `name` the picture, so that a page shown often is embedded once."""
    return Markup(".{0}{{background-image:url({1});aspect-ratio:1/{2:.4f}}}\n").format(
        name, Markup(thumbnail.uri), thumbnail.ratio
    )


def mark_terms(quote: str, question: str) -> Markup:
    """`quote`, escaped, with the question's terms in `<mark>`: words by English stem, CJK text by shared bigrams."""
    stemmer = Stemmer.Stemmer("english")
    terms: set[str] = set()
    for word in _WORD.findall(question.casefold()):
        if _CJK.search(word):
            terms.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in _PLAIN:
            terms.add(stemmer.stemWord(word))
    parts: list[Markup] = []
    position = 0
    for match in _WORD.finditer(quote):
        parts.append(escape(quote[position : match.start()]))
        parts.append(_mark_word(match.group(), terms, stemmer))
        position = match.end()
    parts.append(escape(quote[position:]))
    return Markup("").join(parts)


def _mark_word(word: str, terms: set[str], stemmer: Any) -> Markup:
    folded = word.casefold()
    if not _CJK.search(word):
        marked = stemmer.stemWord(folded) in terms
        return Markup("<mark>{}</mark>").format(word) if marked else escape(word)
    covered = [False] * len(word)
    for i in range(len(word) - 1):
        if folded[i : i + 2] in terms:
            covered[i] = covered[i + 1] = True
    parts = [
        Markup("<mark>{}</mark>").format(char) if mark else escape(char)
        for char, mark in zip(word, covered, strict=True)
    ]
    return Markup("").join(parts).replace(Markup("</mark><mark>"), Markup(""))
