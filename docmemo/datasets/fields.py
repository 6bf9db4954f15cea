"""Reading question files that people and benchmarks wrote: their encoding, and values in the right shape."""

from __future__ import annotations

import ast
import codecs
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from docmemo.errors import DatasetError
from docmemo.types import NOT_ANSWERABLE, AnswerFormat, EvidenceSource

_SHOWN = 10
_LITERAL_LIMIT = 20_000
"""Longest text handed to `ast.literal_eval`, in characters; a list of pages is far shorter."""

_FORMATS: dict[str, AnswerFormat] = {
    "str": "Str",
    "string": "Str",
    "int": "Int",
    "integer": "Int",
    "float": "Float",
    "list": "List",
    "none": "None",
}

_SOURCES: dict[str, EvidenceSource] = {
    "text": "text",
    "pure-text (plain-text)": "text",
    "layout": "layout",
    "generalized-text (layout)": "layout",
    "table": "table",
    "chart": "chart",
    "figure": "figure",
}


class Problems:
    """Everything that is wrong with one file, reported in one error."""

    def __init__(self, path: Path, unit: str = "line") -> None:
        self.path = path
        self.unit = unit
        self._found: list[tuple[int, str]] = []

    def add(self, number: int, message: str) -> None:
        """Note a problem at a line (or row); 0 means the file as a whole."""
        self._found.append((number, message))

    def __bool__(self) -> bool:
        return bool(self._found)

    def raise_if_any(self) -> None:
        """Report what was noted.

        Raises:
            DatasetError: naming the file and its first problems with their lines, if there are any.
        """
        if not self._found:
            return
        found = sorted(self._found, key=lambda item: item[0])
        lines = [f"{self.unit} {number}: {text}" if number else text for number, text in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"... and {len(found) - _SHOWN} more.")
        noun = "problem" if len(found) == 1 else "problems"
        raise DatasetError(
            f"{self.path} has {len(found)} {noun}:\n  " + "\n  ".join(lines) + "\n",
            remedy="Correct the file and run again; nothing has been processed.",
        )


def read_text(path: Path) -> str:
    """A UTF-8 file (with or without byte order mark).

    Raises:
        DatasetError: if it is missing, unreadable or in another encoding.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise DatasetError(
            f"{path} {reason}.", remedy="Check dataset.root and dataset.questions in params.yaml."
        ) from error
    remedy = "Save it as UTF-8 and run again."
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DatasetError(f"{path} is encoded as UTF-16, not UTF-8.", remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DatasetError(
            f"{path} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}.", remedy=remedy
        ) from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def parse_json(text: str) -> Any:
    """JSON without NaN and infinities.

    Raises:
        ValueError: saying what is wrong.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("not usable JSON: nested too deeply") from error


def read_json_lines(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line that is not blank; what is no JSON object becomes a problem."""
    for number, line in enumerate(re.split(r"\r\n|\n|\r", read_text(path)), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            problems.add(number, f"{error}.")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            problems.add(number, f"a JSON object is wanted, not {type(value).__name__}.")


def as_text(value: Any, what: str) -> str:
    """A text value, '' for None.

    Raises:
        ValueError: if it is no text, or text that cannot be written as UTF-8.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{what} must be text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} holds half of a character (an unpaired surrogate)") from error
    return value


def as_answer(value: Any) -> str | None:
    """A gold answer as text; numbers and lists as Python writes them, None and '' as None."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"answer must be text, a number or a list, not {value!r}")
    text = value if isinstance(value, str) else str(value)
    return as_text(text, "answer") if text.strip() else None


def as_references(value: Any) -> list[str]:
    """Further acceptable gold answers: a list, text holding one, or text with `|` between them.

    Commas and semicolons do not separate, since answers contain them. Blank items and repetitions are left out.
    """
    if isinstance(value, str) and not value.strip().startswith("["):
        value = [item.strip() for item in value.split("|")]
    answers = [as_answer(item) for item in as_list(value, "references")]
    return list(dict.fromkeys(answer for answer in answers if answer is not None))


def as_answer_format(value: Any) -> AnswerFormat | None:
    """An answer format in any case; None when there is none. Raises ValueError listing the known ones."""
    name = as_text(value, "answer_format").strip()
    if not name:
        return None
    if name.lower() not in _FORMATS:
        raise ValueError(f"unknown answer_format {name!r} (known: Str, Int, Float, List, None)")
    return _FORMATS[name.lower()]


def as_bool(value: Any, what: str) -> bool | None:
    """true/false, yes/no or 1/0; None when empty."""
    if value is None or isinstance(value, bool):
        return value
    name = str(value).strip().lower()
    if name in ("true", "yes", "1", "false", "no", "0", ""):
        return None if not name else name in ("true", "yes", "1")
    raise ValueError(f"{what} must be true or false, not {value!r}")


def as_list(value: Any, what: str) -> list[Any]:
    """A list given as a list, as text holding a JSON or Python list, or as items between ; or , signs.

    Text is read by `ast.literal_eval`, which evaluates literals only.
    """
    if value is None or value == "":
        return []
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return [value]
    text = value.strip()
    if not text.startswith(("[", "(")):
        return [part.strip() for part in re.split("[;,]", text) if part.strip()]
    try:
        if len(text) > _LITERAL_LIMIT:
            raise ValueError("too long")
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{what} is not a list: {text[:60]!r}") from error
    return list(parsed) if isinstance(parsed, list | tuple) else [parsed]


def as_pages(value: Any, what: str = "evidence_pages") -> list[int]:
    """Page numbers, 1-based; 0 is let through, because a benchmark uses it."""
    pages = []
    for item in as_list(value, what):
        is_digits = isinstance(item, str) and item.isascii() and item.isdigit() and len(item) < 10
        if isinstance(item, bool) or not (is_digits or (isinstance(item, int) and 0 <= item < 10**9)):
            raise ValueError(f"{what} must hold page numbers, not {item!r}")
        pages.append(int(item))
    return pages


def as_window(value: Any) -> tuple[int, int] | None:
    """First and last page in scope, as [3, 8], "3;8" or "3-8"; None when empty."""
    if isinstance(value, str):
        value = re.sub(r"^\s*(\d+)\s*[-–]\s*(\d+)\s*$", r"\1;\2", value)
    pages = as_pages(value, "page_window")
    if not pages:
        return None
    if len(pages) != 2 or not 1 <= pages[0] <= pages[1]:
        raise ValueError(f"page_window must be a first and a last page from 1 on, not {value!r}")
    return pages[0], pages[1]


def as_sources(value: Any) -> list[EvidenceSource]:
    """Evidence sources by our names or MMLongBench-Doc's. Raises ValueError listing the known ones."""
    sources: list[EvidenceSource] = []
    for item in as_list(value, "evidence_sources"):
        name = str(item).strip()
        if name.lower() not in _SOURCES:
            raise ValueError(f"unknown evidence source {name!r} (known: {', '.join(sorted(_SOURCES))})")
        sources.append(_SOURCES[name.lower()])
    return list(dict.fromkeys(sources))


def is_not_answerable(answer: str) -> bool:
    """Whether a gold answer says that there is none."""
    return answer.strip().rstrip(".").lower() == NOT_ANSWERABLE.lower()
