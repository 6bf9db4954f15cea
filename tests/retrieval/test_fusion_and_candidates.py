from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.config import RetrievalParams
from docmemo.retrieval.candidates import similarity, top_k
from docmemo.retrieval.fusion import fuse, z_scores
from docmemo.retrieval.lexical import LexicalScores

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(values)
def test_z_scores_have_mean_0_and_deviation_1_or_are_all_0(x: list[float]) -> None:
    z = z_scores(x)
    assert np.isfinite(z).all()
    assert abs(z.mean()) < 1e-6
    assert not z.any() or abs(z.std() - 1) < 1e-6


@given(values, st.floats(0.1, 100), st.floats(-100, 100))
def test_z_scores_do_not_depend_on_unit_or_origin(x: list[float], scale: float, shift: float) -> None:
    z = z_scores(x)
    if np.std(x) > 1e-3:
        np.testing.assert_allclose(z_scores(np.array(x) * scale + shift), z, atol=1e-4)


@given(st.floats(-1e9, 1e9), st.integers(1, 20))
def test_equal_values_have_z_score_0(value: float, n: int) -> None:
    assert not z_scores([value] * n).any()


def test_z_scores_by_hand() -> None:
    np.testing.assert_allclose(z_scores([1, 2, 3]), [-(1.5**0.5), 0, 1.5**0.5])


@given(values)
def test_similarity_is_between_0_and_1_and_keeps_the_order(x: list[float]) -> None:
    c = similarity(x)
    assert ((c >= 0) & (c <= 1)).all()
    if len(set(x)) == 1:
        assert (c == 0.5).all()
    else:
        assert c.min() == 0
        assert c.max() == 1
    order = np.argsort(x, kind="stable")
    assert (np.diff(c[order]) >= 0).all()


@given(st.permutations(list(range(12))))
def test_similarity_goes_with_its_page(order: list[int]) -> None:
    x = np.linspace(0, 5, 12) ** 2
    np.testing.assert_array_equal(similarity(x[order]), similarity(x)[order])


def test_similarity_refuses_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        similarity([0.0, float("nan")])


def test_similarity_of_very_large_scores_is_finite() -> None:
    assert similarity([-1.7e308, 0.0, 1.7e308]).tolist() == [0.0, 0.5, 1.0]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.sampled_from([0.0, 1.0, 2.0])), unique_by=lambda t: t[0]),
    st.integers(0, 60),
)
def test_top_k_takes_the_best_and_breaks_ties_by_page(items: list[tuple[int, float]], k: int) -> None:
    pages = [page for page, _ in items]
    scores = [score for _, score in items]
    assert top_k(scores, pages, k) == [page for page, _ in sorted(items, key=lambda t: (-t[1], t[0]))][:k]


def test_top_k_wants_a_score_for_each_page() -> None:
    with pytest.raises(ValueError, match="2 pages"):
        top_k([1.0], [1, 2], 1)


def test_fusion_by_hand() -> None:
    scores = LexicalScores(np.array([1.0, 3.0]), np.array([0.0, 0.0]), np.array([5.0, 1.0]))
    params = RetrievalParams(page_weight=0.5, window_weight=0.5, bigram_weight=0.3, reference_weight=4)
    np.testing.assert_allclose(fuse(scores, [0.0, 0.5], params), [-0.5 + 0.3, 0.5 - 0.3 + 2.0])
