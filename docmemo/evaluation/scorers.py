"""Rule scorers of the benchmarks, value for value, without ever running what a model wrote.

The rules are those of the benchmarks' own evaluation scripts (MMLongBench-Doc `eval/eval_score.py`,
LongDocURL `utils/utils_score_v3.py`), odd corners included, since published figures were made with them; here
they are written anew. The official scripts call `eval()` on a prediction that begins with `[`; here such text
is parsed as a literal, within bounds, and anything else in it (a name, a call) is no list. Where the official
script raises, the score is 0.
"""

from __future__ import annotations

import ast
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import isclose

from rapidfuzz.distance import Levenshtein

ANLS_THRESHOLD = 0.5
"""A similarity of this or less counts as 0 (Biten et al. 2019, Scene Text VQA, eq. 1)."""

_MAX_LITERAL_CHARS = 20_000
_MAX_LITERAL_DEPTH = 20

_NUMBER_LIKE = re.compile(r"\d+([-\s]\d+)?")
_DATE = re.compile(r"\d{4}[-\s]\d{2}([-\s]\d{2})?")
_EMAIL = re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

_UNITS = ("kg", "mm", "m", "meters", "acres", "minutes", "mile", "miles", "million", "thousand", "billion")
"""What LongDocURL takes off the end of an answer, one after the other."""


def anls(gold: str, prediction: str) -> float:
    """1 - edit distance / longer length, or 0 if that is at most `ANLS_THRESHOLD`; two empty texts give 1."""
    length = max(len(gold), len(prediction))
    similarity = 1.0 - (Levenshtein.distance(gold, prediction) / length if length else 0.0)
    return similarity if similarity > ANLS_THRESHOLD else 0.0


def _without_parentheses(text: str) -> str:
    """`text` without every `(...)` and the white space before it, in linear time for any input."""
    kept: list[str] = []
    position = 0
    while (opening := text.find("(", position)) >= 0 and (closing := text.find(")", opening)) >= 0:
        kept.append(text[position:opening].rstrip())
        position = closing + 1
    kept.append(text[position:])
    return "".join(kept)


def clean_text(value: object) -> str:
    """MMLongBench-Doc: lower case; no (parts in parentheses), outer quotes, leading `$` or trailing `%`."""
    return _stripped(str(value).lower().strip())


def clean_text_with_units(value: object) -> str:
    """LongDocURL: as `clean_text`, and no commas, no unit at the end, no leading pound sign.

    A unit is taken off as a set of letters (`str.rstrip`), as the official script does: "5 mmm" becomes "5".
    """
    text = str(value).lower().strip().replace(",", "")
    for unit in _UNITS:
        if text.endswith(unit):
            text = text.rstrip(unit).strip()
    return _stripped(text, currencies="$£")


def _stripped(text: str, currencies: str = "$") -> str:
    text = _without_parentheses(text).strip()
    if text[:1] in {"'", '"'}:
        text = text[1:]
    if text[-1:] in {"'", '"'}:
        text = text[:-1]
    for currency in currencies:
        text = text.strip().lstrip(currency)
    return text.strip().rstrip("%").strip()


def _needs_exact_match(gold: str) -> bool:
    """Whether a near miss of this cleaned gold answer is wrong: link, file, page, number, time, date."""
    return (
        "https://" in gold
        or gold.endswith((".py", "ipynb"))
        or gold.startswith("page")
        or "a.m." in gold
        or "p.m." in gold
        or any(pattern.fullmatch(gold) for pattern in (_NUMBER_LIKE, _DATE, _EMAIL))
    )


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _mmlongbench_int_score(gold: object, prediction: object) -> float:
    """1 when both are the same whole number; a prediction's decimals are cut off, as officially."""
    try:
        return float(int(str(gold)) == int(float(str(prediction))))
    except (ValueError, OverflowError):
        return 0.0


