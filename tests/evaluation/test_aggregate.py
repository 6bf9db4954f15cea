from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from docmemo.errors import DatasetError
from docmemo.evaluation.aggregate import DEFINITIONS, Spend, aggregate, build_cases
from docmemo.evaluation.tables import (
    CURVE_COLUMNS,
    ROUND_COLUMNS,
    SLICE_COLUMNS,
    curve_rows,
    provenance,
    question_columns,
    question_rows,
    round_rows,
    slice_rows,
    to_csv,
)
from docmemo.types import AnswerRecord, Document, Question, Verdict
from docmemo.usage import Usage
from tests.evaluation.builders import answered, failed, judged, one_round, question

QUESTIONS = [
    question(1, "cat", [1]),
    question(2, "dog", [2, 9]),
    question(3, "Not answerable", [], "b.pdf", answer_format="None", evidence_sources=[]),
    question(4, "Not answerable", [], "b.pdf", answer_format="None", evidence_sources=[]),
    question(5, "fox", [1418], "b.pdf", evidence_sources=["table", "text"]),
    question(6, None, [], "b.pdf", evidence_sources=[]),
]
ANSWERS: list[AnswerRecord] = [
    answered(QUESTIONS[0], "cat", [one_round(1, [1, 2, 3, 4], [1, 2], useful=[1], irrelevant=[2])]),
    answered(
        QUESTIONS[1],
        "bird",
        [
            one_round(1, [5, 2, 1, 4], [5, 2], useful=[2], irrelevant=[5]),
            one_round(2, [9, 5], [9, 5], irrelevant=[9]),
        ],
    ),
    answered(QUESTIONS[2], None, [one_round(1, [1], [1])]),
    answered(QUESTIONS[3], "wolf", [one_round(1, [1], [1])]),
    failed(QUESTIONS[4]),
    answered(QUESTIONS[5], "bear", [one_round(1, [1], [1])]),
]
DOCUMENTS = [
    Document(doc_id="a.pdf", path="a.pdf", doc_type="Guidebook"),
    Document(doc_id="b.pdf", path="b.pdf"),
    Document(doc_id="c.pdf", path="c.pdf", status="failed", reason="It is empty. Replace the file."),
]


def scores(**more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"rounds": 3, "scanned": {"a.pdf": False, "b.pdf": True}}
    return aggregate(QUESTIONS, ANSWERS, judged(QUESTIONS, ANSWERS), DOCUMENTS, **(values | more))


def test_counts_add_up() -> None:
    found = scores()
    assert (found["n_questions"], found["n_answered"], found["n_failed"], found["n_unscored"]) == (6, 5, 1, 1)
    assert (found["n_documents"], found["n_documents_failed"]) == (3, 1)


def test_accuracy_counts_a_failure_as_zero_and_leaves_out_the_unscored() -> None:
    # 1, 0, 1, 0 and the failed one, of five questions with a gold answer.
    assert scores()["accuracy"]["rule"] == {"value": 0.4, "low": None, "high": None}
    assert scores()["accuracy"]["judge"] == {"value": None, "low": None, "high": None}


def test_f1_balances_answering_and_declining() -> None:
    # Scores of answerable questions: 1. Three are answerable; three were given an answer: R = P = 1/3.
    assert scores()["f1"]["rule"]["value"] == 0.333333


def test_retrieval_is_over_questions_with_gold_pages() -> None:
    found = scores()["retrieval"]
    # q1: 1 first. q2: 2 of [2, 9] second. q5 failed before it ranked anything.
    assert (found["recall_at_1"], found["recall_at_3"], found["all_hit_at_3"]) == (0.333333, 0.5, 0.333333)


def test_evidence_accumulates_over_rounds_at_natural_stop() -> None:
    found = scores()["evidence"]
    assert found["recall_at_round"] == {"1": 0.5, "2": 0.666667, "3": 0.666667}
    assert found["all_hit_at_round"] == {"1": 0.333333, "2": 0.666667, "3": 0.666667}
    assert "forced" not in found


def test_forced_rounds_leave_the_natural_stop_unknown() -> None:
    found = scores(forced=True)["evidence"]
    assert found["forced"]["recall_at_round"]["3"] == 0.666667
    assert found["recall_at_round"] == {"1": None, "2": None, "3": None}


def test_feedback_against_gold() -> None:
    assert scores()["feedback"] == {
        "useful_precision": 1.0,  # 1 and 2
        "useful_recall": 0.666667,  # of 1, 2 and 9
        "irrelevant_precision": 0.666667,  # 2, 5 and not 9
        "irrelevant_recall": 0.666667,  # 2, 5 of 2, 5, 5
        "gold_called_irrelevant": 1,
    }


def test_reading_and_spend() -> None:
    found = scores(spend=Spend(Usage(calls=7, input_tokens=100, cost_usd=None), seconds_offline=1.5))
    assert (found["rounds"]["mean"], found["page_reads"]["mean"], found["distinct_pages"]["mean"]) == (1.2, 1.8, 1.6)
    assert found["calls"] == {"offline": 7, "online": 10, "judge": 0}
    assert found["tokens"] == {"offline": 100, "online": 75, "judge": 0}
    assert found["cost_usd"] == {"offline": None, "online": 1.25, "judge": 0.0}
    assert found["seconds"] == {"offline": 1.5, "online": None, "judge": None}


