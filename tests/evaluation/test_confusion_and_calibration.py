from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from docmemo.evaluation.calibration import BINS, bin_of, calibration
from docmemo.evaluation.confusion import State, confusion


def test_declining_is_measured_against_the_questions_without_an_answer() -> None:
    cases: list[tuple[State, bool | None]] = [
        *[("answered", True)] * 5,
        *[("not_answerable", True)] * 2,
        ("failed", True),
        *[("not_answerable", False)] * 3,
        ("answered", False),
        ("failed", False),
        ("answered", None),
    ]
    found = confusion(cases)
    assert found["answerable"] == {"answered": 5, "not_answerable": 2, "failed": 1}
    assert found["unanswerable"] == {"answered": 1, "not_answerable": 3, "failed": 1}
    assert found["unknown"] == 1
    # 3 of 5 declined rightly; 3 of 5 without answer declined, the failed one being missed.
    assert found["abstaining"] == {"precision": 0.6, "recall": 0.6, "f1": 0.6}


def test_where_nothing_was_declined_precision_is_unknown_and_not_zero() -> None:
    assert confusion([("answered", True)])["abstaining"] == {"precision": None, "recall": None, "f1": None}
    assert confusion([("answered", False)])["abstaining"] == {"precision": None, "recall": 0.0, "f1": 0.0}


def test_calibration_by_hand() -> None:
    # .95 and .93 are one bin (mean .94, right in half), .2 is in bin 2 (wrong): ECE = 2/3 * .44 + 1/3 * .2.
    found = calibration([(0.95, 1.0), (0.93, 0.0), (0.2, 0.0)])
    assert found is not None
    assert found["n"] == 3
    assert found["ece"] == pytest.approx(2 / 3 * 0.44 + 0.2 / 3)
    assert found["brier"] == pytest.approx((0.05**2 + 0.93**2 + 0.2**2) / 3)
    assert {number: held["n"] for number, held in found["bins"].items()} == {"2": 1, "10": 2}
    assert found["bins"]["10"]["score"] == 0.5
    assert calibration([]) is None


def test_a_confidence_belongs_to_the_bin_it_closes() -> None:
    assert [bin_of(c) for c in (0.0, 0.1, 0.1001, 0.3, 0.7, 1.0)] == [1, 1, 2, 3, 7, 10]
    with pytest.raises(ValueError, match=r"lies in 0\.\.1"):
        bin_of(1.01)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 997), st.booleans()), min_size=1, max_size=60))
def test_bins_are_those_of_scikit_learn(rows: list[tuple[int, bool]]) -> None:
    # Inner edges, which the two give to different bins, are avoided: no k / 998 but 0 is a tenth.
    confidences, right = [k / 998 for k, _ in rows], [float(value) for _, value in rows]
    kept = [(c, r) for c, r in zip(confidences, right, strict=True) if abs(c * BINS - round(c * BINS)) > 1e-9]
    found = calibration(kept)
    if found is None:
        return
    score, confidence = calibration_curve([r for _, r in kept], [c for c, _ in kept], n_bins=BINS, pos_label=1.0)
    ours = list(found["bins"].values())
    assert [held["score"] for held in ours] == pytest.approx(list(np.asarray(score)))
    assert [held["confidence"] for held in ours] == pytest.approx(list(np.asarray(confidence)))
