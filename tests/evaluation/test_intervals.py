from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interval_coverage import Cell, coverage, difference_coverage, kappa_coverage, ours
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


@pytest.mark.parametrize("documents", [10, 37, 135])
@pytest.mark.parametrize(
    ("mean", "correlation", "sizes", "scores"),
    [
        (0.1, 0.15, "uniform", "binary"),
        (0.5, 0.05, "benchmark", "f1"),
        (0.9, 0.15, "uniform", "anls"),
        (0.9, 0.05, "benchmark", "binary"),
    ],
)
def test_95_percent_intervals_cover_about_that_when_questions_cluster(
    documents: int, mean: float, correlation: float, sizes: str, scores: str
) -> None:
    """A part of benchmarks/interval_coverage.py with fewer datasets; the whole is in docs/decisions/0005."""
    runs = 400
    (found,) = coverage(Cell(documents, mean, correlation, sizes, scores), [ours], runs, seed=1)
    assert 0.90 <= found <= 0.995  # true values are .93 to .97; 400 runs: 3 standard errors are .04


def test_documents_that_look_alike_by_chance_do_not_give_a_narrow_interval() -> None:
    # Ten documents with half of eight questions right each: no variance between them at all.
    interval = mean_interval([1.0, 0.0] * 40, [i // 8 for i in range(80)])
    half = 2.262157 * (0.65 / 80 / 0.25) ** 0.5  # on the logit scale: t(9) * sqrt(.65 * .25 / 80) / .25
    assert interval.high == pytest.approx(1 / (1 + np.exp(-half)), abs=1e-6)
    assert interval.low == pytest.approx(1 - interval.high, abs=1e-9)


@pytest.mark.parametrize("documents", [10, 37, 135])
def test_intervals_of_differences_and_of_kappa_cover_too(documents: int) -> None:
    runs = 300
    covered, equal = difference_coverage(documents, 0.15, 0.7, "benchmark", runs, seed=1)
    assert 0.90 <= covered <= 0.995
    assert equal == 0
    kappa, _ = kappa_coverage(documents, 0.1, runs, seed=1)
    assert 0.90 <= kappa <= 0.998


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
