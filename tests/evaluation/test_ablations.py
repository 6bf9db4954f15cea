from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from docmemo.evaluation.ablations import (
    CSV_COLUMNS,
    FULL,
    Configuration,
    MadeWith,
    changed,
    csv_rows,
    differences,
    markdown,
)
from docmemo.evaluation.aggregate import aggregate, build_cases
from docmemo.evaluation.intervals import difference_interval
from docmemo.evaluation.tables import to_csv
from docmemo.types import AnswerRecord, Document
from tests.evaluation.builders import answered, failed, judged, one_round, question

QUESTIONS = [
    *(question(n, "cat", [1, 2] if n % 2 else [1], f"{n}.pdf", evidence_sources=["table"]) for n in range(1, 12)),
    question(12, "Not answerable", [], "1.pdf", answer_format="None", evidence_sources=[]),
]
DOCUMENTS = [Document(doc_id=f"{n}.pdf", path=f"{n}.pdf") for n in range(1, 12)]
MADE = MadeWith({"reasoner": {"provider": "docmemo", "id": "evidence-finder"}}, {"parameters": "ab12"}, True)


def configuration(name: str, answers: list[AnswerRecord]) -> Configuration:
    judgements = judged(QUESTIONS, answers)
    scores = aggregate(QUESTIONS, answers, judgements, DOCUMENTS, rounds=2)
    return Configuration(name, build_cases(QUESTIONS, answers, judgements, DOCUMENTS), scores)


def answers(pages: list[int], text: str = "cat") -> list[AnswerRecord]:
    """All questions answered the same, from the same pages; the last is declined."""
    found = [answered(q, text, [one_round(1, pages, pages)]) for q in QUESTIONS[:-1]]
    return [*found, answered(QUESTIONS[-1], None, [one_round(1, pages, pages)])]


FULL_ROW = configuration(FULL, answers([1, 2]))
STATIC = configuration("static", answers([1]))
BROKEN = configuration("no_schema", [failed(QUESTIONS[0]), *answers([1, 2])[1:]])


def table() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(csv_rows([FULL_ROW, STATIC, BROKEN]), CSV_COLUMNS))))


def test_the_csv_has_the_papers_columns_for_each_configuration_and_figure() -> None:
    rows = {(r["configuration"], r["metric"]): r for r in table()}
    assert list(table()[0])[2:11] == ["TXT", "LAY", "CHA", "TAB", "FIG", "UNA", "single", "multi", "overall"]
    counts = rows["questions", "recall"]
    assert [counts[c] for c in ("TXT", "TAB", "UNA", "single", "multi", "overall")] == [
        "0",
        "11",
        "0",
        "5",
        "6",
        "11",
    ]
    assert (rows["questions", "accuracy"]["UNA"], rows["questions", "accuracy"]["overall"]) == ("1", "12")
    static = rows["static", "all_hit"]
    assert (static["single"], static["multi"], static["TAB"], static["TXT"]) == ("1", "0", "0.454545", "")
    assert (static["overall"], static["multi_difference"]) == ("0.454545", "-1")
    assert rows["full", "accuracy"]["UNA"] == "1"
    assert rows["full", "recall"]["difference"] == "", "full is not compared with itself"


def test_a_failed_question_is_counted_and_lowers_the_figures() -> None:
    rows = {(r["configuration"], r["metric"]): r for r in table()}
    broken = rows["no_schema", "recall"]
    assert (broken["n_failed"], broken["changed"]) == ("1", "1")
    assert float(broken["difference"]) == pytest.approx(-1 / 11, abs=1e-6)
    assert float(rows["no_schema", "accuracy"]["difference"]) == pytest.approx(-1 / 12, abs=1e-6)


def test_differences_are_paired_by_question_and_clustered_by_document() -> None:
    found = differences(STATIC, FULL_ROW, "recall")
    # Six of eleven documents lose half of their pages.
    assert found.value == pytest.approx(-3 / 11)
    assert found.low is not None and found.high is not None
    assert -0.6 < found.low < found.value < found.high < 0
    assert changed(STATIC, FULL_ROW) == 12
    assert differences(STATIC, FULL_ROW, "accuracy").note == "all equal"


def test_an_interval_of_differences_by_hand() -> None:
    clusters = [str(i) for i in range(10)]
    found = difference_interval([1.0] * 5 + [0.0] * 5, clusters)
    # One question a document: the jackknife variance is s^2 / n = .27778 / 10, one more change adds 1 / 10^2,
    # so the error is .19437; t(9, .975) = 2.26216.
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.0603, 0.9397), abs=1e-4)
    mirrored = difference_interval([-1.0] * 5 + [0.0] * 5, clusters)
    assert (mirrored.value, mirrored.low, mirrored.high) == pytest.approx((-0.5, -0.9397, -0.0603), abs=1e-4)
    assert difference_interval([1.0, 0.0], ["a", "b"]).note == "too few documents"
    assert difference_interval([], []).value is None
    with pytest.raises(ValueError, match="one entry a question"):
        difference_interval([1.0], [])


def test_the_page_puts_evidence_first_and_says_that_accuracy_is_of_extracts() -> None:
    text = markdown([FULL_ROW, STATIC, BROKEN], MADE)
    assert text.index("## Evidence recall, by slice") < text.index("## Accuracy (rule) of extracts, by slice")
    assert "low-confidence extracts, not question answering" in text
    assert "−27.3 (" in text
    assert "evidence-finder" in text
    assert "ab12" in text
    header = next(line for line in text.splitlines() if line.startswith("| configuration | evidence recall"))
    for name in header.strip("| ").split(" | ")[1:]:
        assert f"- **{name.removesuffix(' of extracts')}**" in text, f"{name} is defined under the table"


def test_with_a_reader_that_answers_accuracy_comes_first_and_never_without_f1() -> None:
    text = markdown([FULL_ROW, STATIC], replace(MADE, evidence_finder=False))
    assert text.index("## Accuracy (rule), by slice") < text.index("## Evidence recall, by slice")
    assert "extracts" not in text
    for line in text.splitlines():
        if line.startswith("| configuration") and "accuracy (" in line and "multi-page" not in line:
            assert "F1 (rule)" in line


def test_what_changes_nothing_is_named() -> None:
    same = configuration("greedy", answers([1, 2]))
    assert "No question changed under greedy:" in markdown([FULL_ROW, same, STATIC], MADE)
    assert "No question changed" not in markdown([FULL_ROW, STATIC], MADE)


def test_without_the_full_method_there_are_figures_and_no_differences() -> None:
    text = markdown([STATIC], MADE)
    assert "Difference to full" not in text
    assert csv_rows([STATIC])[-1].get("difference") is None
