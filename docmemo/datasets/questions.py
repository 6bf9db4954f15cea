"""Rows of a question file (JSON lines, CSV, a benchmark's JSON) as `Question`s; all problems in one error."""

from __future__ import annotations

import csv
import difflib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docmemo.datasets import fields
from docmemo.datasets.base import gold_quirks, mark_duplicates, question_ids
from docmemo.datasets.fields import Problems
from docmemo.errors import DatasetError
from docmemo.types import Question

COLUMNS = (
    "question",
    "doc_id",
    "question_id",
    "answer",
    "references",
    "answer_format",
    "evidence_pages",
    "evidence_sources",
    "answerable",
    "doc_type",
    "page_window",
    "access_labels",
)

Row = tuple[int, dict[str, Any]]
"""Line (or row) number from 1, and the row's values by column."""


def read_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """Rows of a .jsonl or .csv file.

    Raises:
        DatasetError: if the file cannot be read, or its ending says it is neither.
    """
    ending = path.suffix.lower()
    if ending == ".jsonl":
        return fields.read_json_lines(path, problems)
    if ending == ".csv":
        return read_csv(path, problems)
    raise DatasetError(
        f"The questions file {path} is neither .jsonl nor .csv.",
        remedy="Name a .jsonl or .csv file in dataset.questions.",
    )


def read_csv(path: Path, problems: Problems, needed: Sequence[str] = ("question",)) -> Iterator[Row]:
    """Rows of a CSV file with a header, by column; blank cells are left out.

    Args:
        path: UTF-8; the cells are separated by what the header has most of: comma, semicolon, tab or `|`.
        problems: collects what is wrong with it.
        needed: columns it must have; if one is missing, that is the only problem reported.

    Raises:
        DatasetError: if the file cannot be read.
    """
    text = fields.read_text(path)
    header_line = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(",;\t|", key=header_line.count)  # spreadsheets of many countries write semicolons
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                repeated = sorted({name for name in header if name and header.count(name) > 1})
                if repeated:
                    problems.add(start, f"columns named twice: {', '.join(repeated)}.")
                    return
                if missing := missing_columns(header, needed):
                    problems.add(start, missing)
                    return
            elif len(cells) > len(header):
                problems.add(start, f"{len(cells)} cells under {len(header)} columns (a comma not in quotes?).")
            else:
                values = dict(zip(header, cells, strict=False))
                yield start, {name: cell for name, cell in values.items() if name and cell.strip()}
    except csv.Error as error:
        problems.add(line, f"not CSV: {error}.")


def missing_columns(header: Iterable[str], needed: Sequence[str]) -> str:
    """What to say of columns that lack a needed one: which, what was found and what is known; '' if none lacks."""
    found = list(header)
    missing = [name for name in needed if name not in found]
    if not missing:
        return ""
    listed = ", ".join(repr(name) for name in found if name) or "none"
    own = set(needed) <= set(COLUMNS)
    more = f" (known: {', '.join(COLUMNS)})" if own else ""
    lowered = {name.lower(): name for name in found}
    near = difflib.get_close_matches(missing[0], list(lowered), n=1, cutoff=0.7)
    hint = f" Rename {lowered[near[0]]!r} to {missing[0]!r}?" if near else ""
    names = ", ".join(repr(name) for name in missing)
    return f"no column {names}. Columns found: {listed}. Columns needed: {', '.join(needed)}{more}.{hint}"


def unknown_columns(rows: Iterable[Row], problems: Problems, known: Iterable[str] = COLUMNS) -> set[str]:
    """Columns that mean nothing here. One that looks like a slip of the pen becomes a problem instead."""
    names = list(known)
    unknown: dict[str, int] = {}
    for number, row in rows:
        for column in row.keys() - set(names):
            unknown.setdefault(column, number)
    harmless = set()
    for column, number in unknown.items():
        near = difflib.get_close_matches(column.strip().lower(), names, n=1, cutoff=0.8)
        if near:
            problems.add(number, f"unknown column {column!r}. Did you mean {near[0]!r}?")
        else:
            harmless.add(column)
    return harmless


