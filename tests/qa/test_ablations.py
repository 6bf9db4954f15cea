"""Every switch of `loop.ablation` changes what it should and nothing else, seen in what the parts are asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from docmemo.config import Ablation, BeliefParams, LoopParams
from docmemo.evaluation.ablations import DESCRIPTIONS, FULL
from docmemo.memory import belief as beliefs
from docmemo.qa.ablations import plan
from docmemo.qa.corpus import DocumentView
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import ReadReply, RerankReply
from docmemo.qa.trace import Trace
from docmemo.types import AnswerRecord, Citation, LayoutSet, Page, PageSet, Question, Region, SchemaMemory, Section

N_PAGES = 40
QUESTION = Question(question_id="q1", doc_id="d", question="first query")
BELIEF = BeliefParams(
    policy="thompson", radius=2, decay=0.5, schedule=(0.0, 0.4, 0.6), reading="by_belief", section_gain=0.0
)
LOOP = LoopParams(rounds=3, candidates=12, reranked=4, evidence=4, crops=3)
ABLATIONS = [name for name in get_args(Ablation) if name != "none"]


class HashedScores:
    """A score for every query and page that has nothing to do with anything, the same every time."""

    def score(self, query, pages):
        digests = [hashlib.sha256(f"{query}|{page}".encode()).digest() for page in pages]
        return np.array([digest[0] / 255 + digest[1] / 65535 for digest in digests])


def view() -> DocumentView:
    """A document with sections, and a table on every page."""
    made = DocumentView("d", SimpleNamespace(layout=None), SimpleNamespace())
    pages = [Page(page=number) for number in range(1, N_PAGES + 1)]
    regions = [Region(page=p.page, kind="table", bbox=(0, 0, 1, 1), text=f"Table {p.page}") for p in pages]
    made.__dict__.update(
        page_set=PageSet(doc_id="d", sha256="", pages=pages),
        retriever=HashedScores(),
        schema=SchemaMemory(doc_id="d", sections=[Section(label="All", first_page=1, last_page=N_PAGES)]),
        layout=LayoutSet(doc_id="d", regions=regions),
        index=SimpleNamespace(language="en", idf_of=lambda term: 1.0),
    )
    return made


@dataclass
class Parts:
    """Reranker and reader of a script; they keep every request.

    The reader calls the first page useful and the last one irrelevant, and answers in round `stops`, in later rounds
    too; what it says depends on the round alone.
    """

    stops: int = 3
    reranks: list[Any] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)

    async def rerank(self, request):
        self.reranks.append(request)
        return RerankReply(pages=[c.page for c in request.candidates[: request.keep]][::-1])

    async def read(self, request):
        self.reads.append(request)
        more: dict[str, Any] = {"outcome": "query_update", "query": f"query after round {request.round}"}
        if request.round >= self.stops or request.last_round:
            cited = [Citation(page=request.evidence[0])]
            more = {"outcome": "answer", "answer": f"answer of round {request.round}", "citations": cited}
        shown = list(request.evidence)
        return ReadReply(note=f"note {request.round}", useful=shown[:1], irrelevant=shown[-1:], **more)


@dataclass
class Run:
    """One question under one configuration."""

    record: AnswerRecord
    trace: Trace
    parts: Parts


async def run(ablation: str = "none", *, stops: int = 3, loop: dict[str, Any] | None = None, **belief: Any) -> Run:
    """Answer the question with a scripted reader."""
    parts = Parts(stops)
    params = LOOP.model_copy(update={"ablation": ablation, **(loop or {})})
    policy = Policy(params, BELIEF.model_copy(update=belief), seed=7)
    record, trace = await Loop(parts, parts, policy).answer(QUESTION, view())
    return Run(record, trace, parts)


def requests(done: Run, *leave_out: str) -> list[dict[str, Any]]:
    """What reranker and reader were asked, without the view and the named fields."""
    hidden = {"view", *leave_out}
    asked = [*done.parts.reranks, *done.parts.reads]
    return [{f.name: getattr(r, f.name) for f in fields(r) if f.name not in hidden} for r in asked]


def results(done: Run, leave_out: set[str] | None = None) -> tuple[Any, Any]:
    """Record and trace, without the named fields of the record's rounds."""
    return done.record.model_dump(exclude={"rounds": {"__all__": leave_out or set()}}), done.trace.model_dump()


def test_every_ablation_is_described_in_the_table() -> None:
    assert set(DESCRIPTIONS) == {FULL, *ABLATIONS}


NONE = BELIEF.model_copy(update={"policy": "none"})


