"""What the loop asks of its parts. A part is anything with these few methods; backends are chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field, model_validator

from docmemo.qa.corpus import DocumentView
from docmemo.types import Candidate, Citation, Fitting, Note, PageCrop, Question, Record, SchemaMemory
from docmemo.usage import Usage


@dataclass(frozen=True)
class RerankRequest:
    """Candidates of one round, to be cut to the pages worth reading."""

    question: Question
    query: str
    view: DocumentView
    candidates: Sequence[Candidate]
    """Best first."""
    keep: int
    round: int
    notes: Sequence[Note]
    """Episodic memory; empty when it is hidden."""
    schema: SchemaMemory | None
    """Schema memory; None when it is hidden."""
    needs: Sequence[str] = ()
    """Separate things the query is made of; empty when it is one."""


class RerankReply(Record):
    """Pages to read, best first."""

    pages: list[int]
    note: str = ""
    """What was odd about the reply; '' when nothing was."""
    fitting: Fitting | None = None
    """What was left out of the request so that it fits; None when nothing was."""
    usage: Usage = Field(default_factory=Usage)
    replayed: bool = False
    """Whether an earlier attempt or run paid for it."""


@dataclass(frozen=True)
class ReadRequest:
    """Evidence of one round."""

    question: Question
    query: str
    view: DocumentView
    evidence: Sequence[int]
    """Pages to read, best first."""
    crops: Sequence[PageCrop]
    notes: Sequence[Note]
    schema: SchemaMemory | None
    round: int
    last_round: bool
    """The reader must decide: answer or not_answerable."""
    margin: float
    """By how many standard deviations of similarity the top page leads the next; 0 with a single page."""
    earlier: Sequence[int] = ()
    """Pages read in earlier rounds and not shown again."""
    rounds: int = 1
    """T, the most rounds the question gets."""


class ReadReply(Record):
    """Exactly one of answer, not_answerable, query_update; always the useful and irrelevant pages."""

    outcome: Literal["answer", "not_answerable", "query_update"]
    answer: str | None = None
    """In its short form."""
    full_answer: str = ""
    """In full sentences."""
    confidence: Literal["low"] | None = None
    confidence_score: float | None = Field(None, ge=0, le=1)
    citations: list[Citation] = Field(default_factory=list)
    query: str = ""
    """The refined query of a query_update."""
    needs: list[str] = Field(default_factory=list, max_length=3)
    """Separate things it looks for, each a query of its own; a need may name a page, figure, table or section."""
    note: str = ""
    """What was found."""
    missing: str = ""
    """What is still missing."""
    reason: str = ""
    """Why not_answerable."""
    useful: list[int] = Field(default_factory=list)
    irrelevant: list[int] = Field(default_factory=list)
    shown: list[int] | None = None
    """Pages of the evidence that were really shown, in its order; None: all."""
    crops: list[PageCrop] | None = None
    """Crops that were really shown; None: all."""
    fitting: Fitting | None = None
    """What was left out of the request so that it fits; None when nothing was."""
    usage: Usage = Field(default_factory=Usage)
    replayed: bool = False
    """Whether an earlier attempt or run paid for it."""

    @model_validator(mode="after")
    def _one_outcome(self) -> ReadReply:
        if self.outcome == "answer" and not (self.answer or "").strip():
            raise ValueError("an answer must say something")
        if self.outcome == "query_update" and not self.query.strip():
            raise ValueError("a query_update must name the next query")
        return self


class Reranker(Protocol):
    """Chooses the pages to read."""

    async def rerank(self, request: RerankRequest) -> RerankReply:
        """At most `request.keep` of the candidates, best first."""


class Reader(Protocol):
    """Reads the evidence and decides."""

    async def read(self, request: ReadRequest) -> ReadReply:
        """One round's reply.

        Raises:
            ModelError: retryable or not, with the usage spent.
        """
