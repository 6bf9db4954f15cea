"""The reranker that is a language model."""

from __future__ import annotations

import pytest

from docmemo.config import AnswerParams, LoopParams, ModelParams, Params
from docmemo.errors import ContextLengthError
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import ReadReply, RerankRequest
from docmemo.qa.rerank import VlmReranker
from docmemo.types import Candidate, Note, Question
from tests.qa.archives import make_document
from tests.qa.models import FakeModel, text_of

QUESTION = Question(question_id="q1", doc_id="d.pdf", question="How much water was sold?")
PARAMS = Params(answer=AnswerParams(reranker="vlm", reranker_model=ModelParams(id="fake")))
TEXTS = [f"The text of page {n} speaks of water" for n in range(1, 31)]


def request(view, **more) -> RerankRequest:
    values = {
        "question": QUESTION,
        "query": QUESTION.question,
        "view": view,
        "candidates": [Candidate(page=page, score=1 / page) for page in range(1, 21)],
        "keep": 4,
        "round": 1,
        "notes": (),
        "schema": view.schema,
    }
    return RerankRequest(**{**values, **more})


def reranker(model) -> VlmReranker:
    return VlmReranker(PARAMS, model=model)


async def test_the_pages_named_are_kept_in_their_order(tmp_path):
    model = FakeModel([{"reason": "x", "pages": [7, 3, 7]}])
    reply = await reranker(model).rerank(request(make_document(tmp_path, TEXTS, printed=2, tables=[3])))
    assert (reply.pages, reply.note, reply.fitting) == ([7, 3], "", None)
    assert '<candidate index="3" printed="1" carries="table">\nPage 3: The text of page 3' in model.text
    assert '<candidate index="21"' not in model.text
    assert "at most 4" in model.text


async def test_query_needs_and_notes_are_shown_where_there_are_some(tmp_path):
    model = FakeModel([{"pages": [1]}])
    notes = [Note(query="water", findings="nothing yet")]
    asked = request(
        make_document(tmp_path, TEXTS), query="cash; debt", needs=["cash", "debt"], notes=notes, schema=None
    )
    await reranker(model).rerank(asked)
    user = text_of(model.asked[0][0][1:])
    for part in ("<query>\ncash; debt", "<need>\ncash\n</need>\n<need>\ndebt", "Found: nothing yet"):
        assert part in user
    assert "<schema" not in user


async def test_a_reply_that_names_no_candidate_keeps_the_order_of_retrieval_and_says_so(tmp_path):
    view, model = make_document(tmp_path, TEXTS), FakeModel([{"pages": [99, 25]}])
    reply = await reranker(model).rerank(request(view))
    assert reply.pages == [1, 2, 3, 4, 99, 25]
    assert "named no candidate" in reply.note

    class Reader:
        async def read(self, request):
            return ReadReply(outcome="answer", answer="1")

    params = LoopParams(candidates=20, reranked=4)
    record, _ = await Loop(reranker(model), Reader(), Policy(params, PARAMS.belief)).answer(QUESTION, view)
    (first,) = record.rounds
    assert first.reranked == [c.page for c in first.candidates[:4]]
    assert "order of retrieval was kept. Pages that were no candidates were left out: 99, 25." in first.rerank_note


async def test_a_long_request_gets_shorter_summaries_then_fewer_sections(tmp_path):
    texts = [f"Page {n} " + "has a lot to say about water and its price " * 30 for n in range(1, 31)]
    view = make_document(tmp_path, texts, sections=60)
    summaries = dict(enumerate(texts, 1))
    view.__dict__["summaries"] = summaries
    full = FakeModel([{"pages": [1]}])
    await reranker(full).rerank(request(view))
    needed = full.count(*full.asked[0])
    model = FakeModel([{"pages": [1]}], room=needed // 2)
    reply = await reranker(model).rerank(request(view))
    assert reply.fitting.text_chars > 0
    assert (reply.fitting.pages, reply.fitting.limit) == ([], needed // 2)
    assert model.count(*model.asked[0]) <= needed // 2
    tight = FakeModel([{"pages": [1]}], room=3000)
    reply = await reranker(tight).rerank(request(view))
    assert reply.fitting.schema_sections > 0
    with pytest.raises(ContextLengthError, match="the rerank request of round 1"):
        await reranker(FakeModel([{"pages": [1]}], room=200)).rerank(request(view))


async def test_no_candidates_are_no_question(tmp_path):
    model = FakeModel()
    assert (await reranker(model).rerank(request(make_document(tmp_path, TEXTS), candidates=[]))).pages == []
    assert model.asked == []
