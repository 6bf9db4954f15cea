"""The trace of a question as a page and in the terminal: its numbers are the trace's, its text is escaped."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from docmemo.config import BeliefParams
from docmemo.errors import ArtifactError
from docmemo.evaluation.trace_page import write_trace_page
from docmemo.evaluation.trace_terminal import bar, show
from docmemo.evaluation.trace_view import TraceView, clean, decimal, fitting_words, query_change, spend_words
from docmemo.qa.controller import Controller
from docmemo.qa.trace import Trace
from docmemo.types import (
    AnswerRecord,
    Candidate,
    Citation,
    Failure,
    Fitting,
    Page,
    PageCrop,
    Question,
    RoundRecord,
)
from docmemo.usage import Usage
from tests.evaluation.test_report import HOSTILE, Outline, archive

Plan = list[tuple[list[int], list[int], list[int]]]
"""Pages read, useful, irrelevant, by round."""

PLAN: Plan = [([2, 4], [2], [4]), ([2, 3], [2], [3]), ([2, 1], [], [])]


def trace_view(n: int, plan: Plan, gold: list[int], text: str = "What was sold?", **more: Any) -> TraceView:
    """The records of a question whose rounds went as planned, with the real controller's numbers."""
    rng = np.random.default_rng(1)
    controller = Controller(list(range(1, n + 1)), BeliefParams(), 0, "q1")
    records = []
    for number, (read, useful, irrelevant) in enumerate(plan, 1):
        similarity = rng.random(n)
        similarity = (similarity - similarity.min()) / max(float(np.ptp(similarity)), 1e-9)
        scores = controller.start_round(f"query {number}", similarity).score
        best = sorted(range(n), key=lambda i: -scores[i])[:20]
        controller.feedback(useful, irrelevant)
        records.append(
            RoundRecord(
                round=number,
                query=text if number == 1 else f"{text} in 2023",
                candidates=[Candidate(page=i + 1, score=scores[i]) for i in best],
                reranked=read,
                evidence=read,
                useful=useful,
                irrelevant=irrelevant,
                dropped=[n] if number == 2 else [],
                needs=["litres", text] if number == 2 else [],
                gated=number == 2,
                note=text,
                missing="the year",
                crops=[PageCrop(page=read[0], kind="table", bbox=(0.2, 0.3, 0.7, 0.6), caption=text)],
                usage=Usage(calls=2, input_tokens=1200, output_tokens=34, cost_usd=0.0125),
            )
        )
    belief = controller.belief
    assert belief is not None
    answer: dict[str, Any] = {
        "question_id": "q1",
        "doc_id": "a.pdf",
        "question": text,
        "outcome": "answer",
        "answer": text,
        "citations": [Citation(page=2, bbox=(0.1, 0.25, 0.6, 0.5), quote=text, label="ii")],
        "rounds": records,
        "usage": sum((r.usage for r in records), Usage()),
    }
    return TraceView(
        answer=AnswerRecord(**(answer | more)),
        trace=Trace(
            question_id="q1",
            doc_id="a.pdf",
            seed=0,
            pages=controller.pages,
            rounds=controller.rounds,
            a=belief.a.tolist(),
            b=belief.b.tolist(),
        ),
        question=Question(question_id="q1", doc_id="a.pdf", question=text, answer="12", evidence_pages=gold),
        pages={2: Page(page=2, printed="ii")},
    )


def page_of(view: TraceView, folder: Path) -> str:
    write_trace_page(folder / "out" / "trace.html", view, folder, thumbnail_width=120)
    return (folder / "out" / "trace.html").read_text(encoding="utf-8")


def terminal(view: TraceView, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), record=True, color_system=None, highlight=False)
    show(view, console)
    return console.export_text()


def test_belief_is_given_before_the_first_feedback_and_after_each() -> None:
    view = trace_view(5, PLAN, [3])
    assert view.trace is not None
    assert view.steps == ["start", "after 1", "after 2", "after 3"]
    first = view.trace.rounds[0]
    assert view.means(4)[0] == first.a[3] / (first.a[3] + first.b[3])
    # Page 4 was called irrelevant (b + 1) and lies two pages from the useful page 2 (a + 1/4).
    assert view.means(4)[1] == pytest.approx((first.a[3] + 0.25) / (first.a[3] + first.b[3] + 1.25))
    assert view.means(4)[3] == view.trace.a[3] / (view.trace.a[3] + view.trace.b[3])
    assert view.means(99) == []


