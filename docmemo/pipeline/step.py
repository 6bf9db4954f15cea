"""What a per-document offline step is: a pure function of a document, parameters and model versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from docmemo.pipeline.pool import WorkPool
from docmemo.types import Document
from docmemo.usage import Usage

WHOLE = 0
"""Stands for the document as a whole where a page is named."""


@dataclass(frozen=True)
class Job:
    """One document's work for one step."""

    document: Document
    source: Path
    """The PDF file, or the folder of page images."""
    inputs: Mapping[str, Path]
    """Artifacts of the steps it needs, by step name."""


@dataclass
class StepResult:
    """What happened while an artifact was written."""

    failures: dict[int, str] = field(default_factory=dict)
    """Page (or WHOLE) to the reason why it is missing from the artifact, or made in another way than was asked."""
    storable: bool = True
    """False when a timeout, a worker's death or a model's absence left a hole, so that it must not be reused."""
    waiting: str = ""
    """Why a model did not do its part this time; not '': the stage must not be taken as finished."""
    usage: Usage | None = None
    """What models cost; None where none was asked."""
    used: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the step's key that came out otherwise (a smaller batch); it is filed under what was used."""


class Step(Protocol):
    """One offline stage. Implementations are small frozen objects built from params and the model lock."""

    @property
    def name(self) -> str:
        """Stage name, e.g. "render"."""

    @property
    def suffix(self) -> str:
        """Ending of its artifacts, e.g. ".pages.zip"."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the steps whose artifacts it reads."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules whose code decides the result (their digest is part of the key)."""

    def key(self, job: Job) -> Mapping[str, Any]:
        """Everything but the code that decides the result: document digest or upstream content, params, models."""

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Write the artifact to `target` (a temporary path).

        Raises:
            DocumentError: if the document as a whole cannot be processed.
        """
