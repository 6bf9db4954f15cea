"""The main language of a text: by script, and by frequent words among languages in Latin or Cyrillic letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_SAMPLE = 200_000
"""Characters looked at."""

_SCRIPTS = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "ARABIC": "ar",
    "HEBREW": "he",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "DEVANAGARI": "hi",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}

_WORDS = {
    "en": "the of and to in is that for with on as are by this be it from at which was not or have an we were",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch werden bei wird",
    "fr": "de la le et les des en un du une que est pour qui dans par plus sur au pas avec sont ce aux ou se",
    "es": "de la que el en y los del se las por un para con no una su al lo como más es pero sus son entre",
    "it": "di e il la che in un per è del una con non sono le da si dei della alla al nel anche più gli come",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao das são pela",
    "nl": "de het een en van in is dat op te zijn voor met die niet aan er om ook als dan bij door worden naar",
    "sv": "och i att det som en på är av för med den till inte har de om ett men var vi kan från eller så",
    "da": "og i at det er en til på som med for af den de ikke der har et var vi kan blev fra eller også ved",
    "no": "og i det er på som en til av for med at ikke har de den et var vi kan ble fra eller også hvor etter",
    "fi": "ja on ei että oli se hän joka mutta ovat myös kun niin tai sekä olla voi mukaan kuin jos ole sen jotka",
    "pl": "i w na z do się nie że jest to o jak po od za dla przez oraz przy są był może który które lub tym",
    "tr": "ve bir bu da de için ile olarak daha çok olan gibi kadar en ne ya sonra ancak her değil göre veya",
    "ro": "de și în a la cu pe că din nu o un care este mai pentru se au fost sau prin sunt ca ale fi lui",
    "hu": "a az és hogy nem is egy van volt meg de el csak már még ez ha vagy mint kell lehet által szerint",
    "cs": "a se v na je že s z do i o to k ve jako pro za by jsou jeho po tak od při byl nebo která který",
    "ca": "de la i el que a en els per un les del amb una no es al són més com dels va ha aquest també o",
    "id": "yang dan di dengan untuk dari dalam ini itu pada tidak adalah ke akan oleh atau juga sebagai dapat",
}
_CYRILLIC = {
    "ru": "и в не на что с по как это из для от но его к или при был также они так которые ы",
    "uk": "і в не на що з до та як це для від але його або при був також вони є які її ї",
    "bg": "и в не на че с по като това от за но е се да са към или при ще които ъ",
    "sr": "и у не на да се је с по као за од али или при био који су та што ј",
}
_STOP = {lang: frozenset(words.split()) for lang, words in _WORDS.items()}
_STOP_CYRILLIC = {lang: frozenset(words.split()) for lang, words in _CYRILLIC.items()}


def _script(char: str) -> str:
    if char.isascii():
        return "LATIN"
    return unicodedata.name(char, "").split(" ")[0]


def _by_words(words: list[str], lists: dict[str, frozenset[str]]) -> str:
    """The language whose frequent words are the largest share; '' below 5% (lists, formulas, code)."""
    if not words:
        return ""
    counts = Counter(words)
    shares = {lang: sum(counts[w] for w in stop) / len(words) for lang, stop in lists.items()}
    best = max(sorted(shares), key=lambda lang: shares[lang])
    return best if shares[best] >= 0.05 and sum(counts[w] > 0 for w in lists[best]) >= 3 else ""


def detect_language(text: str) -> str:
    """ISO 639-1 code of the main language of `text`; '' when it cannot be told."""
    text = text[:_SAMPLE]
    letters = Counter(_script(c) for c in text if c.isalpha())
    if not letters:
        return ""
    weights: Counter[str] = Counter()
    for script, count in letters.items():
        # one ideograph says about as much as three letters
        weights[script] = count * 3 if script in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else count
    east = weights["CJK"] + weights["HIRAGANA"] + weights["KATAKANA"]
    script = max(sorted(weights), key=lambda s: weights[s])
    if east > 0 and east >= weights[script]:
        return "ja" if (letters["HIRAGANA"] + letters["KATAKANA"]) > 0.1 * letters["CJK"] else "zh"
    words = re.findall(r"[^\W\d_]+", text.lower())
    if script == "LATIN":
        return _by_words(words, _STOP)
    if script == "CYRILLIC":
        return _by_words(words, _STOP_CYRILLIC) or "ru"
    if script == "ARABIC":
        return "fa" if sum(c in "پچژگ" for c in text) > 0.02 * letters["ARABIC"] else "ar"
    return _SCRIPTS.get(script, "")