def test_a_judges_verdicts_are_scored_and_paid_for_apart() -> None:
    judgements = judged(QUESTIONS, ANSWERS)
    verdicts = {"q1": True, "q2": True, "q3": False}
    with_judge = [
        j.model_copy(
            update={
                "verdict": Verdict(judge="m", prompt="p", correct=verdicts[j.question_id]),
                "usage": Usage(calls=1, input_tokens=20, output_tokens=2, cost_usd=None),
            }
        )
        if j.question_id in verdicts
        else j
        for j in judgements
    ]
    found = aggregate(QUESTIONS, ANSWERS, with_judge, DOCUMENTS, rounds=3, spend=Spend(seconds_judge=2.5))
    # q1 and q2 right, q3 wrong, the failed q5 wrong; q4 has no verdict, q6 no gold answer.
    assert (found["accuracy"]["judge"]["value"], found["n_unjudged"], found["n_unscored"]) == (0.5, 2, 1)
    assert found["accuracy"]["rule"]["value"] == 0.4
    assert found["multi_page"]["accuracy_judge"]["value"] == 1.0
    assert found["agreement"] == {
        "n": 3,  # rule: right, wrong, right
        "both_right": 1,
        "only_rule": 1,
        "only_judge": 1,
        "both_wrong": 0,
        "agreement": {"value": 0.333333, "low": None, "high": None},
        "kappa": {"value": -0.5, "low": None, "high": None},
    }
    assert (found["calls"]["judge"], found["tokens"]["judge"], found["cost_usd"]["judge"]) == (3, 66, None)
    assert (found["calls"]["online"], found["seconds"]["judge"]) == (10, 2.5)


def test_without_a_judge_its_figures_are_absent() -> None:
    found = scores()
    assert (found["n_unjudged"], found["agreement"]) == (None, None)
    assert found["single_page"]["accuracy_judge"]["value"] is None


def test_answering_and_declining_are_counted_by_what_the_gold_says() -> None:
    found = scores()["confusion"]
    assert found["answerable"] == {"answered": 2, "not_answerable": 0, "failed": 1}
    assert found["unanswerable"] == {"answered": 1, "not_answerable": 1, "failed": 0}
    assert found["unknown"] == 1
    assert found["abstaining"] == {"precision": 1.0, "recall": 0.5, "f1": 0.666667}


def test_calibration_is_over_questions_with_a_confidence_and_a_score() -> None:
    assert scores()["calibration"] == {"rule": None, "judge": None}
    sure = {"q1": 0.9, "q2": 0.8, "q6": 0.7}  # q6 has no gold answer
    answers = [a.model_copy(update={"confidence_score": sure.get(a.question_id)}) for a in ANSWERS]
    found = aggregate(QUESTIONS, answers, judged(QUESTIONS, answers), DOCUMENTS, rounds=3)["calibration"]
    assert found["judge"] is None
    assert (found["rule"]["n"], found["rule"]["score"], found["rule"]["ece"]) == (2, 0.5, 0.45)
    assert found["rule"]["bins"]["9"] == {"n": 1, "confidence": 0.9, "score": 1.0}


def test_slices_hold_their_questions() -> None:
    found = scores()
    assert {name: s["n"] for name, s in found["by_evidence_source"].items()} == {"text": 3, "table": 1}
    assert {name: s["n"] for name, s in found["by_doc_type"].items()} == {"Guidebook": 2, "unknown": 4}
    assert {name: s["n"] for name, s in found["by_answer_format"].items()} == {"Str": 4, "None": 2}
    assert {name: s["n"] for name, s in found["by_text_layer"].items()} == {"text": 2, "scanned": 4}
    assert [found[name]["n"] for name in ("single_page", "multi_page", "unanswerable")] == [2, 1, 2]
    assert found["single_page"]["accuracy"]["value"] == 0.5
    assert found["unanswerable"]["accuracy"]["value"] == 0.5
    assert found["unanswerable"]["f1"]["value"] is None
    assert found["multi_page"]["retrieval"]["recall_at_3"] == 0.5


def test_a_question_without_any_record_counts_as_failed() -> None:
    found = aggregate(QUESTIONS[:1], [], [], DOCUMENTS, rounds=3)
    assert (found["n_failed"], found["accuracy"]["rule"]["value"]) == (1, 0.0)
    assert found["evidence"]["recall_at_round"]["3"] == 0.0


def test_an_empty_dataset_has_no_figures_and_no_error() -> None:
    found = aggregate([], [], [], [], rounds=3)
    assert found["n_questions"] == 0
    assert found["accuracy"]["rule"]["value"] is None
    assert found["rounds"]["mean"] is None


def test_records_of_unknown_questions_are_refused() -> None:
    with pytest.raises(DatasetError, match="unknown questions"):
        aggregate(QUESTIONS[:1], ANSWERS, [], DOCUMENTS, rounds=3)
    with pytest.raises(DatasetError, match="twice"):
        build_cases([QUESTIONS[0], QUESTIONS[0]], [], [], [])


