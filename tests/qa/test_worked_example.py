"""The worked example of docs/design.md, section 2, computed there by hand, run through the real loop."""

from __future__ import annotations

import pytest

from docmemo.config import BeliefParams, LoopParams
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import ReadReply
from docmemo.types import Question
from tests.qa.test_loop import FirstPages, ScriptedReader, view

TABLE = {
    "first": {1: 1.0, 2: 0.5, 3: 0.0, 4: 0.25, 5: 0.0},
    "second": {1: 0.0, 2: 0.5, 3: 1.0, 4: 0.0, 5: 0.5},
}
BELIEF = BeliefParams(policy="mean", prior_strength=1.0, radius=1, decay=0.5, schedule=(0.0, 0.5), query_slots=0)


async def run(reading: str):
    reader = ScriptedReader(
        [
            ReadReply(outcome="query_update", query="second", useful=[2], irrelevant=[1]),
            ReadReply(outcome="answer", answer="42", useful=[3] if reading == "unread_first" else [2]),
        ]
    )
    policy = Policy(LoopParams(reranked=2, evidence=2, rounds=2), BELIEF.model_copy(update={"reading": reading}))
    question = Question(question_id="q", doc_id="d", question="first")
    return await Loop(FirstPages(), reader, policy).answer(question, view(TABLE, n_pages=5))


@pytest.mark.parametrize("reading", ["by_belief", "unread_first"])
async def test_two_rounds_by_hand(reading: str) -> None:
    record, trace = await run(reading)
    one, two = trace.rounds
    assert one.a == pytest.approx([2, 1.5, 1, 1.25, 1])
    assert one.b == pytest.approx([1, 1.5, 2, 1.75, 2])
    assert one.score == one.similarity == [1.0, 0.5, 0.0, 0.25, 0.0]
    assert record.rounds[0].evidence == [1, 2]

    assert two.a == pytest.approx([2.5, 2.5, 1.5, 1.25, 1])
    assert two.b == pytest.approx([2, 1.5, 2, 1.75, 2])
    assert two.draw == pytest.approx([0.5556, 0.625, 0.4286, 0.4167, 0.3333], abs=5e-5)
    assert two.score == pytest.approx([0.2778, 0.5625, 0.7143, 0.2083, 0.4167], abs=5e-5)
    assert record.rounds[1].reranked == ([3, 2] if reading == "by_belief" else [3, 5])


async def test_the_paper_reads_the_best_by_belief_again() -> None:
    record, _ = await run("by_belief")
    assert record.rounds[1].evidence == [2, 1]


async def test_unread_pages_first_reads_what_the_second_query_found() -> None:
    record, trace = await run("unread_first")
    assert record.rounds[1].evidence == [3, 5]
    assert trace.a == pytest.approx([2.5, 3.0, 2.5, 1.75, 1])
    assert trace.b == pytest.approx([2, 1.5, 2, 1.75, 2])
