"""The human check: which judged answers a person looks at, and the marks they gave.

A mark is kept as ids and digests only, never text, so the files may be shared. It belongs to one answer: when the
answer, the question or the gold changes, so does the digest, and the mark counts no longer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError

from docmemo.errors import ArtifactError, BusyError, ConfigError
from docmemo.evaluation.agreement import right
from docmemo.evaluation.cases import Case
from docmemo.fingerprint import digest
from docmemo.types import Record

MarkName = Literal["right", "wrong", "skip", "undo"]
_REVIEWER = re.compile(r"\w[\w.-]{0,39}")


class Mark(Record):
    """A line of a reviewer's file."""

    question_id: str
    answer: str
    """Digest of what was marked (`answer_digest`)."""
    mark: MarkName
    """undo takes back the last mark of the question."""
    at: str
    """When, ISO 8601, UTC."""


def answer_digest(case: Case) -> str:
    """Digest of what a person judges: question, gold and answer. Left out: how the answer came about, and scores."""
    answer = case.answer
    return digest(
        {
            "question": case.question.question,
            "gold": [case.question.answer, *case.question.references],
            "outcome": answer.outcome if answer else "failed",
            "answer": answer.answer if answer else None,
            "full_answer": answer.full_answer if answer else "",
        }
    )


def judged(cases: Iterable[Case]) -> list[Case]:
    """Cases a check can be about: ran to the end, with a gold answer, and called right or wrong by rule or judge."""
    return [c for c in cases if not c.failed and (c.score is not None or c.verdict is not None)]


def stratum(case: Case) -> tuple[str, ...]:
    """Outcome, what rule and judge say, format of the gold answer, kinds of evidence."""
    said = ["none" if v is None else "right" if right(v) else "wrong" for v in (case.score, case.verdict)]
    question = case.question
    return (case.state, *said, question.answer_format or "unknown", "+".join(sorted(question.evidence_sources)))


def draw(cases: Iterable[Case], n: int, seed: int) -> list[Case]:
    """A stratified random sample of `judged` cases, in the random order they are shown in; all of them if fewer.

    Cases are laid out stratum by stratum, at random within each, and every (N / n)-th is taken from a random start:
    each stratum gets its share to within one, and every case has the same chance, so figures over the sample need no
    weights. Whoever stops early has seen a random part.

    Raises:
        ConfigError: if n is less than 1.
    """
    if n < 1:
        raise ConfigError(f"A sample of {n} answers is none.", remedy="Ask for at least one.")
    order = {
        c.question.question_id: digest({"seed": seed, "question": c.question.question_id}) for c in judged(cases)
    }
    found = sorted(
        (c for c in judged(cases)), key=lambda c: (*stratum(c), order[c.question.question_id], c.question.question_id)
    )
    if n < len(found):
        step = len(found) / n
        start = int(digest({"seed": seed, "what": "start"})[:8], 16) / 16**8 * step
        found = [found[int(start + i * step)] for i in range(n)]
    return sorted(found, key=lambda c: order[c.question.question_id])


@dataclass(frozen=True)
class Marked:
    """The last word on one question that still stands."""

    answer: str
    mark: Literal["right", "wrong", "skip"]