def test_a_trace_of_another_answer_is_refused() -> None:
    view = trace_view(5, PLAN, [])
    with pytest.raises(ArtifactError, match="does not fit its answer"):
        _ = TraceView(view.answer.model_copy(update={"rounds": view.rounds[:1]}), view.trace).belief


def test_the_page_is_well_formed_and_needs_no_network_and_no_script(tmp_path: Path) -> None:
    archive(tmp_path, "a.pdf", 5)
    html = page_of(trace_view(5, PLAN, [3]), tmp_path)
    outline = Outline()
    outline.feed(re.sub(r"<(rect|line|circle|path|polyline)\b([^>]*)/>", r"<\1\2></\1>", html))
    assert outline.open == []
    for tag, attributes in outline.tags:
        assert tag not in {"link", "iframe", "img", "object", "base", "script"}
        assert not any((attributes.get(name) or "").startswith(("http", "//")) for name in ("src", "href"))
    style = html[html.index("<style>") : html.index("</style>")]
    assert "http" not in style
    assert "@import" not in style
    assert "script-src" not in html
    assert html.count("data:image/jpeg;base64,") == 4  # each page read, once


def test_numbers_in_the_page_are_the_traces(tmp_path: Path) -> None:
    view = trace_view(5, PLAN, [3])
    html = page_of(view, tmp_path)
    table = html[html.index('aria-label="Belief of the pages that mattered"') :]
    rows = re.findall(r"<tr><th scope=\"row\"[^>]*>(\d+).*?</tr>", table, re.S)
    assert [int(page) for page in rows] == view.mattered(12)
    for page in view.mattered(12):
        row = re.search(rf'<tr><th scope="row"[^>]*>{page}\b.*?</tr>', table, re.S)
        assert row is not None
        assert re.findall(r">(\d\.\d\d)<", row.group()) == [decimal(mean) for mean in view.means(page)]
    for record in view.rounds:
        for candidate in record.candidates:
            assert f'title="page {candidate.page}, score {candidate.score:.3f}"' in html
    assert "6 model calls, 3,600 tokens in, 102 out, $0.0375" in html
    before, after = view.means(2)[:2]
    assert f"belief {decimal(before)} → <b>{decimal(after)}</b>" in html


def test_the_page_says_what_became_of_gold_pages_and_marks_them_as_gold(tmp_path: Path) -> None:
    html = page_of(trace_view(5, PLAN, [3, 5, 70]), tmp_path)
    assert "first read in round 2" in html
    assert "never read" in html
    assert "gold, irrelevant" in html  # page 3: the reader was wrong
    assert "the search and the reader never see it" in html
    without = page_of(TraceView(trace_view(5, PLAN, []).answer, trace_view(5, PLAN, []).trace, None, {}), tmp_path)
    assert "◆" not in without


def test_boxes_of_crops_and_citations_lie_where_the_records_say(tmp_path: Path) -> None:
    html = page_of(trace_view(5, PLAN, []), tmp_path)
    assert '<span class="crop" style="left:20.00%;top:30.00%;width:50.00%;height:30.00%">' in html
    assert '<span class="cite" style="left:10.00%;top:25.00%;width:50.00%;height:25.00%">' in html


def test_text_from_documents_is_escaped_everywhere(tmp_path: Path) -> None:
    html = page_of(trace_view(5, PLAN, [3], text=f"{HOSTILE}\ud800"), tmp_path)
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html


def test_a_long_document_shows_all_pages_and_stays_small(tmp_path: Path) -> None:
    view = trace_view(468, [([212, 35], [212], [35]), ([213, 212], [213], []), ([214], [], [])], [213, 300])
    html = page_of(view, tmp_path)
    assert len(html) < 400_000
    strips = re.findall(r'<svg viewBox="0 0 468 1".*?</svg>', html)
    assert len(strips) == 4
    for strip in strips:
        assert sum(int(width) for width in re.findall(r'width="(\d+)"', strip)) == 468
    everything = html[html.index('aria-label="Belief of all pages"') :]
    assert len(re.findall(r'<tr><th scope="row"', everything[: everything.index("</table>")])) == 468
    assert {212, 213, 300} <= set(view.mattered(12))
    assert len(view.mattered(12)) == 12
    lines = terminal(view).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("All 468 pages, the best of 7 pages each" in line for line in lines)