def test_the_order_of_records_changes_nothing() -> None:
    judgements = judged(QUESTIONS, ANSWERS)
    scanned = {"b.pdf": True, "a.pdf": False}
    shuffled = aggregate(QUESTIONS[::-1], ANSWERS[::-1], judgements[::-1], DOCUMENTS[::-1], rounds=3, scanned=scanned)
    assert json.dumps(shuffled) == json.dumps(scores())


def test_every_figure_has_a_definition() -> None:
    found = scores()
    for key in found:
        assert any(name == key or name.startswith(f"{key}.") for name in DEFINITIONS), key


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_reached_curve_is_over_the_questions_that_ran_the_round() -> None:
    found = scores()["evidence"]["reached"]
    # Round 1: q1 all of [1], q2 half of [2, 9]. Round 2: q2 alone, by then all. The failed q5 ran none.
    assert found["recall_at_round"] == {"1": 0.75, "2": 1.0, "3": None}
    assert found["all_hit_at_round"] == {"1": 0.5, "2": 1.0, "3": None}
    assert found["n"] == {"1": 2, "2": 1, "3": 0}


def test_rounds_csv_has_natural_and_reached_curves_for_single_and_multi_page_questions_apart() -> None:
    cases = build_cases(QUESTIONS, ANSWERS, judged(QUESTIONS, ANSWERS), DOCUMENTS)
    rows = table(to_csv(round_rows(cases, 2, forced=False), ROUND_COLUMNS))
    assert [(r["kind"], r["pages"], r["round"], r["recall"], r["n"]) for r in rows] == [
        ("natural", "all", "1", "0.5", "3"),
        ("natural", "all", "2", "0.666667", "3"),
        ("natural", "single", "1", "0.5", "2"),
        ("natural", "single", "2", "0.5", "2"),
        ("natural", "multi", "1", "0.5", "1"),
        ("natural", "multi", "2", "1", "1"),
        ("reached", "all", "1", "0.75", "2"),
        ("reached", "all", "2", "1", "1"),
        ("reached", "single", "1", "1", "1"),
        ("reached", "single", "2", "", "0"),
        ("reached", "multi", "1", "0.5", "1"),
        ("reached", "multi", "2", "1", "1"),
    ]
    forced = round_rows(cases, 2, forced=True)
    assert {row["kind"] for row in forced} == {"forced", "reached"}


def test_curves_csv_has_one_row_a_round_so_that_a_plot_draws_lines() -> None:
    cases = build_cases(QUESTIONS, ANSWERS, judged(QUESTIONS, ANSWERS), DOCUMENTS)
    rows = table(to_csv(curve_rows(cases, 2), CURVE_COLUMNS))
    assert [r["round"] for r in rows] == ["1", "2"]
    assert [(r["recall"], r["recall_single"], r["recall_multi"]) for r in rows] == [
        ("0.5", "0.5", "0.5"),
        ("0.666667", "0.5", "1"),
    ]
    assert [(r["all_hit"], r["all_hit_single"], r["all_hit_multi"]) for r in rows] == [
        ("0.333333", "0.5", "0"),
        ("0.666667", "0.5", "1"),
    ]


def test_questions_csv_holds_figures_and_no_text() -> None:
    cases = build_cases(QUESTIONS, ANSWERS, judged(QUESTIONS, ANSWERS), DOCUMENTS)
    text = to_csv(question_rows(cases, 3), question_columns(3))
    rows = table(text)
    assert [r["outcome"] for r in rows] == ["answer", "answer", "not_answerable", "answer", "failed", "answer"]
    assert [r["rule_score"] for r in rows] == ["1", "0", "1", "0", "", ""]
    assert [r["recall_round_2"] for r in rows] == ["1", "1", "", "", "0", ""]
    for secret in ("cat", "wolf", "Question number", "query"):
        assert secret not in text


def test_slices_csv_repeats_the_scores() -> None:
    rows = table(to_csv(slice_rows(scores()), SLICE_COLUMNS))
    single = next(r for r in rows if r["slice"] == "single_page")
    assert (single["dimension"], single["n"], single["accuracy"], single["accuracy_low"]) == ("pages", "2", "0.5", "")


def test_provenance_names_no_place_on_the_machine() -> None:
    found = provenance(
        params={"dataset": {"root": "/home/someone/data"}, "windows": "C:\\Users\\me\\data", "list": ["/x/y"]},
        models={},
        prompts={},
        code="ab12",
        dataset="cd34",
        judge="mmlongbench/1",
    )
    assert found["params"] == {"dataset": {"root": "data"}, "windows": "data", "list": ["y"]}
    assert list(found) == ["code", "dataset", "judge", "models", "params", "prompts"]


def test_an_unknown_question_format_is_compared_as_text() -> None:
    asked: list[Question] = [question(1, "cat", [1], answer_format=None)]
    answers = [answered(asked[0], "Cat", [])]
    assert judged(asked, answers)[0].rule_score == 1.0
