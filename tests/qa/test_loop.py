"""The loop keeps the outcome contract whatever reader and reranker do."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from docmemo.config import BeliefParams, LoopParams
from docmemo.errors import ModelResponseError, ModelUnavailableError
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import ReadReply, RerankReply
from docmemo.types import Citation, Fitting, LayoutSet, Page, PageSet, Question, SchemaMemory
from docmemo.usage import Usage

QUESTION = Question(question_id="q1", doc_id="d", question="what is it?", answer="secret gold", evidence_pages=[7])


class FakeRetriever:
    """Scores pages by a table: query to page to score."""

    def __init__(self, table):
        self.table = table

    def score(self, query, pages):
        scores = self.table.get(query, {})
        return np.array([float(scores.get(page, 0.0)) for page in pages])


def view(table, n_pages=10, **more):
    """A document view with nothing but what the loop reads."""
    from docmemo.qa.corpus import DocumentView

    made = DocumentView("d", SimpleNamespace(layout=None), SimpleNamespace())
    pages = [Page(page=i + 1, printed=str(i - 1) if i > 1 else "") for i in range(n_pages)]
    made.__dict__.update(
        page_set=PageSet(doc_id="d", sha256="", pages=pages),
        retriever=FakeRetriever(table),
        schema=SchemaMemory(doc_id="d"),
        layout=LayoutSet(doc_id="d"),
        index=SimpleNamespace(language="en", idf_of=lambda term: 1.0),
        **more,
    )
    return made


@dataclass
class ScriptedReader:
    """Gives the replies of a list, one a round, and keeps what it was asked."""

    replies: list
    seen: list = field(default_factory=list)

    async def read(self, request):
        self.seen.append(request)
        return self.replies[len(self.seen) - 1]


class FirstPages:
    """Keeps the best candidates."""

    async def rerank(self, request):
        return RerankReply(pages=[c.page for c in request.candidates[: request.keep]], usage=Usage(calls=1))


def loop(reader, reranker=None, belief=None, **params):
    return Loop(
        reranker or FirstPages(),
        reader,
        Policy(LoopParams(**{"evidence": 2, "reranked": 2, **params}), belief or BeliefParams()),
    )


ANSWER = ReadReply(outcome="answer", answer="42", citations=[Citation(page=3, quote="42")], useful=[3])
MORE = ReadReply(outcome="query_update", query="second query", note="seen 3", missing="the total", irrelevant=[3])


async def test_an_answer_in_the_first_round_ends_the_question():
    reader = ScriptedReader([ANSWER])
    record, trace = await loop(reader).answer(QUESTION, view({"what is it?": {3: 2.0, 4: 1.0}}))
    assert (record.outcome, record.answer, len(record.rounds)) == ("answer", "42", 1)
    assert record.rounds[0].evidence == [3, 4]
    assert [c.page for c in record.rounds[0].candidates][:2] == [3, 4]
    assert trace.pages == list(range(1, 11))


async def test_a_query_update_drives_the_next_round_and_notes_reach_the_reader():
    reader = ScriptedReader([MORE, ANSWER])
    table = {"what is it?": {3: 2.0, 4: 1.0}, "second query": {8: 3.0, 9: 2.0}}
    record, _ = await loop(reader).answer(QUESTION, view(table))
    assert [r.query for r in record.rounds] == ["what is it?", "second query"]
    assert record.rounds[1].reranked == [8, 9]
    assert [(n.query, n.findings, n.missing) for n in reader.seen[1].notes] == [
        ("what is it?", "seen 3", "the total")
    ]
    assert record.usage.calls == 2


async def test_the_last_round_must_decide():
    reader = ScriptedReader([MORE, MORE, MORE])
    with pytest.raises(ModelResponseError, match="must decide") as caught:
        await loop(reader).answer(QUESTION, view({}))
    assert [request.last_round for request in reader.seen] == [False, False, True]
    assert caught.value.usage.calls == 3


async def test_not_answerable_says_what_was_read_and_tried():
    reader = ScriptedReader([MORE, ReadReply(outcome="not_answerable", reason="Nothing on it.")])
    record, _ = await loop(reader).answer(QUESTION, view({"what is it?": {3: 1.0}}))
    assert record.outcome == "not_answerable"
    assert record.answer is None
    for part in ("of 10 pages", "'second query'", "Nothing on it."):
        assert part in record.reason


async def test_pages_the_reader_was_not_shown_and_pages_called_both_are_dropped_and_recorded():
    reply = ANSWER.model_copy(update={"useful": [3, 9, 4], "irrelevant": [4, 5]})
    record, trace = await loop(ScriptedReader([reply])).answer(QUESTION, view({"what is it?": {3: 2.0, 4: 1.0}}))
    assert (record.rounds[0].useful, record.rounds[0].irrelevant) == ([3], [])
    assert record.rounds[0].dropped == [4, 5, 9]
    assert trace.b[3] == trace.rounds[0].b[3], "a page called both keeps its belief"


async def test_citations_of_pages_that_were_not_read_are_dropped_and_the_others_carry_their_printed_number():
    reply = ANSWER.model_copy(update={"citations": [Citation(page=3), Citation(page=9)]})
    record, _ = await loop(ScriptedReader([reply])).answer(QUESTION, view({"what is it?": {3: 2.0, 4: 1.0}}))
    assert [(c.page, c.label) for c in record.citations] == [(3, "1")]


async def test_a_reranker_cannot_bring_in_pages_that_were_no_candidates():
    class Wild:
        async def rerank(self, request):
            return RerankReply(pages=[99, 3, 3, 4, 5])

    record, _ = await loop(ScriptedReader([ANSWER]), Wild(), candidates=3).answer(
        QUESTION, view({"what is it?": {3: 2.0, 4: 1.0, 1: 0.5}})
    )
    assert record.rounds[0].reranked == [3, 4]


async def test_the_reader_never_sees_the_gold():
    reader = ScriptedReader([ANSWER])
    made = loop(reader)
    await made.answer(QUESTION.without_gold(), view({}))
    question = reader.seen[0].question
    assert (question.answer, question.evidence_pages, question.answerable) == (None, [], None)


async def test_the_page_window_bounds_everything():
    question = QUESTION.model_copy(update={"page_window": (4, 6)})
    record, trace = await loop(ScriptedReader([ANSWER])).answer(question, view({"what is it?": {3: 9.0, 5: 1.0}}))
    assert trace.pages == [4, 5, 6]
    assert {c.page for c in record.rounds[0].candidates} == {4, 5, 6}


async def test_forced_rounds_go_on_after_an_answer_and_keep_the_first_decision():
    later = ANSWER.model_copy(update={"answer": "43"})
    reader = ScriptedReader([ANSWER, later, later])
    record, _ = await loop(reader, force_rounds=True).answer(QUESTION, view({}))
    assert len(record.rounds) == 3
    assert record.answer == "42"


async def test_irrelevant_pages_give_way_to_unread_ones_by_posterior_mean():
    reader = ScriptedReader([MORE.model_copy(update={"query": "what is it?", "irrelevant": [3, 4]}), ANSWER])
    table = {"what is it?": {3: 1.0, 4: 0.9, 5: 0.8, 6: 0.7}}
    record, _ = await loop(reader, reranked=4).answer(QUESTION, view(table))
    assert record.rounds[0].evidence == [3, 4]
    assert record.rounds[1].evidence == [5, 6]


async def test_separate_needs_each_lift_their_own_page_so_that_one_does_not_bury_another():
    both = MORE.model_copy(update={"query": "cash and debt", "needs": ["cash", "debt"]})
    table = {"cash and debt": {3: 5.0, 8: 0.1}, "cash": {3: 5.0, 4: 1.0}, "debt": {8: 0.4, 9: 0.1}}
    record, trace = await loop(ScriptedReader([both, ANSWER])).answer(QUESTION, view(table))
    assert record.rounds[1].needs == ["cash", "debt"]
    assert {trace.rounds[1].similarity[2], trace.rounds[1].similarity[7]} == {1.0}
    record, trace = await loop(ScriptedReader([both, ANSWER]), separate_needs=False).answer(QUESTION, view(table))
    assert record.rounds[1].needs == []
    assert trace.rounds[1].similarity[7] < 0.1


async def test_the_gate_sends_an_early_not_answerable_back_but_never_in_the_last_round():
    nothing = ReadReply(outcome="not_answerable", reason="Not seen.")
    reader = ScriptedReader([nothing, ANSWER])
    record, _ = await loop(reader, gate_rounds=2).answer(QUESTION, view({"what is it?": {3: 1.0}}))
    assert (record.outcome, record.rounds[0].gated) == ("answer", True)
    record, _ = await loop(ScriptedReader([nothing] * 3), gate_coverage=1.0).answer(QUESTION, view({}))
    assert (record.outcome, [r.gated for r in record.rounds]) == ("not_answerable", [True, True, False])


async def test_the_page_budget_stops_new_pages_but_not_reading_again():
    again = MORE.model_copy(update={"query": "second query", "irrelevant": []})
    table = {"what is it?": {3: 2.0, 4: 1.0}, "second query": {8: 3.0, 9: 2.0}}
    record, _ = await loop(ScriptedReader([again, ANSWER]), page_budget=3, evidence=2).answer(QUESTION, view(table))
    assert len({page for r in record.rounds for page in r.evidence}) <= 3


async def test_crops_are_the_regions_most_like_the_query_and_at_most_the_limit():
    from docmemo.qa.crops import choose_crops
    from docmemo.types import Line, Region

    made = view({})
    made.page_set.pages[2].lines = [Line(text="Net debt 41", bbox=(0.1, 0.1, 0.4, 0.12), block=0)]
    regions = [
        Region(page=3, kind="table", bbox=(0, 0.5, 1, 0.9), text="Table 1: Staff"),
        Region(page=3, kind="table", bbox=(0, 0, 1, 0.4), text="Table 2"),
        Region(page=4, kind="figure", bbox=(0, 0, 1, 0.4), text="Figure 9: debt"),
        Region(page=9, kind="table", bbox=(0, 0, 1, 1), text="debt"),
        Region(page=3, kind="heading", bbox=(0, 0, 1, 0.1), text="debt"),
    ]
    made.__dict__["layout"] = LayoutSet(doc_id="d", regions=regions)
    chosen = choose_crops(made, "What is the debt?", [4, 3], 2)
    assert [(c.page, c.caption) for c in chosen] == [(4, "Figure 9: debt"), (3, "Table 2")]
    assert choose_crops(made, "What is the debt?", [4, 3], 0) == []


USEFUL = MORE.model_copy(update={"query": "second query", "useful": [3, 4], "irrelevant": []})
TWO_QUERIES = {"what is it?": {3: 2.0, 4: 1.0}, "second query": {8: 3.0, 9: 2.0}}


async def test_useful_pages_are_shown_again_beside_the_new_ones_best_first():
    reader = ScriptedReader([USEFUL, ANSWER])
    record, trace = await loop(reader, keep_useful=1, page_budget=4).answer(QUESTION, view(TWO_QUERIES))
    assert [r.evidence for r in record.rounds] == [[3, 4], [8, 9, 3]]
    assert trace.rounds[1].read == [8, 9, 3]
    assert reader.seen[1].earlier == [4]
    again = loop(ScriptedReader([USEFUL, ANSWER]), keep_useful=5)
    record, _ = await again.answer(QUESTION, view(TWO_QUERIES))
    assert record.rounds[1].evidence == [8, 9, 3, 4]


async def test_useful_pages_among_the_new_evidence_take_no_second_place():
    table = {"what is it?": {3: 2.0, 4: 1.0}, "second query": {3: 9.0, 8: 3.0}}
    belief = BeliefParams(reading="by_belief", query_slots=0)
    made = loop(ScriptedReader([USEFUL, ANSWER]), belief=belief, keep_useful=5)
    record, _ = await made.answer(QUESTION, view(table))
    assert sorted(record.rounds[1].evidence) == [3, 4]


@pytest.mark.parametrize("ablation", ["no_memory", "requery"])
async def test_without_memory_no_page_is_kept(ablation):
    made = loop(ScriptedReader([USEFUL, ANSWER]), keep_useful=2, ablation=ablation)
    record, _ = await made.answer(QUESTION, view(TWO_QUERIES))
    assert not {3, 4} & set(record.rounds[1].evidence)


async def test_keeping_no_page_changes_nothing():
    plain = await loop(ScriptedReader([USEFUL, ANSWER])).answer(QUESTION, view(TWO_QUERIES))
    kept = await loop(ScriptedReader([USEFUL, ANSWER]), keep_useful=0).answer(QUESTION, view(TWO_QUERIES))
    assert plain == kept


async def test_pages_that_were_not_shown_count_as_not_read():
    fitting = Fitting(pages=[4], tokens=10, limit=10)
    shown = MORE.model_copy(update={"shown": [3], "useful": [4], "irrelevant": [3], "fitting": fitting, "crops": []})
    reader = ScriptedReader([shown, ANSWER])
    table = {"what is it?": {3: 2.0, 4: 1.0}, "second query": {4: 3.0, 9: 2.0}}
    record, trace = await loop(reader).answer(QUESTION, view(table))
    first = record.rounds[0]
    assert (first.evidence, first.fitting, first.useful, first.dropped) == ([3], fitting, [], [4])
    assert trace.rounds[0].read == [3]
    assert 4 in record.rounds[1].evidence
    assert record.rounds[1].fitting is None


async def test_citations_of_pages_never_shown_are_recorded_as_dropped():
    reply = ANSWER.model_copy(update={"citations": [Citation(page=3), Citation(page=99)]})
    record, _ = await loop(ScriptedReader([reply])).answer(QUESTION, view({"what is it?": {3: 2.0, 4: 1.0}}))
    assert [c.page for c in record.citations] == [3]
    assert record.rounds[0].dropped == [99]


async def test_full_answer_and_confidence_reach_the_record():
    reply = ANSWER.model_copy(update={"full_answer": "It is 42.", "confidence_score": 0.7})
    record, _ = await loop(ScriptedReader([reply])).answer(QUESTION, view({}))
    assert (record.answer, record.full_answer, record.confidence_score) == ("42", "It is 42.", 0.7)


async def test_an_error_carries_what_the_attempt_spent_without_replies_that_were_paid_before():
    class Reader:
        def __init__(self, replayed):
            self.replayed = replayed

        async def read(self, request):
            if request.round == 2:
                raise ModelUnavailableError("gone", usage=Usage(calls=5))
            return MORE.model_copy(update={"usage": Usage(calls=7), "replayed": self.replayed})

    for replayed, calls in ((False, 1 + 7 + 1 + 5), (True, 1 + 1 + 5)):
        with pytest.raises(ModelUnavailableError) as caught:
            await loop(Reader(replayed)).answer(QUESTION, view({}))
        assert caught.value.usage.calls == calls
