"""The rounds of one question: retrieve, rerank, accumulate, read, learn (docs/design.md, section 2).

A plain coroutine over the protocols of docmemo/qa/protocols.py; it knows nothing of Prefect, files or servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from docmemo.config import BeliefParams, LoopParams
from docmemo.errors import DatasetError, DocMemoError, ModelResponseError
from docmemo.memory.belief import Floats, section_numbers
from docmemo.memory.episodic import Episode
from docmemo.qa.ablations import plan
from docmemo.qa.controller import Controller
from docmemo.qa.corpus import DocumentView
from docmemo.qa.crops import choose_crops
from docmemo.qa.protocols import Reader, ReadReply, ReadRequest, Reranker, RerankReply, RerankRequest
from docmemo.qa.trace import RoundTrace, Trace
from docmemo.retrieval.candidates import similarity as to_similarity
from docmemo.types import AnswerRecord, Candidate, Citation, Question, RoundRecord
from docmemo.usage import Usage


@dataclass(frozen=True)
class Policy:
    """The parameters of the loop."""

    loop: LoopParams
    belief: BeliefParams
    seed: int = 0


def _ordered_unique(pages: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(pages))


def accept_feedback(reply: ReadReply, shown: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """U, V and what was dropped: pages the reader was not shown, and pages it called both."""
    useful, irrelevant = _ordered_unique(reply.useful), _ordered_unique(reply.irrelevant)
    both = set(useful) & set(irrelevant)
    allowed = set(shown) - both
    dropped = sorted({page for page in (*useful, *irrelevant) if page not in allowed})
    return [p for p in useful if p in allowed], [p for p in irrelevant if p in allowed], dropped


def _margin(similarity: Floats) -> float:
    """Lead of the best page over the next, in standard deviations of the similarity over the scope."""
    if similarity.size < 2:
        return 0.0
    best, second = np.sort(similarity)[::-1][:2]
    spread = float(similarity.std())
    return float((best - second) / spread) if spread > 0 else 0.0


@dataclass
class Loop:
    """Answers questions with one set of parts."""

    reranker: Reranker
    reader: Reader
    policy: Policy
    on_round: Callable[[RoundRecord], None] = lambda _record: None

    async def answer(self, question: Question, view: DocumentView) -> tuple[AnswerRecord, Trace]:
        """Run the rounds of one question.

        Raises:
            DocMemoError: whatever a part raised; the caller decides about retries and records failures. Its usage is
                what this attempt spent; replies that an earlier one paid for are left out.
        """
        run = _Run(self, question, view)
        while not run.finished:
            await run.one_round()
        return run.result()


class _Run:
    """The state of one question between rounds."""

    def __init__(self, loop: Loop, question: Question, view: DocumentView) -> None:
        self.parts = loop
        self.plan = plan(loop.policy.loop, loop.policy.belief)
        self.question, self.view = question, view
        self.pages = view.scope(question)
        if not self.pages:
            raise DatasetError(
                f"{question.question_id}: no page of {question.doc_id} is inside the window {question.page_window}.",
                remedy="Correct page_window in the questions file.",
            )
        self.controller = Controller(
            self.pages,
            self.plan.belief,
            loop.policy.seed,
            question.question_id,
            documents=view.documents_of(self.pages),
            sections=self._sections(),
            slots=self.plan.loop.evidence,
            learn=self.plan.learn,
        )
        self.query = question.question
        self.needs: list[str] = []
        self.episode = Episode()
        self.accumulated: list[int] = []
        self.records: list[RoundRecord] = []
        self.decision: ReadReply | None = None
        self.round = 0
        self.spent = Usage()
        """By this attempt: without replies that an earlier one paid for."""

    def _sections(self) -> list[int] | None:
        """The section of each page, where sections spread feedback."""
        params = self.plan.belief
        if params.section_gain == 0.0:
            return None
        return section_numbers(self.pages, self.view.schema.sections, params.section_pages)

    @property
    def last_round(self) -> bool:
        """Whether the current round is the last one."""
        return self.round >= self.plan.loop.rounds

    @property
    def finished(self) -> bool:
        """Whether the question has its decision and no round is still to be run."""
        goes_on = self.plan.loop.force_rounds or not self.plan.stop_early
        return self.decision is not None and (self.last_round or not goes_on)

    @property
    def read(self) -> set[int]:
        """Pages read so far."""
        return {page for record in self.records for page in record.evidence}

    def _earlier(self) -> list[int]:
        """Pages read so far, in the order they were first read."""
        return _ordered_unique([page for record in self.records for page in record.evidence])

    async def one_round(self) -> None:
        """Retrieve, rerank, read, learn."""
        try:
            await self._one_round()
        except DocMemoError as error:
            error.usage = self.spent + error.usage
            raise

    async def _one_round(self) -> None:
        self.round += 1
        await self.view.prepare(self.needs or [self.query])
        similarity = self._similarity()
        current = self.controller.start_round(self.query, similarity)
        record = RoundRecord(
            round=self.round, query=self.query, needs=self.needs, candidates=self._candidates(current)
        )
        shown: dict[str, Any] = {
            "question": self.question,
            "query": self.query,
            "view": self.view,
            "round": self.round,
            "notes": self.episode.notes if self.plan.show_notes else (),
            "schema": self.view.schema if self.plan.show_schema else None,
        }
        reranked = await self.parts.reranker.rerank(
            RerankRequest(candidates=record.candidates, keep=self.plan.loop.reranked, needs=self.needs, **shown)
        )
        self.spent += Usage() if reranked.replayed else reranked.usage
        self._choose(record, reranked)
        reply = await self.parts.reader.read(
            ReadRequest(
                evidence=record.evidence,
                crops=record.crops,
                earlier=[page for page in self._earlier() if page not in record.evidence],
                last_round=self.last_round,
                rounds=self.plan.loop.rounds,
                margin=_margin(similarity),
                **shown,
            )
        )
        self.spent += Usage() if reply.replayed else reply.usage
        record.usage = reranked.usage + reply.usage
        self._learn(record, reply)

    def _similarity(self) -> Floats:
        """c of this round; with separate needs the best of them a page, so that one does not bury another."""
        queries = self.needs or [self.query]
        scores = [to_similarity(self.view.retriever.score(query, self.pages)) for query in queries]
        return np.asarray(np.max(scores, axis=0), dtype=np.float64)

    def _choose(self, record: RoundRecord, reply: RerankReply) -> None:
        """P(t), A(t), E(t) and the crops of this round."""
        params = self.plan.loop
        offered = {candidate.page for candidate in record.candidates}
        named = _ordered_unique(reply.pages)
        record.reranked = [p for p in named if p in offered][: params.reranked]
        record.rerank_note, record.rerank_fitting = reply.note, reply.fitting
        if invented := [p for p in named if p not in offered]:
            said = f"Pages that were no candidates were left out: {', '.join(map(str, invented))}."
            record.rerank_note = f"{reply.note} {said}".strip()
        earlier = self.accumulated if self.plan.accumulate else []
        self.accumulated = _ordered_unique([*earlier, *record.reranked])
        record.evidence = self._within_budget(self.controller.ranked(self.accumulated))[: params.evidence]
        record.evidence += self._kept(record.evidence)
        record.crops = choose_crops(self.view, self.query, record.evidence, params.crops)

    def _kept(self, evidence: Sequence[int]) -> list[int]:
        """Useful pages of earlier rounds that are shown again beside this round's own (`loop.keep_useful`)."""
        useful = {page for record in self.records for page in record.useful} - set(evidence)
        return self.controller.best_first(sorted(useful))[: self.plan.loop.keep_useful]

    def _within_budget(self, pages: Sequence[int]) -> list[int]:
        """The pages in order, without new ones beyond the page budget."""
        budget = self.plan.loop.page_budget
        if budget is None:
            return list(pages)
        kept: list[int] = []
        left = budget - len(self.read)
        for page in pages:
            new = page not in self.read
            if not new or left > 0:
                kept.append(page)
                left -= new
        return kept

    def _candidates(self, current: RoundTrace) -> list[Candidate]:
        best = self.controller.candidates(self.plan.loop.candidates)
        where = {page: i for i, page in enumerate(self.pages)}
        return [Candidate(page=page, score=round(current.score[where[page]], 9)) for page in best]

    def _learn(self, record: RoundRecord, reply: ReadReply) -> None:
        if reply.shown is not None:  # what did not fit the model's context was not read
            record.evidence = [page for page in record.evidence if page in reply.shown]
        record.crops = record.crops if reply.crops is None else reply.crops
        record.fitting = reply.fitting
        record.useful, record.irrelevant, record.dropped = accept_feedback(reply, record.evidence)
        cited = {c.page for c in reply.citations} - self.read - set(record.evidence)
        record.dropped = sorted(cited | set(record.dropped))
        record.note, record.missing = reply.note, reply.missing
        self.controller.feedback(record.useful, record.irrelevant, record.evidence)
        self.episode = self.episode.add(self.query, reply.note, reply.missing)
        self.records.append(record)
        record.gated = reply.outcome == "not_answerable" and not self._gate_open()
        self.parts.on_round(record)
        if reply.outcome == "query_update" and self.last_round and self.decision is None:
            raise ModelResponseError(
                f"{self.question.question_id}: the reader asked for another query in the last round, "
                "which must decide."
            )
        decided = reply.outcome != "query_update" and not record.gated
        if decided and (self.decision is None or not self.plan.stop_early):
            self.decision = reply
        self.query = reply.query.strip() or self.query
        separate = self.plan.loop.separate_needs and len(reply.needs) > 1
        self.needs = [need.strip() for need in reply.needs if need.strip()] if separate else []

    def _gate_open(self) -> bool:
        """Whether "not found" may be taken for "not there": enough rounds and enough of the pages read."""
        params = self.plan.loop
        enough = self.round >= params.gate_rounds and len(self.read) >= params.gate_coverage * len(self.pages)
        return enough or self.last_round

    def _usage(self) -> Usage:
        return sum((record.usage for record in self.records), Usage())

    def _citations(self, reply: ReadReply) -> list[Citation]:
        """The citations of pages that were really read, with the label the page has."""
        return [
            c.model_copy(update={"label": self.view.citation_label(c.page)})
            for c in reply.citations
            if c.page in self.read
        ]

    def result(self) -> tuple[AnswerRecord, Trace]:
        """The record and the trace of the finished question."""
        reply, belief = self.decision, self.controller.belief
        assert reply is not None and belief is not None, "the loop ends with a decision"
        answered = reply.outcome == "answer"
        tried = ", ".join(repr(query) for query in dict.fromkeys(self.episode.queries))
        record = AnswerRecord(
            question_id=self.question.question_id,
            doc_id=self.question.doc_id,
            question=self.question.question,
            outcome="answer" if answered else "not_answerable",
            answer=reply.answer if answered else None,
            full_answer=reply.full_answer if answered else "",
            confidence=reply.confidence,
            confidence_score=reply.confidence_score if answered else None,
            reason=""
            if answered
            else f"Read {len(self.read)} of {len(self.pages)} pages; queries tried: {tried}. {reply.reason}".strip(),
            citations=self._citations(reply),
            rounds=self.records,
            usage=self._usage(),
        )
        trace = Trace(
            question_id=self.question.question_id,
            doc_id=self.question.doc_id,
            seed=self.parts.policy.seed,
            pages=self.pages,
            documents=list(self.controller.documents or ()),
            sections=list(self.controller.sections or ()),
            rounds=self.controller.rounds,
            a=belief.a.tolist(),
            b=belief.b.tolist(),
        )
        return record, trace