@pytest.mark.parametrize(
    ("ablation", "changes"),
    [
        ("no_schema", {"show_schema": False}),
        ("no_belief", {"belief": NONE}),
        ("no_episodic", {"show_notes": False}),
        ("no_memory", {"show_schema": False, "show_notes": False, "belief": NONE}),
        ("no_bayes", {"learn": False}),
        ("greedy", {"belief": BELIEF.model_copy(update={"policy": "mean"})}),
        ("no_crops", {"loop": {"crops": 0}}),
        ("no_propagation", {"belief": BELIEF.model_copy(update={"radius": 0})}),
        ("static", {"loop": {"rounds": 1}}),
        ("requery", {"show_schema": False, "show_notes": False, "belief": NONE, "accumulate": False}),
        ("fixed_rounds", {"stop_early": False}),
    ],
)
def test_an_ablation_changes_these_parts_of_the_plan_alone(ablation: str, changes: dict[str, Any]) -> None:
    named = LOOP.model_copy(update={"ablation": ablation})
    full, ablated = plan(named.model_copy(update={"ablation": "none"}), BELIEF), plan(named, BELIEF)
    expected = {f.name: getattr(full, f.name) for f in fields(full)}
    loop = named.model_copy(update=changes.get("loop", {}))
    assert {f.name: getattr(ablated, f.name) for f in fields(ablated)} == {**expected, **changes, "loop": loop}


@pytest.mark.parametrize(
    ("ablation", "loop", "belief"),
    [
        ("no_belief", {}, {"policy": "none"}),
        ("greedy", {}, {"policy": "mean"}),
        ("no_crops", {"crops": 0}, {}),
        ("no_propagation", {}, {"radius": 0}),
        ("static", {"rounds": 1}, {}),
    ],
)
async def test_some_are_the_full_method_with_one_parameter_set(ablation: str, loop: Any, belief: Any) -> None:
    ablated, full = await run(ablation), await run(loop=loop, **belief)
    assert requests(ablated) == requests(full)
    assert results(ablated) == results(full)


async def test_the_base_configuration_really_uses_every_part() -> None:
    full = await run()
    assert len(full.record.rounds) == 3
    assert all(r["schema"] is not None for r in requests(full))
    assert [len(r.notes) for r in full.parts.reads] == [0, 1, 2]
    assert all(r.crops for r in full.parts.reads)
    assert [r.weight for r in full.trace.rounds] == [0.0, 0.4, 0.6]
    pages = {tuple(r.evidence) for r in full.record.rounds}
    assert len(pages) == 3


async def test_without_schema_only_the_schema_leaves_the_requests() -> None:
    full, ablated = await run(), await run("no_schema")
    assert {id(r["schema"]) for r in requests(ablated)} == {id(None)}
    assert requests(ablated, "schema") == requests(full, "schema")
    assert results(ablated) == results(full)


async def test_without_episodic_memory_only_the_notes_leave_and_the_refined_query_still_drives_retrieval() -> None:
    full, ablated = await run(), await run("no_episodic")
    assert {tuple(r["notes"]) for r in requests(ablated)} == {()}
    assert requests(ablated, "notes") == requests(full, "notes")
    assert results(ablated) == results(full)
    assert [r.query for r in ablated.record.rounds][1:] == ["query after round 1", "query after round 2"]


async def test_without_crops_only_the_crops_leave() -> None:
    full, ablated = await run(), await run("no_crops")
    assert not any(r.crops for r in ablated.parts.reads)
    assert requests(ablated, "crops") == requests(full, "crops")
    assert results(ablated, {"crops"}) == results(full, {"crops"})


async def test_without_belief_pages_are_chosen_by_the_current_querys_similarity() -> None:
    full, ablated = await run(), await run("no_belief")
    assert requests(ablated)[0] == requests(full)[0], "the first round's candidates are by similarity anyway"
    for record, traced in zip(ablated.record.rounds, ablated.trace.rounds, strict=True):
        assert (traced.weight, traced.score) == (0.0, traced.similarity)
        similar = dict(zip(ablated.trace.pages, traced.similarity, strict=True))
        accumulated = {p for r in ablated.record.rounds[: record.round] for p in r.reranked}
        assert record.evidence == sorted(accumulated, key=lambda p: (-similar[p], p))[: LOOP.evidence]
    assert [r["notes"] for r in requests(ablated)] == [r["notes"] for r in requests(full)]
    assert [r["schema"] for r in requests(ablated)] == [r["schema"] for r in requests(full)]
    similarity = [[r.similarity for r in done.trace.rounds] for done in (ablated, full)]
    assert similarity[0] == similarity[1], "the same queries are asked"


async def test_without_any_memory_it_is_the_three_at_once() -> None:
    ablated, no_belief = await run("no_memory"), await run("no_belief")
    assert {(r["schema"], tuple(r["notes"])) for r in requests(ablated)} == {(None, ())}
    assert requests(ablated, "schema", "notes") == requests(no_belief, "schema", "notes")
    assert results(ablated) == results(no_belief)


