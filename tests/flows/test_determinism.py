"""The same run gives the same bytes, whatever the concurrency and the order in which replies come."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from docmemo.config import AnswerParams, BeliefParams, LoopParams, Params
from docmemo.errors import ModelUnavailableError
from docmemo.qa.answering import Answering
from docmemo.qa.corpus import Corpus, DocumentView
from docmemo.qa.journal import Journal
from docmemo.qa.protocols import ReadReply, RerankReply
from docmemo.types import Citation, Document, LayoutSet, Page, PageSet, Question, SchemaMemory
from flows.ablations import with_ablation
from flows.answer import Pending, answering_work, batch_work
from flows.tasks import run_all
from stages.answer import write_answers

DOCUMENTS = ["a.pdf", "b.pdf", "c.pdf", "broken.pdf"]
QUESTIONS = [
    Question(question_id=f"{doc_id}-{number}", doc_id=doc_id, question=f"Question {number} about {doc_id}?")
    for doc_id in DOCUMENTS
    for number in range(6)
]
PARAMS = Params(
    belief=BeliefParams(policy="thompson"),
    loop=LoopParams(candidates=12, reranked=4, evidence=3),
    answer=AnswerParams(reader=f"{__name__}:DawdlingReader", reranker=f"{__name__}:DawdlingReranker", seed=5),
)
CLOCK = random.SystemRandom()
finished: list[str] = []
"""Questions in the order in which they were decided."""


def _share(*parts: object) -> float:
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 255


class DawdlingReranker:
    """Keeps the best candidates, each time after a time of its own."""

    def __init__(self, params):
        pass

    async def rerank(self, request):
        await asyncio.sleep(CLOCK.random() * 0.004)
        return RerankReply(pages=[c.page for c in request.candidates[: request.keep]])


class DawdlingReader:
    """Decides by a digest of what it is shown, each time after a time of its own."""

    def __init__(self, params):
        pass

    async def read(self, request):
        await asyncio.sleep(CLOCK.random() * 0.008)
        name, shown = request.question.question_id, list(request.evidence)
        named = {
            "useful": [page for page in shown if _share(name, page) < 0.4],
            "irrelevant": [page for page in shown if _share(name, page) > 0.7],
        }
        if not request.last_round and _share(name, request.query, *shown) < 0.8:
            return ReadReply(outcome="query_update", query=f"{request.query} and {shown[0]}", **named)
        finished.append(name)
        return ReadReply(outcome="answer", answer=str(shown), citations=[Citation(page=shown[0])], **named)


class HashedScores:
    """A score for every query and page, the same every time."""

    def score(self, query, pages):
        return np.array([_share(query, page) for page in pages])


def open_view(doc_id: str) -> DocumentView:
    """A document of thirty pages."""
    made = DocumentView(doc_id, SimpleNamespace(layout=None), SimpleNamespace())
    made.__dict__.update(
        page_set=PageSet(doc_id=doc_id, sha256="", pages=[Page(page=number) for number in range(1, 31)]),
        retriever=HashedScores(),
        schema=SchemaMemory(doc_id=doc_id),
        layout=LayoutSet(doc_id=doc_id),
        index=SimpleNamespace(language="en", idf_of=lambda term: 1.0),
    )
    return made


def answering(params: Params = PARAMS) -> Answering:
    """One configuration over the documents; the last of them failed."""
    return Answering(
        params=params,
        models={},
        documents={doc_id: Document(doc_id=doc_id, path=doc_id, sha256=doc_id) for doc_id in DOCUMENTS},
        failed={"broken.pdf": "It is empty. Replace the file."},
        content={},
        corpus=Corpus(open_view, keep=2),
    )


async def answers_of(
    folder: Path, concurrency: int, *, keys: Sequence[str] = (), params: Params = PARAMS
) -> dict[str, bytes]:
    """Run all questions with an empty journal; the bytes of every file written, by name."""
    made = answering(params)
    journal = Journal(folder / "journal.sqlite")
    named = {question.question_id: made.key(question) for question in QUESTIONS}
    pending = {named[question.question_id]: Pending(question, made) for question in QUESTIONS}
    finished.clear()
    order = list(keys or pending)
    await run_all(order, answering_work(pending, journal), concurrency, lambda _key, _error: None)
    write_answers(QUESTIONS, named, journal, folder / "out")
    journal.close()
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    return {path.relative_to(folder / "out").as_posix(): path.read_bytes() for path in files}


async def test_order_and_concurrency_change_no_byte_of_answers_and_traces(tmp_path: Path) -> None:
    first = await answers_of(tmp_path / "one", 1)
    in_order = list(finished)
    keys = [answering().key(question) for question in QUESTIONS]
    again = await answers_of(tmp_path / "again", 1, keys=keys[::-1])
    many = await answers_of(tmp_path / "many", 16)
    shuffled = list(finished)
    twice = await answers_of(tmp_path / "twice", 16)
    assert in_order == [q.question_id for q in QUESTIONS if q.doc_id != "broken.pdf"]
    assert sorted(shuffled) == sorted(in_order)
    assert shuffled != in_order, "replies really came in another order"
    assert len(first) == 1 + len(in_order), "answers.jsonl and a trace of every question that ran"
    assert first == again == many == twice
    records = [json.loads(line) for line in first["answers.jsonl"].splitlines()]
    assert [r["outcome"] for r in records].count("failed") == 6
    assert len({len(r["rounds"]) for r in records if r["rounds"]}) > 1, "questions stop in different rounds"


async def test_another_seed_draws_otherwise_so_that_the_comparison_can_fail(tmp_path: Path) -> None:
    other = PARAMS.model_copy(update={"answer": PARAMS.answer.model_copy(update={"seed": 6})})
    first = await answers_of(tmp_path / "one", 16)
    assert await answers_of(tmp_path / "other", 16, params=other) != first


async def test_a_batch_tried_again_asks_only_what_is_missing(tmp_path: Path, monkeypatch) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    question = QUESTIONS[0]
    made = {name: answering(with_ablation(PARAMS, name)) for name in ("full", "static", "no_bayes")}
    pending = {a.key(question): Pending(question, a) for a in made.values()}
    assert len(pending) == 3, "every configuration has a key of its own"
    refused = made["static"]

    async def refuse(*_arguments):
        raise ModelUnavailableError("the server refused")

    monkeypatch.setattr(refused, "answer", refuse)
    work = batch_work({"batch": list(pending)}, answering_work(pending, journal), journal)
    with pytest.raises(ModelUnavailableError):
        await work("batch")
    assert journal.missing(pending) == [refused.key(question)], "the others had their turn"
    monkeypatch.undo()
    finished.clear()
    await work("batch")
    assert (journal.missing(pending), len(finished)) == ([], 1)
    journal.close()
