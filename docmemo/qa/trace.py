"""The trace of a question: every number the controller used, enough to replay it bit for bit."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from docmemo.artifacts import artifact_name, read_json, write_atomic
from docmemo.fingerprint import canonical_json
from docmemo.types import Record


class RoundTrace(Record):
    """Arrays over the pages in scope, in the order of `Trace.pages`."""

    round: int
    query: str
    weight: float
    """l_t, the weight of belief in this round."""
    similarity: list[float]
    """c_i of this round's query, in [0, 1]."""
    a: list[float]
    """Beta parameters the round selected with, before its own feedback."""
    b: list[float]
    draw: list[float]
    """th_i: a draw, the posterior mean, or the similarity where no belief is used."""
    score: list[float]
    explored: int | None = None
    """The page that policy explore_one reads by a draw in this round."""
    read: list[int] = Field(default_factory=list)
    """E(t), best first."""
    useful: list[int] = Field(default_factory=list)
    irrelevant: list[int] = Field(default_factory=list)


class Trace(Record):
    """One file of data/answers/traces."""

    question_id: str
    doc_id: str
    seed: int
    pages: list[int]
    """Pages in scope, ascending."""
    documents: list[int] = Field(default_factory=list)
    """Which document each page is of; [] for a single document."""
    sections: list[int] = Field(default_factory=list)
    """Number of each page's section, -1 for none; [] where sections spread nothing."""
    rounds: list[RoundTrace] = Field(default_factory=list)
    a: list[float] = Field(default_factory=list)
    """Beta parameters after the last round."""
    b: list[float] = Field(default_factory=list)


def trace_path(folder: Path, question_id: str) -> Path:
    """Where the trace of a question lies."""
    return folder / artifact_name(question_id, ".json")


def write_trace(folder: Path, trace: Trace) -> None:
    """Write one trace as compact JSON; floats keep every bit."""
    text = canonical_json(trace.model_dump(mode="json"))
    write_atomic(trace_path(folder, trace.question_id), f"{text}\n".encode())


def read_trace(folder: Path, question_id: str) -> Trace:
    """The trace of a question.

    Raises:
        ArtifactError: if there is none.
    """
    return read_json(trace_path(folder, question_id), Trace)
