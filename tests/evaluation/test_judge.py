from __future__ import annotations

import pytest

from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.scorers import get_scorer
from tests.evaluation.builders import answered, failed, question

RULE = get_scorer("mmlongbench")


def test_an_answer_is_scored_and_names_its_rule() -> None:
    asked = question(1, "12", [1], answer_format="Int")
    judgement = judge_by_rule(asked, answered(asked, "12", []), RULE)
    assert (judgement.rule_score, judgement.scorer, judgement.unscored) == (1.0, "mmlongbench/1", "")


def test_the_verdict_not_answerable_is_scored_as_these_words() -> None:
    nothing = question(1, "Not answerable", [], answer_format="None")
    something = question(2, "12", [1], answer_format="Int")
    assert judge_by_rule(nothing, answered(nothing, None, []), RULE).rule_score == 1.0
    assert judge_by_rule(something, answered(something, None, []), RULE).rule_score == 0.0


def test_a_failed_question_is_unscored_not_zero() -> None:
    asked = question(1, "12", [1])
    judgement = judge_by_rule(asked, failed(asked), RULE)
    assert judgement.rule_score is None
    assert judgement.unscored == "the question failed: ModelTimeoutError"


def test_a_question_without_gold_answer_is_unscored() -> None:
    asked = question(1, None, [])
    judgement = judge_by_rule(asked, answered(asked, "12", []), RULE)
    assert judgement.rule_score is None
    assert "no gold answer" in judgement.unscored


def test_records_of_two_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="not about question"):
        judge_by_rule(question(1, "a", []), answered(question(2, "a", []), "a", []), RULE)


def test_the_best_of_several_reference_answers_counts() -> None:
    rule = get_scorer("token_f1")
    asked = question(1, "red and blue", [], references=["the colour purple", "blue"])
    assert judge_by_rule(asked, answered(asked, "purple colour", []), rule).rule_score == 1.0
    assert judge_by_rule(asked, answered(asked, "blue", []), rule).rule_score == 1.0
    assert judge_by_rule(asked, answered(asked, "green", []), rule).rule_score == 0.0
    alone = asked.model_copy(update={"references": []})
    assert judge_by_rule(alone, answered(alone, "blue", []), rule).rule_score == 0.5


def test_a_reference_answer_is_gold_and_never_shown() -> None:
    assert question(1, "a", [], references=["b"]).without_gold().references == []
