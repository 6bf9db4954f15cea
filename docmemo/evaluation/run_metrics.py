"""What one version's metrics/ says, read from git or from the working tree."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from docmemo.errors import DocMemoError
from docmemo.evaluation.revisions import WORKING_TREE, Repository, Revision

SCORES = "metrics/scores.json"
PROVENANCE = "metrics/provenance.json"
QUESTIONS = "metrics/questions.csv"

SLICE_COLUMNS = ("doc_type", "text_layer", "evidence_sources", "answerable")
"""Columns of metrics/questions.csv that say what a question is; runs of older versions lack them."""


class IncomparableError(DocMemoError):
    """Two runs cannot be compared: other dataset, judge or scorer, or no figures to compare."""

    exit_code = 3


@dataclass(frozen=True)
class QuestionRow:
    """A row of metrics/questions.csv."""

    question_id: str
    doc_id: str
    outcome: str
    rule: float | None
    """Rule score as accuracy counts it: 0 when failed, None when unscored or without gold answer."""
    judge: float | None
    """LLM verdict (1 right, 0 wrong), counted likewise."""
    answered: bool
    """Whether an answer other than "Not answerable" was given."""
    answer_format: str
    gold_pages: int
    rounds: int
    pages_read: int
    calls: int | None
    tokens: int | None
    recall: tuple[float, ...] = ()
    """Share of the gold pages read up to round 1, 2, ..; () without gold pages."""
    all_hit: tuple[float, ...] = ()
    answerable: bool | None = None
    """None: no gold answer, or unknown."""
    doc_type: str | None = None
    """None: the run is older than the column."""
    text_layer: str = ""
    sources: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the question failed."""
        return self.outcome == "failed"


@dataclass(frozen=True)
class RunMetrics:
    """The figures of one version."""

    revision: Revision
    scores: Mapping[str, Any]
    provenance: Mapping[str, Any]
    questions: Mapping[str, QuestionRow]
    columns: frozenset[str] = field(default_factory=frozenset)
    """Of metrics/questions.csv."""

    @property
    def has_slices(self) -> bool:
        """Whether the rows say what kind of question each is."""
        return self.columns.issuperset(SLICE_COLUMNS)

    @property
    def has_judge(self) -> bool:
        """Whether a language model judged any answer."""
        return any(q.judge is not None and not q.failed for q in self.questions.values())

    @property
    def evidence_finder(self) -> bool:
        """Whether the embedded evidence finder read."""
        answer = self.provenance.get("params", {}).get("answer", {})
        return bool(answer.get("reader") == "embedded")


def load_run(repository: Repository, name: str | None) -> RunMetrics:
    """The figures of a revision or experiment; of the working tree when `name` is None.

    Raises:
        RevisionError: if there is no such revision.
        IncomparableError: if it holds no figures, or files that are not what they should be.
    """
    revision = repository.resolve(name) if name is not None else Revision(WORKING_TREE)
    contents = {path: repository.read(revision, path) for path in (SCORES, PROVENANCE, QUESTIONS)}
    missing = [path for path, content in contents.items() if content is None]
    if missing:
        remedy = "`docmemo runs` lists the revisions with figures." if name else "Run `dvc repro` first."
        raise IncomparableError(f"{revision.label} has no {', '.join(missing)}.", remedy=remedy)
    scores, provenance = (_json(contents[path], path, revision) for path in (SCORES, PROVENANCE))
    questions, columns = _questions(contents[QUESTIONS] or b"", revision)
    return RunMetrics(revision, scores, provenance, questions, columns)


def parse_object(content: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None when it is none."""
    try:
        value = json.loads(content or b"")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json(content: bytes | None, path: str, revision: Revision) -> dict[str, Any]:
    value = parse_object(content)
    if value is None:
        raise IncomparableError(f"{path} of {revision.label} is no JSON object.", remedy="Run `dvc repro` there.")
    return value


def _questions(content: bytes, revision: Revision) -> tuple[dict[str, QuestionRow], frozenset[str]]:
    reader = csv.DictReader(io.StringIO(content.decode("utf-8", errors="replace"), newline=""))
    columns = frozenset(reader.fieldnames or ())
    found: dict[str, QuestionRow] = {}
    for number, raw in enumerate(reader, 2):
        try:
            row = _row(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise IncomparableError(
                f"{QUESTIONS} of {revision.label}, line {number}: {type(error).__name__}: {error}.",
                remedy="The file is not one that `dvc repro` wrote; run it there.",
            ) from error
        if row.question_id in found:
            raise IncomparableError(f"{QUESTIONS} of {revision.label} has question {row.question_id!r} twice.")
        found[row.question_id] = row
    return found, columns


def _row(raw: Mapping[str, str]) -> QuestionRow:
    failed, answerable = raw["outcome"] == "failed", raw.get("answerable", "")
    # A failed question counts 0, but only where there is a gold answer to compare with.
    no_gold = failed and "answerable" in raw and answerable == ""
    counted = {
        name: None if no_gold else 0.0 if failed else _number(raw[column])
        for name, column in (("rule", "rule_score"), ("judge", "judge"))
    }
    return QuestionRow(
        question_id=raw["question_id"],
        doc_id=raw["doc_id"],
        outcome=raw["outcome"],
        rule=counted["rule"],
        judge=counted["judge"],
        answered=raw["answered"] == "1" if "answered" in raw else raw["outcome"] == "answer",
        answer_format=raw["answer_format"],
        gold_pages=int(raw["gold_pages"]),
        rounds=int(raw["rounds"]),
        pages_read=int(raw["pages_read"]),
        calls=_whole(raw.get("calls", "")),
        tokens=_whole(raw.get("tokens", "")),
        recall=_curve(raw, "recall_round_"),
        all_hit=_curve(raw, "all_hit_round_"),
        answerable=answerable == "1" if answerable else None,
        doc_type=raw.get("doc_type"),
        text_layer=raw.get("text_layer", ""),
        sources=tuple(filter(None, raw.get("evidence_sources", "").split(";"))),
    )


def _number(cell: str) -> float | None:
    return float(cell) if cell != "" else None


def _whole(cell: str) -> int | None:
    return int(cell) if cell != "" else None


def _curve(raw: Mapping[str, str], prefix: str) -> tuple[float, ...]:
    rounds = sorted(int(m[1]) for name in raw if name and (m := re.fullmatch(rf"{prefix}(\d+)", name)))
    return tuple(float(raw[f"{prefix}{t}"]) for t in rounds if raw[f"{prefix}{t}"] != "")
