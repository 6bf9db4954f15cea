from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmemo.evaluation.intervals import TOO_FEW, Interval, mean_interval, ratio_interval


def test_a_mean_of_equal_clusters_is_the_t_interval_of_cluster_means_on_the_logit_scale() -> None:
    # 10 documents, one question each, 5 right: jackknife variance of a mean = s^2 / n = (10/36) / 10 = 1/36.
    # se = 1/6; logit se = (1/6) / (1/4) = 2/3; t(.975, 9) = 2.262157; half = 1.508105; expit(1.508105) = .81878.
    interval = mean_interval([1.0, 0.0] * 5, list("abcdefghij"))
    assert interval.value == 0.5
    assert interval.high == pytest.approx(0.81878, abs=1e-5)
    assert interval.low == pytest.approx(1 - 0.81878, abs=1e-5)


def test_few_documents_get_no_interval_and_say_so() -> None:
    interval = mean_interval([1.0] * 90, list("abcdefghi") * 10)
    assert (interval.value, interval.low, interval.high, interval.note) == (1.0, None, None, TOO_FEW)


def test_all_right_in_every_document_still_leaves_doubt() -> None:
    interval = mean_interval([1.0] * 40, [i % 20 for i in range(40)])
    assert interval.high == 1.0
    assert interval.low == pytest.approx(0.025 ** (1 / 20))  # Clopper-Pearson for 20 of 20


def test_nothing_measured_is_not_zero() -> None:
    assert mean_interval([], []) == Interval(None)
    assert ratio_interval([0.0], [0.0], ["a"]) == Interval(None)
    with pytest.raises(ValueError, match="one entry a question"):
        mean_interval([1.0], [])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 15)), min_size=1, max_size=80))
def test_the_interval_holds_its_value_and_stays_in_range(rows: list[tuple[float, int]]) -> None:
    interval = mean_interval([v for v, _ in rows], [c for _, c in rows])
    assert interval.value is not None
    if interval.low is not None and interval.high is not None:
        assert 0 <= interval.low <= interval.value + 1e-9
        assert interval.value - 1e-9 <= interval.high <= 1


@pytest.mark.parametrize(("documents", "mean"), [(10, 0.1), (10, 0.7), (37, 0.1), (37, 0.7)])
def test_coverage_is_near_95_percent_when_questions_cluster(documents: int, mean: float) -> None:
    """Beta-binomial documents: correlation .15 within one, negative-binomial sizes, about 8 questions each."""
    random = np.random.default_rng(7)
    spread, hits, runs = 1 / 0.15 - 1, 0, 400
    for _ in range(runs):
        sizes = np.maximum(1, random.negative_binomial(3, 3 / 11, documents))
        right = random.binomial(sizes, random.beta(mean * spread, (1 - mean) * spread, documents))
        interval = ratio_interval(right.tolist(), sizes.tolist(), list(range(documents)))
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= mean <= interval.high
    assert 0.915 <= hits / runs <= 0.99  # 400 runs: 3 standard errors are .033


def test_coverage_of_f1_as_a_ratio_of_sums() -> None:
    """F1 = 2 S / (A + B) with scores right half of the time and one in four questions unanswerable."""
    random = np.random.default_rng(3)
    wanted = 2 * 0.75 * 0.5 / (0.75 + 0.9)
    hits, runs = 0, 400
    for _ in range(runs):
        documents = np.repeat(np.arange(20), 8)
        answerable = random.random(160) < 0.75
        positive = random.random(160) < 0.9
        rate = np.clip(random.beta(2.5, 2.5, 20), 0.01, 0.99)[documents]
        right = answerable & positive & (random.random(160) < rate / 0.9)
        interval = ratio_interval(
            (2.0 * right).tolist(), (answerable.astype(float) + positive).tolist(), documents.tolist()
        )
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= wanted <= interval.high
    assert 0.90 <= hits / runs <= 0.99  # rates above .9 are cut off, so the true value is a little lower
