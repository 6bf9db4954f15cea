from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.documents.passages import join_lines, passages, sentence_spans
from tests.retrieval.build import page, table_page


def sentences(text: str) -> list[str]:
    return [text[a:z] for a, z in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See Fig. 4 for Mr. Smith. Then go.", ["See Fig. 4 for Mr. Smith.", "Then go."]),
        ("It rose by 3.5 percent. Good.", ["It rose by 3.5 percent.", "Good."]),
        ("Das gilt z. B. hier. Ende.", ["Das gilt z. B. hier.", "Ende."]),
        ("收入增长。员工很多！为什么？", ["收入增长。", "员工很多！", "为什么？"]),
        ("ما هذا؟ هذا كتاب.", ["ما هذا؟", "هذا كتاب."]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


@given(st.text(alphabet="ab. !?。\n", max_size=60))
def test_sentences_keep_all_that_is_not_space(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join("".join(text[a:z].split()) for a, z in spans) == "".join(text.split())
    assert all(a < z for a, z in spans)


def test_joined_lines_lose_their_hyphens_but_names_keep_them() -> None:
    assert join_lines(["the infor-", "mation of"])[0] == "the information of"
    assert join_lines(["Rolls-", "Royce"])[0] == "Rolls- Royce"
    assert join_lines(["上海", "市"])[0] == "上海市"


def test_a_sentence_stands_on_the_lines_it_touches() -> None:
    found = passages(page(1, "First sentence ends", "here. Second one", "goes on. Third."))
    assert [(p.text, p.lines) for p in found] == [
        ("First sentence ends here.", (0, 1)),
        ("Second one goes on.", (1, 2)),
        ("Third.", (2,)),
    ]


@pytest.mark.parametrize("source", ["text_layer", "ocr"])
def test_a_table_row_comes_with_its_header(source: str) -> None:
    rows = [["Item", "2020", "2019"], ["Revenue", "1,200", "1,100"], ["Costs", "700", "650"]]
    found = [p for p in passages(table_page(1, rows, source=source)) if p.kind == "row"]
    assert [p.text for p in found] == [
        "Item | 2020 | 2019",
        "Item | 2020 | 2019\nRevenue | 1,200 | 1,100",
        "Item | 2020 | 2019\nCosts | 700 | 650",
    ]
    assert found[1].lines == (0, 1, 2, 3, 4, 5)


def test_ocr_lines_that_follow_each_other_are_one_paragraph() -> None:
    made = page(1, "The company grew in", "all of its regions.", source="ocr")
    made.lines[1].block = 7
    assert [p.text for p in passages(made)] == ["The company grew in all of its regions."]


def test_a_page_without_text_has_no_passages() -> None:
    assert passages(page(1)) == []
