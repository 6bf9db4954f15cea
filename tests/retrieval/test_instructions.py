from __future__ import annotations

import pytest

from docmemo.retrieval.instructions import without_answer_form


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How many people work there? Give me an integer.", "How many people work there?"),
        ('Which ones rose? Please write the answer in list format, e.g., ["a","b"]', "Which ones rose?"),
        ("What is the rate? round your answer to three decimal places", "What is the rate?"),
        ("what is the expense in FY 2015? Answer in millions", "what is the expense in FY 2015?"),
        ("Wie viele Menschen arbeiten dort? Gib die Antwort als ganze Zahl.", "Wie viele Menschen arbeiten dort?"),
        ("员工有多少？请用整数格式回答。", "员工有多少？"),
    ],
)
def test_what_is_said_about_the_answers_form_is_left_out(query: str, wanted: str) -> None:
    assert without_answer_form(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "Give the names of all suppliers as a list.",
        "I read chapter 3. Give the risk factors as a list.",
        "How is the return on equity defined?",
        "What is the format of the answer sheet?",
        "",
    ],
)
def test_a_query_that_asks_for_content_stays_whole(query: str) -> None:
    assert without_answer_form(query) == query