class Marks:
    """One reviewer's marks, in a JSON-lines file. A mark is on the disk when `add` returns.

    Args:
        folder: where the files of all reviewers lie; made when the first mark is given.
        reviewer: name, part of the file's name.

    Raises:
        ConfigError: if the name cannot be part of a file's name.
        ArtifactError: if the file is damaged.
    """

    def __init__(self, folder: Path, reviewer: str) -> None:
        if not _REVIEWER.fullmatch(reviewer):
            raise ConfigError(
                f"{reviewer!r} cannot be a reviewer's name.",
                remedy="Use up to 40 letters, digits, dots, hyphens and underscores.",
            )
        self.reviewer = reviewer
        self.path = folder / f"{reviewer}.jsonl"
        self._lines = _read(self.path)
        self._lock = FileLock(f"{self.path}.lock")

    def hold(self) -> None:
        """Keep others from writing this file until this process ends or `release`.

        Raises:
            BusyError: if another process does.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise BusyError(
                f"Another process writes the marks of {self.reviewer!r}.", remedy="End it, or use another --reviewer."
            ) from error
        self._lines = _read(self.path)

    def release(self) -> None:
        """Let others write."""
        self._lock.release()

    def standing(self) -> dict[str, Marked]:
        """Question id to its last mark, undone ones left out."""
        stacks: dict[str, list[Marked]] = {}
        for line in self._lines:
            stack = stacks.setdefault(line.question_id, [])
            if line.mark != "undo":
                stack.append(Marked(line.answer, line.mark))
            elif stack:
                stack.pop()
        return {name: stack[-1] for name, stack in stacks.items() if stack}

    def add(self, case: Case, mark: MarkName) -> None:
        """Write a mark."""
        line = Mark(
            question_id=case.question.question_id,
            answer=answer_digest(case),
            mark=mark,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as handle:
            if _torn(self.path):
                handle.write(b"\n")
            handle.write(json.dumps(line.model_dump(mode="json"), sort_keys=True).encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        self._lines.append(line)


def _torn(path: Path) -> bool:
    """Whether the file ends inside a line, as a process killed while writing leaves it."""
    with path.open("rb") as handle:
        if handle.seek(0, os.SEEK_END) == 0:
            return False
        handle.seek(-1, os.SEEK_END)
        return handle.read(1) != b"\n"


def _read(path: Path) -> list[Mark]:
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    found = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                found.append(Mark.model_validate_json(line))
        except ValidationError as error:
            if number >= len(lines) or line.strip()[-1:] != b"}":
                continue  # cut off by a kill: that mark was never confirmed
            raise ArtifactError(
                f"{path}, line {number} is no mark: {error.errors()[0]['msg']}.", remedy="Correct or remove the line."
            ) from error
    return found


def reviewers(folder: Path) -> list[str]:
    """Names of all who have a file in `folder`."""
    return sorted(path.stem for path in folder.glob("*.jsonl") if _REVIEWER.fullmatch(path.stem))


def counted(cases: Sequence[Case], marks: Mapping[str, Marked]) -> list[tuple[Case, bool]]:
    """Cases with a mark of their present answer, and whether a person called it right."""
    return [
        (case, mark.mark == "right")
        for case in judged(cases)
        if (mark := marks.get(case.question.question_id))
        and mark.mark != "skip"
        and mark.answer == answer_digest(case)
    ]


def outdated(cases: Sequence[Case], marks: Mapping[str, Marked]) -> int:
    """Marks right or wrong that count no longer: their answer changed, failed, is gone, or has no score any more."""
    return sum(mark.mark != "skip" for mark in marks.values()) - len(counted(cases, marks))


@dataclass
class Session:
    """One sitting: what is left to mark, and the way back."""

    sample: Sequence[Case]
    marks: Marks

    def __post_init__(self) -> None:
        standing = self.marks.standing()
        skipped, fresh = [], []
        self._past: list[Case] = []
        for case in self.sample:
            mark = standing.get(case.question.question_id)
            if mark is None or mark.answer != answer_digest(case):
                fresh.append(case)
            elif mark.mark == "skip":
                skipped.append(case)
        self._queue = [*fresh, *skipped]

    @property
    def current(self) -> Case | None:
        """The case to mark now; None when all are done."""
        return self._queue[0] if self._queue else None

    @property
    def done(self) -> int:
        """Cases of the sample that are marked right or wrong."""
        return len(counted(self.sample, self.marks.standing()))

    @property
    def left(self) -> int:
        """Cases still to come in this sitting, the current one included."""
        return len(self._queue)

    @property
    def can_undo(self) -> bool:
        """Whether this sitting has a mark to take back."""
        return bool(self._past)

    def mark(self, mark: Literal["right", "wrong", "skip"]) -> None:
        """Mark the current case and go on. A skipped one comes again in the next sitting."""
        case = self._queue[0]
        self.marks.add(case, mark)
        self._past.append(self._queue.pop(0))

    def undo(self) -> bool:
        """Take back the last mark of this sitting and show its case again; False when there is none."""
        if not self._past:
            return False
        case = self._past.pop()
        self.marks.add(case, "undo")
        self._queue.insert(0, case)
        return True
