"""The controller: what is read next, draws that nothing disturbs, and traces that replay bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.config import BeliefParams, Params
from docmemo.fingerprint import canonical_json
from docmemo.qa.controller import Controller
from docmemo.qa.replay_trace import replay
from docmemo.qa.trace import Trace

POLICIES = ("none", "mean", "thompson", "explore_one", "ucb")
PAPER = {"reading": "by_belief", "query_slots": 0, "schedule": (0.0, 0.3, 0.5)}


def controller(pages, slots=2, seed=0, question="q", documents=None, sections=None, **params):
    return Controller(
        pages, BeliefParams(**params), seed, question, documents=documents, sections=sections, slots=slots
    )


@st.composite
def stories(draw):
    """A question's parameters, its scope, and what happens in each round: similarities, useful, irrelevant."""
    n = draw(st.integers(2, 25))
    first = draw(st.integers(1, 300))
    params = BeliefParams(
        policy=draw(st.sampled_from(POLICIES)),
        prior_strength=draw(st.floats(0, 4)),
        radius=draw(st.integers(0, 3)),
        decay=draw(st.floats(0, 1)),
        section_gain=draw(st.sampled_from([0.0, 0.25])),
        reading=draw(st.sampled_from(["by_belief", "unread_first"])),
        query_slots=draw(st.integers(0, 2)),
    )
    similarity = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    verdict = st.lists(st.sampled_from(["useful", "irrelevant", "neutral"]), min_size=n, max_size=n)
    rounds = draw(st.lists(st.tuples(similarity, verdict), min_size=1, max_size=4))
    sections = [i // 4 for i in range(n)] if params.section_gain else []
    return list(range(first, first + n)), params, rounds, sections


def play(story, slots=3, seed=1, question="q"):
    """The trace of a story."""
    pages, params, rounds, sections = story
    made = Controller(pages, params, seed, question, sections=sections or None, slots=slots)
    for similarity, verdict in rounds:
        made.start_round("query", np.array(similarity))
        read = made.ranked(made.candidates(slots + 2))[:slots]
        named = dict(zip(pages, verdict, strict=True))
        useful = [page for page in read if named[page] == "useful"]
        made.feedback(useful, [page for page in read if named[page] == "irrelevant"], read)
    assert made.belief is not None
    return Trace(
        question_id=question,
        doc_id="d",
        seed=seed,
        pages=pages,
        sections=sections,
        rounds=made.rounds,
        a=made.belief.a.tolist(),
        b=made.belief.b.tolist(),
    )


@given(stories())
def test_a_trace_written_and_read_again_replays_to_the_same_bytes(story):
    trace = play(story)
    text = canonical_json(trace.model_dump(mode="json"))
    params = Params.model_validate({"belief": story[1].model_dump(), "loop": {"evidence": 3}})
    again = replay(Trace.model_validate(json.loads(text)), params)
    assert canonical_json(again.model_dump(mode="json")) == text


def test_a_trace_replayed_with_other_parameters_differs():
    trace = play(([1, 2, 3], BeliefParams(), [([0.0, 0.5, 1.0], ["useful"] * 3)], []))
    other = replay(trace, Params.model_validate({"belief": {"prior_strength": 4}, "loop": {"evidence": 3}}))
    assert other != trace


@given(stories(), st.integers(0, 3))
def test_what_other_questions_do_in_between_changes_nothing(story, others):
    alone = play(story)
    for number in range(others):
        play(story, seed=number, question=f"other {number}")
    assert play(story) == alone


@given(stories())
def test_a_round_reads_pages_in_scope_once_each_and_read_ones_again_only_when_none_is_left(story):
    pages, params, _, _ = story
    trace = play(story)
    seen = set()
    for record in trace.rounds:
        assert len(set(record.read)) == len(record.read)
        assert set(record.read) <= set(pages)
        if params.reading == "unread_first":
            fresh = [page for page in record.read if page not in seen]
            assert len(fresh) == min(len(record.read), len(pages) - len(seen))
        seen |= set(record.read)


@given(stories())
def test_pages_are_ranked_whatever_the_order_they_are_given_in(story):
    pages, params, rounds, _ = story
    made = Controller(pages, params.model_copy(update={"section_gain": 0.0}), 0, "q", slots=3)
    for similarity, _verdict in rounds:
        made.start_round("query", np.array(similarity))
        assert made.ranked(pages[::-1]) == made.ranked(pages)
        made.feedback(pages[:1], [], made.ranked(pages)[:3])


def test_the_first_round_follows_similarity_alone_whatever_the_policy():
    for policy in POLICIES:
        made = controller([1, 2, 3, 4], policy=policy)
        made.start_round("q", np.array([0.1, 1.0, 0.4, 0.0]))
        assert made.candidates(3) == [2, 3, 1]


def test_literal_reading_takes_the_best_by_posterior_mean_read_or_not():
    made = controller([1, 2, 3, 4], radius=0, **PAPER)
    made.start_round("q", np.array([1.0, 0.8, 0.2, 0.0]))
    made.feedback([1, 2], [], [1, 2])
    made.start_round("q", np.array([0.0, 0.0, 1.0, 0.9]))
    assert made.ranked([1, 2, 3, 4])[:2] == [1, 2]


def test_pages_read_give_way_to_unread_ones_and_the_query_chooses_one_of_them():
    made = controller([1, 2, 3, 4, 5], radius=1, schedule=(0.0, 1.0))
    made.start_round("q", np.array([1.0, 0.8, 0.2, 0.1, 0.0]))
    made.feedback([2], [1], [1, 2])
    made.start_round("other", np.array([0.0, 0.0, 0.0, 0.2, 1.0]))
    assert made.ranked([1, 2, 3, 4, 5]) == [5, 3, 4, 2, 1]
    assert made.candidates(2) == [5, 3]


def test_explore_one_keeps_the_best_of_the_mean_and_gives_the_last_slot_to_a_draw():
    pages = list(range(1, 41))
    similarity = np.linspace(1.0, 0.0, 40)
    explored = set()
    for question in range(30):
        made = controller(pages, 3, question=str(question), policy="explore_one", query_slots=0, schedule=(0.0, 1.0))
        made.start_round("q", similarity)
        made.feedback([], [], [1, 2, 3])
        record = made.start_round("q", similarity)
        read = made.ranked(made.candidates(5))[:3]
        assert read[:2] == [4, 5]
        assert record.explored == read[2]
        explored.add(read[2])
    assert len(explored) > 10


@pytest.mark.parametrize("confidence", [0.0, 2.0])
def test_the_upper_bound_prefers_pages_little_is_known_of(confidence):
    made = controller([1, 2], policy="ucb", confidence=confidence, radius=0, **PAPER)
    made.start_round("q", np.array([0.5, 0.5]))
    for _ in range(3):
        made.feedback([1], [1], [1])
        made.start_round("q", np.array([0.5, 0.5]))
    made.feedback([1], [], [1])
    record = made.start_round("q", np.array([0.5, 0.5]))
    assert (record.draw[0] > record.draw[1]) == (confidence == 0.0)


def test_nothing_crosses_from_one_document_to_another_through_neighbours_or_sections():
    made = controller([1, 2, 3, 4], documents=[0, 0, 1, 1], sections=[7, 7, 7, 7], section_gain=0.25, radius=3)
    made.start_round("q", np.full(4, 0.5))
    before = made.belief
    made.feedback([2], [], [2])
    assert (made.belief.a[2:] == before.a[2:]).all()
    assert made.belief.a[0] > before.a[0]
