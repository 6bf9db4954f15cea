"""Page beliefs behave as the formulas of docs/design.md, section 2, say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from docmemo.memory import belief as beliefs
from docmemo.types import Section

sizes = st.integers(1, 40)
similarities = sizes.flatmap(lambda n: hnp.arrays(np.float64, n, elements=st.floats(0, 1)))


@st.composite
def situations(draw):
    """A scope, a belief over it, and feedback."""
    similarity = draw(similarities)
    first = draw(st.integers(1, 500))
    pages = list(range(first, first + len(similarity)))
    some = st.sets(st.sampled_from(pages), max_size=6)
    belief = beliefs.prior(similarity, draw(st.floats(0, 8)))
    return pages, belief, draw(some), draw(some), draw(st.integers(0, 4)), draw(st.floats(0, 1))


@given(similarities, st.floats(0, 10))
def test_the_prior_has_k_pseudo_observations_and_its_mean_grows_with_similarity(similarity, k):
    prior = beliefs.prior(similarity, k)
    np.testing.assert_allclose(prior.a + prior.b, 2 + k)
    order = np.argsort(similarity)
    assert (np.diff(prior.mean[order]) >= -1e-12).all()


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [float("nan")]])
def test_a_similarity_outside_0_to_1_is_refused(bad):
    with pytest.raises(ValueError, match="similarity"):
        beliefs.prior(np.array(bad), 1.0)


@given(situations())
def test_without_propagation_feedback_is_beta_bernoulli(case):
    pages, belief, useful, irrelevant, _, decay = case
    after = beliefs.update(belief, pages, useful, irrelevant, radius=0, decay=decay)
    for i, page in enumerate(pages):
        both = page in useful and page in irrelevant
        assert after.a[i] - belief.a[i] == pytest.approx(float(page in useful and not both))
        assert after.b[i] - belief.b[i] == pytest.approx(float(page in irrelevant and not both))


@given(situations())
def test_negative_feedback_never_propagates_and_nothing_is_lost(case):
    pages, belief, useful, irrelevant, radius, decay = case
    after = beliefs.update(belief, pages, useful, irrelevant, radius=radius, decay=decay)
    changed = {pages[i] for i in np.flatnonzero(after.b != belief.b)}
    assert changed <= set(irrelevant) - set(useful)
    assert (after.a >= belief.a).all() and (after.b >= belief.b).all()
    assert ((after.mean > 0) & (after.mean < 1)).all()


@given(situations())
def test_pages_beyond_the_radius_of_every_useful_page_keep_their_belief(case):
    pages, belief, useful, irrelevant, radius, decay = case
    after = beliefs.update(belief, pages, useful, irrelevant, radius=radius, decay=decay)
    for i, page in enumerate(pages):
        if all(abs(page - u) > radius for u in useful) and page not in irrelevant:
            assert (after.a[i], after.b[i]) == (belief.a[i], belief.b[i])


@given(situations(), st.randoms(use_true_random=False))
def test_the_order_in_which_pages_are_named_does_not_matter(case, random):
    pages, belief, useful, irrelevant, radius, decay = case
    shuffled = list(useful)
    random.shuffle(shuffled)
    one = beliefs.update(belief, pages, list(useful), list(irrelevant), radius=radius, decay=decay)
    two = beliefs.update(belief, pages, shuffled, list(irrelevant), radius=radius, decay=decay)
    np.testing.assert_array_equal(one.a, two.a)
    np.testing.assert_array_equal(one.b, two.b)


@given(situations())
def test_pages_outside_the_scope_change_nothing(case):
    pages, belief, _, _, radius, decay = case
    outside = {pages[0] - 1, pages[-1] + 1, 10_000}
    after = beliefs.update(belief, pages, outside, outside | {-3}, radius=radius, decay=decay)
    np.testing.assert_array_equal(after.a, belief.a)
    np.testing.assert_array_equal(after.b, belief.b)


def test_overlapping_propagation_adds_up():
    pages = [1, 2, 3, 4, 5]
    start = beliefs.prior(np.zeros(5), 0.0)
    after = beliefs.update(start, pages, [2, 4], [5], radius=2, decay=0.5)
    np.testing.assert_allclose(after.a - 1, [0.5, 1 + 0.25, 0.5 + 0.5, 1 + 0.25, 0.5])
    np.testing.assert_allclose(after.b - 1, [0, 0, 0, 0, 1])


def test_draws_depend_on_seed_question_and_round_and_on_nothing_else():
    belief = beliefs.prior(np.linspace(0, 1, 9), 1.0)

    def draw(seed, question, number):
        return beliefs.thompson(belief, beliefs.generator(seed, question, number))

    first = draw(0, "q", 1)
    draw(3, "other", 2)
    np.testing.assert_array_equal(first, draw(0, "q", 1))
    for other in (draw(1, "q", 1), draw(0, "p", 1), draw(0, "q", 2)):
        assert not np.array_equal(first, other)


def test_draws_follow_the_beta_distribution():
    belief = beliefs.Belief(np.full(20_000, 3.0), np.full(20_000, 2.0))
    draws = beliefs.thompson(belief, beliefs.generator(0, "q", 1))
    assert draws.mean() == pytest.approx(0.6, abs=0.01)
    assert draws.std() == pytest.approx(belief.sd[0], abs=0.01)


@given(similarities, st.floats(0, 1))
def test_the_mixed_score_lies_between_its_parts(similarity, weight):
    draw = similarity[::-1].copy()
    mixed = beliefs.mix(similarity, draw, weight)
    assert (mixed >= np.minimum(similarity, draw) - 1e-12).all()
    assert (mixed <= np.maximum(similarity, draw) + 1e-12).all()


@given(situations(), st.floats(0, 4))
def test_the_upper_bound_lies_between_mean_and_one(case, confidence):
    belief = case[1]
    bound = beliefs.upper(belief, confidence)
    assert (bound >= belief.mean - 1e-12).all() and (bound <= 1.0).all()


@given(situations(), st.floats(0.01, 1))
def test_a_useful_page_raises_its_section_and_nothing_else(case, gain):
    pages, belief, useful, irrelevant, _, _ = case
    sections = [i // 3 if i // 3 % 2 else -1 for i in range(len(pages))]
    plain = beliefs.update(belief, pages, useful, irrelevant)
    after = beliefs.update(belief, pages, useful, irrelevant, sections=sections, section_gain=gain)
    named = [pages.index(page) for page in useful - irrelevant]
    for i in range(len(pages)):
        others = sum(sections[u] == sections[i] >= 0 and u != i for u in named)
        assert after.a[i] - plain.a[i] == pytest.approx(gain * others)
    np.testing.assert_array_equal(after.b, plain.b)


def test_a_page_belongs_to_the_shortest_section_that_is_neither_one_page_nor_too_long():
    sections = [
        Section(label="all", first_page=1, last_page=9),
        Section(label="chapter", first_page=2, last_page=6),
        Section(label="part", first_page=3, last_page=4),
        Section(label="page", first_page=4, last_page=4, level=2),
    ]
    assert beliefs.section_numbers(range(1, 10), sections, 5) == [-1, 1, 2, 2, 1, 1, -1, -1, -1]
    assert beliefs.section_numbers([3, 4], [], 5) == [-1, -1]


@given(similarities.flatmap(lambda c: st.tuples(st.just(c), st.permutations(range(len(c))))))
def test_permuting_the_pages_permutes_the_posterior(case):
    similarity, order = case
    pages = list(range(1, len(similarity) + 1))
    useful = pages[:2]
    one = beliefs.update(beliefs.prior(similarity, 1.0), pages, useful, pages[2:3], radius=2)
    moved = beliefs.prior(similarity[list(order)], 1.0)
    two = beliefs.update(moved, [pages[i] for i in order], useful, pages[2:3], radius=2)
    np.testing.assert_array_equal(one.a[list(order)], two.a)
    np.testing.assert_array_equal(one.b[list(order)], two.b)
