"""The journal of paid calls: every usable reply, durable before anybody sees it.

A key is the request itself: what identifies the model and its sampling, the messages (images by the digest of their
bytes) and the schema. So an interrupted run, another checkout or a second stage pays for the same request once, and
gets the same usage in its records. A reply that could not be used is not recorded.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from docmemo.errors import ArtifactError
from docmemo.fingerprint import digest
from docmemo.models.chat import Image, Message
from docmemo.models.structured import json_schema
from docmemo.usage import Usage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, usage TEXT NOT NULL, repaired INTEGER NOT NULL, model TEXT NOT NULL
) WITHOUT ROWID;
"""


def request_key(identity: Mapping[str, Any], messages: Sequence[Message], schema: type[BaseModel]) -> str:
    """Digest of all that decides a reply; address, key, concurrency and limits decide none and are left out."""
    said = [
        [m.role, [[p.sha256, p.width, p.height] if isinstance(p, Image) else p for p in m.parts]] for m in messages
    ]
    return digest({"model": identity, "messages": said, "schema": [schema.__name__, json_schema(schema)]})


@dataclass(frozen=True)
class PaidCall:
    """A recorded reply."""

    text: str
    """JSON text of the value."""
    usage: Usage
    repaired: bool


class CallJournal:
    """One journal file (SQLite, WAL, fully synchronised); usable from several processes and threads.

    Args:
        path: absolute path of the file; its folder is made.

    Raises:
        ArtifactError: if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._reading = threading.Lock()
        try:
            self._read = self._connect()
            self._write = self._connect()
            self._write.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        self._waiting: list[tuple[tuple[str, str, str, int, str], bool, Future[bool]]] = []
        self._waiting_lock = threading.Lock()
        self._broken: ArtifactError | None = None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="docmemo-calls")

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=60.0, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        return database

    def _unusable(self, error: Exception) -> ArtifactError:
        return ArtifactError(
            f"The journal of paid calls {self.path} cannot be used: {error}.",
            remedy="Free space, or move the file away (its replies are then paid for again), and run again.",
        )

    def check(self) -> None:
        """Make sure that a reply paid for now could be recorded.

        Raises:
            ArtifactError: if an earlier one could not.
        """
        if self._broken is not None:
            raise ArtifactError(self._broken.message, remedy=self._broken.remedy)

    def find(self, key: str) -> PaidCall | None:
        """The recorded reply to a request.

        Raises:
            ArtifactError: if the file cannot be read.
        """
        try:
            with self._reading:
                row = self._read.execute("SELECT text, usage, repaired FROM calls WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        return None if row is None else PaidCall(row[0], Usage.model_validate_json(row[1]), bool(row[2]))

    async def record(self, key: str, call: PaidCall, model: str, *, replace: bool = False) -> PaidCall:
        """Record a reply; durable when this returns.

        A thread writes, so other calls go on meanwhile, and what has come up by then goes into one transaction: on a
        slow disk replies do not queue up for a synchronisation each.

        Args:
            key: of the request.
            call: the reply.
            model: its id, for people who look into the file.
            replace: overwrite an earlier record that can no longer be read.

        Returns:
            what is recorded now: another process may have been first, and both then give the same reply.

        Raises:
            ArtifactError: if it cannot be written, e.g. on a full disk.
        """
        row = (key, call.text, call.usage.model_dump_json(), int(call.repaired), model)
        written: Future[bool] = Future()
        written.set_running_or_notify_cancel()  # a paid reply is written although nobody waits for it any more
        with self._waiting_lock:
            self._waiting.append((row, replace, written))
        self._writer.submit(self._flush)
        mine = await asyncio.wrap_future(written)
        return call if mine else self.find(key) or call

    def _flush(self) -> None:
        """Write everything that waits, in one transaction."""
        with self._waiting_lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            self._write.execute("BEGIN IMMEDIATE")
            changed = []
            for row, replace, _ in waiting:
                verb = "REPLACE" if replace else "IGNORE"
                done = self._write.execute(f"INSERT OR {verb} INTO calls VALUES (?, ?, ?, ?, ?)", row)
                changed.append(done.rowcount == 1)
            self._write.execute("COMMIT")
        except sqlite3.Error as error:
            if self._write.in_transaction:
                self._write.execute("ROLLBACK")
            self._broken = self._unusable(error)
            for _, _, written in waiting:
                written.set_exception(self._unusable(error))
            return
        for (_, _, written), mine in zip(waiting, changed, strict=True):
            written.set_result(mine)


@lru_cache(maxsize=8)
def _opened(path: Path, process: int) -> CallJournal:  # noqa: ARG001 - a forked process needs its own
    return CallJournal(path)


def call_journal(folder: Path) -> CallJournal:
    """The process's journal in a folder (`Settings.journal_dir`).

    Raises:
        ArtifactError: if the file cannot be used.
    """
    return _opened((folder / "calls.sqlite").absolute(), os.getpid())