def test_a_failed_question_shows_its_error(tmp_path: Path) -> None:
    record = AnswerRecord(
        question_id="q1",
        doc_id="a.pdf",
        question="What?",
        outcome="failed",
        error=Failure(kind="ModelTimeoutError", message="no reply in 120 s", retryable=True),
    )
    html, text = page_of(TraceView(record), tmp_path), terminal(TraceView(record))
    assert "ModelTimeoutError: <span" in html
    assert "No round was finished" in html
    assert "ModelTimeoutError: no reply in 120 s The next run asks again." in text
    assert "No round was finished." in text


def test_a_single_page_with_a_single_round_can_be_drawn(tmp_path: Path) -> None:
    view = trace_view(1, [([1], [1], [])], [1])
    assert "All 1 pages" in page_of(view, tmp_path)
    assert "first read in round 1" in terminal(view)


def test_the_terminal_shows_every_part_of_a_round() -> None:
    view = trace_view(5, PLAN, [3])
    text = terminal(view)
    flat = " ".join(text.split())
    for part in (
        "What was sold? [+in 2023+]",
        "1. litres 2. What was sold?",
        "page 2, table: What was sold?",
        "▲ useful 2 · ▼ irrelevant 3 · ignored 5 (not shown, or called both)",
        "“not answerable” was not accepted yet",
        "2 (printed ii) 3 ◆gold (new: 3)",
        "score: 70% similarity to the query, 30% belief",
        "page 3 first read in round 2",
        "2 model calls, 1,200 tokens in, 34 out, $0.0125",
    ):
        assert part in flat
    row = next(line for line in text.splitlines() if re.match(r"2 \(ii\)", line))
    assert re.findall(r"\.\d\d", row) == [decimal(mean)[1:] for mean in view.means(2)]
    assert max(map(len, text.splitlines())) <= 80


def test_what_steers_a_terminal_is_taken_out_of_text() -> None:
    assert clean("a\x1b[31mb\n\u202ec") == "a[31mb c"
    assert "\x1b" not in terminal(trace_view(5, PLAN, [], text="\x1b]0;title\x07What?"))


def test_bars_and_words() -> None:
    assert [bar(0, 2), bar(0.5, 2), bar(1, 2), bar(0.0625, 2)] == ["  ", "█ ", "██", "▏ "]
    assert spend_words(Usage()) == "no model calls"
    assert spend_words(Usage(calls=1, cost_usd=None)) == "1 model call, 0 tokens in, 0 out, cost unknown"
    assert query_change("net debt 2022", "net debt 2023 by year") == [
        ("same", "net debt "),
        ("removed", "2022"),
        ("added", "2023 by year"),
    ]
    assert query_change("销售额", "销售总额") == [("same", "销售"), ("added", "总"), ("same", "额")]


def test_what_was_left_out_for_lack_of_room_is_said_with_its_figures(tmp_path: Path) -> None:
    sizes = {"wanted": 41_000, "tokens": 29_500, "limit": 30_000}
    fitting = Fitting(crops=1, page_side=900, text_chars=1200, pages=[7, 8], **sizes)
    assert fitting_words(fitting) == (
        "1 crop, resolution (pages brought down to 900 pixels), 1,200 characters of text, pages 7, 8: all of it "
        "takes about 41,000 tokens, there is room for 30,000, 29,500 were sent"
    )
    full = {"full_answer": "It was 12 litres.", "confidence_score": 0.62}
    view = trace_view(5, PLAN, [3], **full)
    view.rounds[0].fitting = fitting
    view.rounds[0].rerank_note = "The reply named no candidate."
    html, text = page_of(view, tmp_path), " ".join(terminal(view, 110).split())
    for part in (fitting_words(fitting), "The reply named no candidate.", "It was 12 litres.", "0.62, the model"):
        assert part in html
        assert part in text