def unrepeated_ids(rows: list[Row]) -> list[Row]:
    """The rows with a question_id that an earlier row has taken out of them, so that they get one of their own."""
    seen: set[str] = set()
    unrepeated: list[Row] = []
    for number, row in rows:
        name = str(row.get("question_id") or "")
        unrepeated.append((number, {**row, "question_id": None} if name in seen else row))
        seen.add(name)
    return unrepeated


def _parse_row(row: Mapping[str, Any], doc_id: str, complain: Callable[[str], None]) -> dict[str, Any]:
    """The fields of a Question but its id; what cannot be read goes to `complain` and stays out."""
    values: dict[str, Any] = {"doc_id": doc_id}

    def take(name: str, convert: Callable[[Any], Any]) -> None:
        try:
            values[name] = convert(row.get(name))
        except ValueError as error:
            complain(f"{error}.")

    take("question", lambda v: fields.as_text(v, "question"))
    take("answer", fields.as_answer)
    take("references", fields.as_references)
    take("answer_format", fields.as_answer_format)
    take("evidence_pages", fields.as_pages)
    take("evidence_sources", fields.as_sources)
    take("answerable", lambda v: fields.as_bool(v, "answerable"))
    take("doc_type", lambda v: fields.as_text(v, "doc_type").strip())
    take("page_window", fields.as_window)
    take(
        "access_labels",
        lambda v: [fields.as_text(i, "access_labels") for i in fields.as_list(v, "access_labels")],
    )
    if not values.get("question", "?").strip():
        complain("the question is empty.")
    answer, references = values.get("answer"), values.get("references", [])
    if answer is None and references:
        answer = values["answer"] = references[0]
    values["references"] = [reference for reference in references if reference != answer]
    if answer is not None and values.get("answerable") is None:
        values["answerable"] = not fields.is_not_answerable(answer)
    return values


def build_questions(
    rows: Iterable[Row], resolve: Callable[[Any], str], problems: Problems, *, strip: bool = False
) -> list[Question]:
    """Questions of the rows, in their order, with ids where the rows have none.

    Args:
        rows: numbered rows.
        resolve: what the row says of its document -> doc_id; raises ValueError with the reason it cannot.
        problems: collects everything wrong with the rows; the caller raises.
        strip: take white space off both ends of the question's text.
    """
    parsed: list[tuple[int, str, dict[str, Any], str]] = []
    for number, row in rows:

        def complain(message: str, number: int = number) -> None:
            problems.add(number, message)

        doc_id = ""
        try:
            doc_id = resolve(row.get("doc_id"))
        except ValueError as error:
            complain(f"{error}.")
        values = _parse_row(row, doc_id, complain)
        if strip and "question" in values:
            values["question"] = values["question"].strip()
        given = row.get("question_id")
        given_id = "" if given is None else str(given).strip()
        if given_id and not given_id.isprintable():
            complain("question_id holds characters that cannot be printed.")
        scope = {name: values.get(name) for name in ("page_window", "access_labels")}
        parsed.append((number, given_id, values, json.dumps(scope, sort_keys=True)))

    generated = question_ids(
        [(v["doc_id"], v.get("question", ""), tie) for _, _, v, tie in parsed if "question" in v]
    )
    fresh = iter(generated)
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for number, given_id, values, _ in parsed:
        if "question" not in values:
            continue
        question_id = next(fresh)
        question_id = given_id or question_id
        if question_id in seen:
            problems.add(
                number, f"question_id {question_id!r} is already used in {problems.unit} {seen[question_id]}."
            )
        seen.setdefault(question_id, number)
        question = Question(question_id=question_id, **values)
        questions.append(question.model_copy(update={"quirks": gold_quirks(question)}))
    return mark_duplicates(questions)