def _longdocurl_int_score(gold: object, prediction: object) -> float:
    """1 when both are the same whole number after cleaning; a prediction with decimals is wrong."""
    try:
        return float(int(clean_text_with_units(gold)) == int(clean_text_with_units(prediction)))
    except ValueError:
        return 0.0


def _decimals(value: float) -> int:
    text = str(value)
    return len(text.rsplit(".", 1)[-1]) if "." in text else 3


def _float_score(gold: str, prediction: str) -> float:
    """1 when the (cleaned) numbers agree within 1% or after rounding; gold is also tried times and over 100.

    Rounding is to the smaller number of decimals of the two, but to at least 2.
    """
    try:
        wanted, got = float(gold), float(prediction)
    except ValueError:
        return 0.0
    for item in (wanted / 100, wanted, wanted * 100):
        if isclose(item, got, rel_tol=0.01):
            return 1.0
        places = max(min(_decimals(got), _decimals(item)), 2)
        if round(got, places) == round(item, places):
            return 1.0
    return 0.0


def _text_score(gold: str, prediction: str) -> float:
    return float(gold == prediction) if _needs_exact_match(gold) else anls(gold, prediction)


class _NotALiteralError(ValueError):
    """The text begins like a list and is none."""


def _literal(text: str) -> object:
    """The value of a Python literal, parsed and never run.

    Raises:
        _NotALiteralError: if it is anything else, longer than 20,000 characters, or nested deeper than 20.
    """
    depth = deepest = 0
    for character in text[: _MAX_LITERAL_CHARS + 1]:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    # Brackets inside strings blur this count; the parser's own limits, caught below, are the second line.
    if len(text) > _MAX_LITERAL_CHARS or deepest > _MAX_LITERAL_DEPTH:
        raise _NotALiteralError("too long or too deeply nested")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in a model's answer are nobody's mistake here
            value: object = ast.literal_eval(text)
        str(value)  # a huge hexadecimal number parses and then cannot be written out
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise _NotALiteralError(str(error)) from error
    return value


def _as_list(value: object, *, keep_text: bool = False) -> list[object]:
    """A list as it is, text that begins with `[` as its literal, everything else as a list of one.

    Raises:
        _NotALiteralError: if such text is no literal, unless `keep_text`, which then keeps it as text.
    """
    if isinstance(value, str) and value.startswith("["):
        try:
            value = _literal(value)
        except _NotALiteralError:
            if not keep_text:
                raise
    return value if isinstance(value, list) else [value]


def _joined_scores(gold: list[str], prediction: list[str]) -> float | None:
    """The score of lists that must match exactly (the first gold element tells); None for free text."""
    if _is_float(gold[0]) or _needs_exact_match(gold[0]):
        return float("-".join(gold) == "-".join(prediction))
    return None


def _mmlongbench_list_score(gold: object, prediction: object) -> float:
    """Equal lengths are needed; both lists are sorted; the worst pair of elements counts."""
    try:
        wanted_items, got_items = _as_list(gold), _as_list(prediction)
    except _NotALiteralError:
        return 0.0
    if len(wanted_items) != len(got_items) or not wanted_items:
        return 0.0
    wanted = sorted(clean_text(item) for item in wanted_items)
    got = sorted(clean_text(item) for item in got_items)
    joined = _joined_scores(wanted, got)
    return min(map(anls, wanted, got)) if joined is None else joined


def _flatten_dicts(items: list[object]) -> list[object]:
    """Lists of dicts, judged by the first element, as their values joined by `-`.

    Raises:
        _NotALiteralError: if the list mixes dicts with something else.
    """
    if not isinstance(items[0], dict):
        return items
    flat: list[object] = []
    for item in items:
        if not isinstance(item, dict):
            raise _NotALiteralError("a list of dicts with something else in it")
        flat.append("-".join(str(value) for value in item.values()))
    return flat


