"""metrics/ablations.json: what the table beside it was made with, and the curves by round of each configuration.

It says whether metrics/ablations.csv belongs to a run, so that a report shows no table of another dataset.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from docmemo.artifacts import read_json
from docmemo.config import Params
from docmemo.errors import ArtifactError
from docmemo.evaluation.ablations import CSV_COLUMNS, Configuration
from docmemo.fingerprint import digest
from docmemo.types import Record

TABLE = "ablations.csv"
RECORD = "ablations.json"
ROLES = ("embedder", "summarizer", "schema", "reranker", "reasoner")
"""Roles whose models decide the figures."""

Curve = dict[str, float | None]
"""Round, as text, to a value 0..1."""


class Curves(Record):
    """One configuration's evidence by round, over all questions with gold pages."""

    recall_at_round: Curve
    all_hit_at_round: Curve


class AblationRecord(Record):
    """The content of metrics/ablations.json."""

    dataset: str
    """Digest of the dataset."""
    parameters: str
    """Digest of the full method's parameters (`parameters_digest`)."""
    models: str
    """Digest of the models (`models_digest`)."""
    code: str
    evidence_finder: bool
    """Whether answers are the embedded reader's extracts."""
    n_questions: int
    n_documents: int
    curves: dict[str, Curves] = Field(default_factory=dict)
    """Configuration to its curves, at its natural stop; of fixed_rounds that is every round."""


@dataclass(frozen=True)
class AblationTable:
    """The table and what it was made with."""

    record: AblationRecord
    rows: Sequence[Mapping[str, Any]]
    """Lines of the CSV: names as text, figures as numbers, None where a cell is empty."""

    def row(self, configuration: str, metric: str) -> Mapping[str, Any] | None:
        """A configuration's line of a metric; None if it is not there."""
        return next((r for r in self.rows if (r["configuration"], r["metric"]) == (configuration, metric)), None)

    @property
    def configurations(self) -> list[str]:
        """Names in the table's order, without the line of counts."""
        return list(dict.fromkeys(r["configuration"] for r in self.rows if r["configuration"] != "questions"))


def parameters_digest(params: Params) -> str:
    """Digest of what decides the full method's answers: no dataset, no report, no ablation, no forced rounds."""
    full = params.model_copy(
        update={"loop": params.loop.model_copy(update={"ablation": "none", "force_rounds": False})}
    )
    return digest(full.model_dump(mode="json", by_alias=True, exclude={"dataset", "report"}))


def models_digest(lock: Mapping[str, Any]) -> str:
    """Digest of the lock's entries that decide the figures."""
    return digest({role: lock.get(role) for role in ROLES})


def curves_of(configurations: Sequence[Configuration]) -> dict[str, Curves]:
    """The curves that metrics/ablations.json keeps."""
    return {
        c.name: Curves(**{name: c.scores["evidence"][name] for name in Curves.model_fields}) for c in configurations
    }


def read_ablations(folder: Path) -> AblationTable | None:
    """The table in `folder`; None when there is none, or none that says what it belongs to.

    Raises:
        ArtifactError: if a file is damaged.
    """
    table, record = folder / TABLE, folder / RECORD
    if not table.is_file() or not record.is_file():
        return None
    known = read_json(record, AblationRecord)
    try:
        lines = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
        rows = [{name: _cell(name, line[name]) for name in CSV_COLUMNS} for line in lines]
    except (KeyError, ValueError) as error:
        raise ArtifactError(
            f"{table} is not what this version writes: {type(error).__name__}: {error}.",
            remedy="Run `make ablations`.",
        ) from error
    return AblationTable(known, rows)


def _cell(name: str, text: str) -> str | float | None:
    if name in ("configuration", "metric"):
        return text
    return float(text) if text else None
