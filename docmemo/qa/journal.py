"""The journal: what was asked and answered, durable before anything else happens.

SQLite in WAL mode with full synchronisation, so a killed process loses only what was in flight. It lies outside
DVC's outs at an absolute path and is keyed by everything that decides an answer, so switching parameters back
finds the earlier answers again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from docmemo.errors import ArtifactError
from docmemo.types import Failure
from docmemo.usage import Usage

M = TypeVar("M", bound=BaseModel)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, record TEXT NOT NULL, trace TEXT NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replies (
    key TEXT, round INTEGER, role TEXT, reply TEXT NOT NULL, PRIMARY KEY (key, round, role)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, failure TEXT NOT NULL, usage TEXT NOT NULL, attempts INTEGER NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Result:
    """A finished piece of work: records as JSON text, and the wall seconds it took."""

    record: str
    trace: str
    seconds: float


@dataclass(frozen=True)
class FailedAttempt:
    """The last failure of a key that has no result, with the spend of all its attempts."""

    failure: Failure
    usage: Usage
    attempts: int


class Journal:
    """One journal file. Every write is durable when the method returns.

    Args:
        path: absolute path of the SQLite file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise ValueError("the journal needs an absolute path: stages run in different folders")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ArtifactError(
                f"The journal {path} cannot be used: {error}.",
                remedy="Move it away (finished answers in it are then asked again) and run again.",
            ) from error

    def close(self) -> None:
        """Close the file; the journal cannot be used afterwards."""
        self._db.close()

    def results(self, keys: Iterable[str]) -> dict[str, Result]:
        """Finished work among `keys`."""
        found = {}
        for key in keys:
            row = self._db.execute("SELECT record, trace, seconds FROM results WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = Result(*row)
        return found

    def missing(self, keys: Iterable[str]) -> list[str]:
        """The keys without a result, in order."""
        execute = self._db.execute
        return [k for k in keys if execute("SELECT 1 FROM results WHERE key = ?", (k,)).fetchone() is None]

    def finish(self, key: str, record: BaseModel, trace: BaseModel | None, seconds: float) -> None:
        """Record a result; forgets the failures and replies that led to it. A second result is ignored."""
        body = record.model_dump_json()
        trail = trace.model_dump_json() if trace is not None else ""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)", (key, body, trail, seconds))
            self._db.execute("DELETE FROM failures WHERE key = ?", (key,))
            self._db.execute("DELETE FROM replies WHERE key = ?", (key,))
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def fail(self, key: str, failure: Failure, usage: Usage) -> None:
        """Record one failed attempt; spend adds up over attempts."""
        before = self.failures([key]).get(key)
        spent = usage + before.usage if before is not None else usage
        attempts = 1 + (before.attempts if before is not None else 0)
        self._db.execute(
            "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)",
            (key, failure.model_dump_json(), spent.model_dump_json(), attempts),
        )

    def failures(self, keys: Iterable[str]) -> dict[str, FailedAttempt]:
        """The last failures of keys that have no result."""
        found = {}
        for key in keys:
            row = self._db.execute("SELECT failure, usage, attempts FROM failures WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = FailedAttempt(
                    Failure.model_validate_json(row[0]), Usage.model_validate_json(row[1]), row[2]
                )
        return found

    def reply(self, key: str, round_number: int, role: str, model: type[M]) -> M | None:
        """A model's reply of an earlier, interrupted run."""
        row = self._db.execute(
            "SELECT reply FROM replies WHERE key = ? AND round = ? AND role = ?", (key, round_number, role)
        ).fetchone()
        return None if row is None else model.model_validate_json(row[0])

    def add_reply(self, key: str, round_number: int, role: str, reply: BaseModel) -> None:
        """Record a model's reply, so that an interrupted question goes on instead of starting again."""
        self._db.execute(
            "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)",
            (key, round_number, role, reply.model_dump_json()),
        )
