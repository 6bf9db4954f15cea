"""Agreement and Cohen's kappa, beside scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from docmemo.evaluation.agreement import ALL_AGREE, NO_CHANCE, agreement, kappa, right
from docmemo.evaluation.intervals import NO_VARIANCE, TOO_FEW


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0 / 0 where one value alone occurs
        theirs = cohen_kappa_score(first, second)
    ours = agreement(first, second, range(len(pairs))).kappa.value
    if ours is None:
        assert len({*first, *second}) == 1, "there is no kappa only where both say one and the same always"
    else:
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_agreement_by_hand() -> None:
    # Both right 20, only the first 5, only the second 10, both wrong 15: p_o = .7, p_e = .5 * .6 + .5 * .4 = .5.
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    found = agreement(first, second, [i % 12 for i in range(50)])
    assert (found.both_right, found.only_first, found.only_second, found.both_wrong) == (20, 5, 10, 15)
    assert (found.agreement.value, found.kappa.value) == (0.7, pytest.approx(0.4))
    assert found.kappa.low is not None and found.kappa.high is not None
    assert -1 < found.kappa.low < 0.4 < found.kappa.high < 1


def test_without_an_interval_the_reason_is_given() -> None:
    many, few = range(12), [0] * 12
    mixed, other = [True, False] * 6, [True, True, False] * 4
    assert agreement(mixed, mixed, many).kappa.note == ALL_AGREE
    assert agreement(mixed, mixed, many).kappa.value == 1.0
    assert agreement([True] * 12, [True] * 12, many).kappa == agreement([True] * 12, [True] * 12, few).kappa
    assert agreement([True] * 12, [True] * 12, many).kappa.note == NO_CHANCE
    assert agreement(mixed, other, few).kappa.note == TOO_FEW
    assert agreement(mixed, [not value for value in mixed], many).kappa.note == NO_VARIANCE
    assert agreement([], [], []).kappa.value is None
    assert kappa(np.zeros(4)) is None
    with pytest.raises(ValueError, match="one entry an answer"):
        agreement([True], [], [])


def test_a_graded_score_counts_as_right_from_one_half_on() -> None:
    assert [right(score) for score in (0.0, 0.49, 0.5, 1.0)] == [False, False, True, True]
