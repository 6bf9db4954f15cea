from __future__ import annotations

from pathlib import Path

import pytest

from docmemo.artifacts import read_json
from docmemo.config import SummarizeParams
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.summarize import SummarizeStep
from docmemo.retrieval.summary import summarize_pages
from docmemo.types import Line, PageSet, SummarySet
from tests.pipeline.text_steps import archive, job
from tests.retrieval.build import document, page, table_page

PROSE = page(
    1,
    "The merger of the two shipyards was approved by the regulator in March.",
    "It is so. We think of it.",
    "The regulator demanded that the shipyards sell a dry dock before the merger.",
    "",
    "Figure 1: Market shares of the shipyards",
)
FILLER = page(2, "Weather and sport are reported here at some length for the readers.")
ROWS = [["Item", "2020", "2019"], ["Revenue", "1,200", "1,100"], ["Operating costs", "700", "650"]]


def summary(doc: PageSet, number: int = 1, **params: int) -> str:
    return summarize_pages(doc, SummarizeParams(**params)).summaries[number - 1].summary


def test_a_summary_holds_key_sentences_and_captions_but_no_chatter() -> None:
    text = summary(document(PROSE, FILLER))
    assert "Market shares of the shipyards" in text
    assert "approved by the regulator" in text
    assert "It is so" not in text


def test_headings_come_first() -> None:
    heading = Line(text="Approval of the Merger", bbox=(0.1, 0.13, 0.9, 0.15), block=50, size=18)
    with_heading = PROSE.model_copy(update={"lines": [heading, *PROSE.lines]})
    assert summary(document(with_heading, FILLER)).startswith("Approval of the Merger.")


def test_a_page_of_figures_is_summed_up_by_its_rows_and_columns() -> None:
    text = summary(document(table_page(1, ROWS), FILLER))
    assert "2020" in text
    assert "Revenue" in text
    assert "Operating costs" in text
    assert "650" not in text


def test_an_empty_page_has_an_empty_summary() -> None:
    made = summarize_pages(document(page(1), FILLER), SummarizeParams())
    assert (made.summaries[0].summary, made.summaries[0].keywords) == ("", [])
    assert [s.page for s in made.summaries] == [1, 2]


def test_ocr_noise_is_no_key_sentence() -> None:
    noise = page(
        1,
        "~ 1l| . ,' ;; 7 % $ 0 l I 1 | ' , . ; x q z 3 4 5 6",
        "",
        "The harbour was rebuilt after the great storm.",
        source="ocr",
    )
    text = summary(document(noise, FILLER))
    assert "harbour" in text
    assert "%" not in text


def test_chinese_sentences_are_kept_whole() -> None:
    doc = document(
        page(1, "公司在上海建立了新的研发中心。员工人数", "增长了百分之二十。"), page(2, "天气很好。"), language="zh"
    )
    text = summary(doc, sentences=1)
    assert text.endswith("。")
    assert text in ("公司在上海建立了新的研发中心。", "员工人数增长了百分之二十。")


@pytest.mark.parametrize("limit", [50, 80, 600])
def test_a_summary_is_never_longer_than_allowed(limit: int) -> None:
    assert 0 < len(summary(document(PROSE, FILLER), max_chars=limit)) <= limit
    assert len(summary(document(page(1, "x" * 900), FILLER), max_chars=limit)) <= limit


def test_keywords_are_the_words_of_this_page_and_not_of_all() -> None:
    made = summarize_pages(document(PROSE, FILLER), SummarizeParams(keywords=3)).summaries[0]
    assert "shipyards" in made.keywords
    assert len(made.keywords) == 3
    assert not {"the", "of", "we"} & set(made.keywords)


def test_running_headers_are_left_out() -> None:
    pages = []
    for i in range(1, 6):
        header = Line(text="ACME Annual Letter to All Shareholders", bbox=(0.1, 0.02, 0.9, 0.035), block=9, size=10)
        one = page(i, f"Sentence number {i} tells about quite different matters than others.")
        pages.append(one.model_copy(update={"lines": [header, *one.lines]}))
    assert "ACME" not in summary(document(*pages))


def test_the_step_writes_one_summary_a_page(tmp_path: Path) -> None:
    step = SummarizeStep(SummarizeParams(), {"summarizer": {"id": "extractive"}})
    with WorkPool(0, 10) as pool:
        step.compute(job({"render": archive(tmp_path, document(PROSE, FILLER))}), tmp_path / "out.json", pool)
    made = read_json(tmp_path / "out.json", SummarySet)
    assert made.doc_id == "d.pdf"
    assert [s.page for s in made.summaries] == [1, 2]


def test_pictures_do_not_change_the_key_but_boxes_do(tmp_path: Path) -> None:
    step = SummarizeStep(SummarizeParams(), {"summarizer": {"id": "extractive"}})
    doc = document(PROSE, FILLER)
    before = step.key(job({"render": archive(tmp_path, doc, b"one")}))
    assert step.key(job({"render": archive(tmp_path, doc, b"two")})) == before
    moved = PROSE.model_copy(update={"lines": [line.model_copy(update={"size": 20.0}) for line in PROSE.lines]})
    assert step.key(job({"render": archive(tmp_path, document(moved, FILLER))})) != before
