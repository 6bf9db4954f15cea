from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.evaluation.retrieval_metrics import (
    RoundFeedback,
    all_hit_at_k,
    all_hit_at_round,
    feedback_quality,
    recall_at_k,
    recall_at_round,
)

PAGES = st.lists(st.integers(1, 30), max_size=10)


def test_recall_counts_gold_pages_among_the_first_k() -> None:
    assert recall_at_k([3, 7], [7, 1, 3], 1) == 0.5
    assert recall_at_k([3, 7], [7, 1, 3], 3) == 1.0
    assert all_hit_at_k([3, 7], [7, 1, 3], 2) == 0.0
    assert all_hit_at_k([3, 7], [7, 1, 3], 3) == 1.0


def test_a_page_the_document_does_not_have_is_missed() -> None:
    assert recall_at_k([2, 1418], [2, 1, 3], 3) == 0.5
    assert all_hit_at_k([2, 0], [2, 1, 3], 3) == 0.0


def test_a_gold_page_given_twice_counts_once() -> None:
    assert recall_at_k([2, 2, 5], [2], 1) == 0.5


def test_a_question_that_stopped_early_keeps_its_pages() -> None:
    rounds = [[1, 2], [5]]
    assert [recall_at_round([2, 5], rounds, t) for t in (1, 2, 3)] == [0.5, 1.0, 1.0]
    assert [all_hit_at_round([2, 5], rounds, t) for t in (1, 2, 3)] == [0.0, 1.0, 1.0]


def test_without_gold_pages_there_is_no_recall() -> None:
    with pytest.raises(ValueError, match="gold evidence pages"):
        recall_at_k([], [1], 1)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.lists(PAGES, max_size=4))
def test_evidence_recall_never_falls_from_round_to_round(gold: list[int], rounds: list[list[int]]) -> None:
    curve = [recall_at_round(gold, rounds, t) for t in range(1, 6)]
    assert curve == sorted(curve)
    for t, value in enumerate(curve, 1):
        assert all_hit_at_round(gold, rounds, t) == float(value == 1.0)


def test_feedback_is_pooled_over_rounds_and_ignores_pages_not_read() -> None:
    read = frozenset({1, 2, 3, 4})
    quality = feedback_quality(
        [
            RoundFeedback(read, frozenset({1, 2, 9}), frozenset({3}), gold=frozenset({1, 3, 9})),
            RoundFeedback(read, frozenset({1}), frozenset({2, 4}), gold=frozenset({1})),
        ]
    )
    assert quality.useful_precision == 2 / 3  # 1 and 1 of 1, 2 and 1; page 9 was not read
    assert quality.useful_recall == 2 / 3  # gold read: 1, 3 and 1
    assert quality.irrelevant_precision == 2 / 3  # 3 was gold
    assert quality.irrelevant_recall == 2 / 5  # read and not gold: 2, 4 and 2, 3, 4
    assert quality.gold_called_irrelevant == 1


def test_feedback_without_any_naming_is_unknown_not_zero() -> None:
    quality = feedback_quality([])
    assert quality.useful_precision is None
    assert quality.gold_called_irrelevant == 0