def _longdocurl_list_score(gold: object, prediction: object) -> float:
    """Mean over gold elements of the best ANLS, times sqrt(gold length / prediction length) if below 1."""
    wanted_items, got_items = _as_list(gold, keep_text=True), _as_list(prediction, keep_text=True)
    if not wanted_items or not got_items:
        return 0.0
    try:
        wanted = [clean_text_with_units(item) for item in _flatten_dicts(wanted_items)]
        got = [clean_text_with_units(item) for item in _flatten_dicts(got_items)]
    except _NotALiteralError:
        return 0.0
    joined = _joined_scores(wanted, got)
    if joined is not None:
        return joined
    best = [max(anls(w, g) for g in got) for w in wanted]
    return float(sum(best) / len(wanted) * min(1.0, len(wanted) / len(got)) ** 0.5)


def score_mmlongbench(gold: str, prediction: str, answer_format: str) -> float:
    """The official rule score of MMLongBench-Doc.

    Args:
        gold: the gold answer as the benchmark writes it; lists are text that begins with `[`.
        prediction: the answer; "Not answerable" when there is none.
        answer_format: Str, Int, Float, List or None.

    Returns:
        0..1; 0.0 where the official script raises.

    Raises:
        ValueError: if `answer_format` is none of these.
    """
    return _score(gold, prediction, answer_format, _MMLONGBENCH)


def score_longdocurl(gold: object, prediction: str, answer_format: str) -> float:
    """The official rule score of LongDocURL; arguments, value and error as `score_mmlongbench`.

    The gold answer may be text, a number, a list, or a list of dicts; formats are Integer, Float, String,
    List, None (Int and Str are understood too).
    """
    return _score(gold, prediction, answer_format, _LONGDOCURL)


@dataclass(frozen=True)
class _Rules:
    """How one benchmark cleans text and compares whole numbers and lists."""

    clean: Callable[[object], str]
    int_score: Callable[[object, object], float]
    list_score: Callable[[object, object], float]


_MMLONGBENCH = _Rules(clean_text, _mmlongbench_int_score, _mmlongbench_list_score)
_LONGDOCURL = _Rules(clean_text_with_units, _longdocurl_int_score, _longdocurl_list_score)


def _score(gold: object, prediction: str, answer_format: str, rules: _Rules) -> float:
    match answer_format:
        case "Int" | "Integer":
            return rules.int_score(gold, prediction)
        case "Float":
            return _float_score(rules.clean(gold), rules.clean(prediction))
        case "Str" | "String" | "None":
            return _text_score(rules.clean(gold), rules.clean(prediction))
        case "List":
            return rules.list_score(gold, prediction)
        case _:
            raise ValueError(
                f"Unknown answer format {answer_format!r}. Known: Int, Integer, Float, Str, String, List, None."
            )


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces (Rajpurkar et al. 2016, SQuAD)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def token_f1(gold: str, prediction: str) -> float:
    """F1 of the tokens two answers share, after `normalize_answer`; 0..1 (SQuAD; used for PaperTab)."""
    wanted, got = normalize_answer(gold).split(), normalize_answer(prediction).split()
    shared = sum((Counter(wanted) & Counter(got)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(got), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class Scorer:
    """A rule with its version: raise the version when a score can change."""

    name: str
    version: int
    score: Callable[[str, str, str], float]
    """(gold, prediction, answer format) -> 0..1."""

    @property
    def id(self) -> str:
        """Name and version as records carry it, e.g. "mmlongbench/1"."""
        return f"{self.name}/{self.version}"


SCORERS: dict[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer("mmlongbench", 1, score_mmlongbench),
        Scorer("longdocurl", 1, score_longdocurl),
        Scorer("token_f1", 1, lambda gold, prediction, _format: token_f1(gold, prediction)),
    )
}


def get_scorer(name: str) -> Scorer:
    """The scorer of this name, with or without its version.

    Raises:
        KeyError: naming the known scorers, if there is none.
    """
    for scorer in SCORERS.values():
        if name in (scorer.name, scorer.id):
            return scorer
    raise KeyError(f"Unknown scorer {name!r}. Known: {', '.join(s.id for s in SCORERS.values())}.")