async def test_without_bayes_the_belief_stays_at_the_prior() -> None:
    full, ablated = await run(), await run("no_bayes")
    prior = beliefs.prior(np.array(ablated.trace.rounds[0].similarity), BELIEF.prior_strength)
    for a, b in [*((r.a, r.b) for r in ablated.trace.rounds), (ablated.trace.a, ablated.trace.b)]:
        assert (a, b) == (prior.a.tolist(), prior.b.tolist())
    assert full.trace.rounds[1].a != full.trace.rounds[0].a
    assert ablated.trace.rounds[0] == full.trace.rounds[0]
    assert ablated.record.rounds[0] == full.record.rounds[0]
    for mine, other in zip(ablated.trace.rounds, full.trace.rounds, strict=True):
        assert (mine.query, mine.weight, mine.similarity) == (other.query, other.weight, other.similarity)


async def test_greedy_puts_the_posterior_mean_in_place_of_the_draw() -> None:
    full, ablated = await run(), await run("greedy")
    for traced in ablated.trace.rounds:
        mean = beliefs.Belief(np.array(traced.a), np.array(traced.b)).mean
        assert traced.draw == mean.tolist()
    first, other = ablated.trace.rounds[0].model_dump(), full.trace.rounds[0].model_dump()
    assert first.pop("draw") != other.pop("draw")
    assert first == other
    assert ablated.record.rounds[0] == full.record.rounds[0]
    assert ablated.trace.rounds[1].a == full.trace.rounds[1].a, "the first round's feedback is the same"
    assert [c.page for c in ablated.record.rounds[1].candidates] != [c.page for c in full.record.rounds[1].candidates]


async def test_without_propagation_only_the_neighbours_of_useful_pages_differ() -> None:
    full, ablated = await run(), await run("no_propagation")
    assert ablated.trace.rounds[0] == full.trace.rounds[0]
    assert ablated.record.rounds[0] == full.record.rounds[0]
    (useful,) = ablated.record.rounds[0].useful
    gained = np.array(full.trace.rounds[1].a) - np.array(ablated.trace.rounds[1].a)
    expected = {p: BELIEF.decay ** abs(p - useful) for p in full.trace.pages if 0 < abs(p - useful) <= BELIEF.radius}
    assert {p: g for p, g in zip(full.trace.pages, gained, strict=True) if g} == pytest.approx(expected)
    assert full.trace.rounds[1].b == ablated.trace.rounds[1].b


async def test_static_is_the_first_round_with_the_decision_asked_of_it() -> None:
    full, ablated = await run(), await run("static")
    (read,) = ablated.parts.reads
    assert read.last_round
    assert ablated.trace.rounds == full.trace.rounds[:1]
    told = ("last_round", "rounds")
    assert requests(ablated, *told) == [requests(full, *told)[i] for i in (0, 3)]
    assert ablated.record.rounds == full.record.rounds[:1]


async def test_requery_reads_only_the_current_rounds_pages_and_remembers_nothing() -> None:
    full, ablated = await run(), await run("requery")
    assert {(r["schema"], tuple(r["notes"])) for r in requests(ablated)} == {(None, ())}
    assert len(ablated.record.rounds) == 3
    for record, traced in zip(ablated.record.rounds, ablated.trace.rounds, strict=True):
        assert set(record.evidence) == set(record.reranked)
        assert traced.score == traced.similarity
    assert any(set(r.evidence) - set(r.reranked) for r in full.record.rounds), "the full method goes back"
    memoryless = await run("no_memory")
    assert [r.candidates for r in ablated.record.rounds] == [r.candidates for r in memoryless.record.rounds]


@pytest.mark.parametrize("reading", get_args(BeliefParams.model_fields["reading"].annotation))
async def test_requery_reads_its_own_pages_however_pages_read_before_are_treated(reading: str) -> None:
    ablated = await run("requery", reading=reading)
    assert all(set(record.evidence) <= set(record.reranked) for record in ablated.record.rounds)


async def test_fixed_rounds_goes_on_after_a_decision_and_takes_the_last() -> None:
    full, ablated = await run(stops=1), await run("fixed_rounds", stops=1)
    assert (len(full.record.rounds), full.record.answer) == (1, "answer of round 1")
    assert (len(ablated.record.rounds), ablated.record.answer) == (3, "answer of round 3")
    assert ablated.record.rounds[0] == full.record.rounds[0]
    assert [r.last_round for r in ablated.parts.reads] == [False, False, True]
    undecided, same = await run(stops=3), await run("fixed_rounds", stops=3)
    assert results(same) == results(undecided), "where every round was run anyway, nothing differs"


async def test_forcing_rounds_keeps_the_first_decision_and_the_same_first_rounds() -> None:
    natural, forced = await run(stops=2), await run(stops=2, loop={"force_rounds": True})
    assert (len(natural.record.rounds), len(forced.record.rounds)) == (2, 3)
    assert forced.record.answer == natural.record.answer == "answer of round 2"
    assert forced.record.rounds[:2] == natural.record.rounds
