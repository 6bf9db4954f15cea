"""metrics/history.csv: the accepted runs, one line each, as far as they were recorded (`docmemo accept --record`).

The history that needs no such file is in git itself: see `run_history`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from docmemo.artifacts import write_atomic
from docmemo.errors import ArtifactError

HISTORY = "metrics/history.csv"


@dataclass(frozen=True)
class HistoryRow:
    """A line of metrics/history.csv: one accepted run. None is unknown."""

    date: str = field(metadata={"text": True})
    """Of the commit, ISO 8601."""
    revision: str = field(metadata={"text": True})
    """The commit."""
    accuracy: float | None = None
    """By the rule."""
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    judge: float | None = None
    """Accuracy by the LLM judge."""
    f1: float | None = None
    recall: float | None = None
    """Evidence recall after the last round."""
    recall_low: float | None = None
    recall_high: float | None = None
    all_hit: float | None = None
    n: int | None = field(default=None, metadata={"whole": True})
    """Questions."""
    n_failed: int | None = field(default=None, metadata={"whole": True})
    cost_usd: float | None = None
    models: str = field(default="", metadata={"text": True})
    """Digest of the model lock."""
    dataset: str = field(default="", metadata={"text": True})
    """Digest of the dataset: lines with another one are another series."""


HISTORY_COLUMNS = tuple(f.name for f in fields(HistoryRow))


def read_history(path: Path) -> list[HistoryRow]:
    """The accepted runs of metrics/history.csv, oldest first; none when there is no such file.

    Raises:
        ArtifactError: if a line is not what `append_history` writes.
    """
    if not path.is_file():
        return []
    found = []
    for number, raw in enumerate(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))), 2):
        try:
            found.append(HistoryRow(**{f.name: _cell(raw[f.name], f.metadata) for f in fields(HistoryRow)}))
        except (KeyError, ValueError) as error:
            raise ArtifactError(
                f"{path}, line {number}: {type(error).__name__}: {error}.",
                remedy="`git checkout` the file, or remove the line.",
            ) from error
    return found


def _cell(text: str, metadata: Mapping[str, Any]) -> Any:
    if metadata.get("text"):
        return text
    if text == "":
        return None
    return int(text) if metadata.get("whole") else float(text)


def append_history(path: Path, row: HistoryRow) -> bool:
    """Add a line, unless the last one is of the same commit. Returns whether it was added."""
    rows = read_history(path)
    if rows and rows[-1].revision == row.revision:
        return False
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, HISTORY_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None else v for k, v in asdict(r).items()} for r in (*rows, row))
    write_atomic(path, buffer.getvalue().encode())
    return True
