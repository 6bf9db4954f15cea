from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from docmemo.artifacts import PAGES_MEMBER, artifact_name, write_archive
from docmemo.config import ReportParams
from docmemo.evaluation.aggregate import aggregate
from docmemo.evaluation.report import mark_terms, write_report
from docmemo.evaluation.terminal import headline, percent
from docmemo.evaluation.thumbnails import thumbnails
from docmemo.types import Citation, Document, Page, PageSet
from tests.evaluation.builders import answered, failed, judged, one_round, question

HOSTILE = "<script>alert('x')</script> & \"quoted\" <img src=http://evil.example/x.png>"
VOID = {"meta", "img", "br", "hr", "input", "link"}


class Outline(HTMLParser):
    """Checks that tags close in order, and keeps tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def archive(folder: Path, doc_id: str, n: int) -> None:
    members = []
    for number in range(1, n + 1):
        buffer = io.BytesIO()
        Image.new("RGB", (600, 800), (40 * number % 255, 90, 120)).save(buffer, "JPEG")
        members.append((f"{number}.jpg", buffer.getvalue()))
    pages = [Page(page=i + 1, image=name) for i, (name, _) in enumerate(members)]
    write_archive(
        folder / artifact_name(doc_id, ".pages.zip"),
        PAGES_MEMBER,
        PageSet(doc_id=doc_id, sha256="", pages=pages),
        members,
    )


@pytest.fixture
def made(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The report of three questions, and its scores."""
    questions = [
        question(1, HOSTILE, [2, 4], question=f"What is alert? {HOSTILE}"),
        question(2, "no", [1], "gone.pdf"),
        question(3, "Not answerable", [], answer_format="None"),
    ]
    quote = Citation(page=2, bbox=(0.1, 0.25, 0.6, 0.5), quote=HOSTILE, label="ii")
    answers = [
        answered(questions[0], HOSTILE, [one_round(1, [2, 1], [2, 1])], citations=[quote]),
        failed(questions[1]),
        answered(questions[2], None, [one_round(1, [2], [2])], reason="Read 1 of 4 pages."),
    ]
    documents = [
        Document(doc_id="a.pdf", path="a.pdf"),
        Document(doc_id="gone.pdf", path="gone.pdf", status="failed", reason="It is empty. Replace the file."),
    ]
    archive(tmp_path, "a.pdf", 4)
    judgements = judged(questions, answers)
    scores = aggregate(questions, answers, judgements, documents, rounds=2)
    write_report(
        tmp_path / "report.html",
        scores=scores,
        questions=questions,
        answers=answers,
        judgements=judgements,
        documents=documents,
        pages_dir=tmp_path,
        params=ReportParams(),
        provenance={"code": "ab12", "params": {"x": 1}},
    )
    return (tmp_path / "report.html").read_text(encoding="utf-8"), scores


def test_the_report_is_well_formed_and_needs_no_network(made: tuple[str, dict[str, Any]]) -> None:
    outline = Outline()
    outline.feed(made[0])
    assert outline.open == []
    for tag, attributes in outline.tags:
        assert tag not in {"link", "iframe", "img", "object", "base"}
        for name in ("src", "href", "action", "srcset"):
            assert not re.match(r"(?i)\s*(https?:)?//", attributes.get(name) or "")
    style = made[0][made[0].index("<style>") : made[0].index("</style>")]
    assert "http" not in style
    assert "@import" not in style
    assert sum(tag == "script" for tag, _ in outline.tags) == 1


def test_text_from_documents_is_escaped_everywhere(made: tuple[str, dict[str, Any]]) -> None:
    assert "<script>alert" not in made[0]
    assert "<img" not in made[0]
    assert "&lt;script&gt;" in made[0]


def test_printed_figures_are_the_scores(made: tuple[str, dict[str, Any]]) -> None:
    html, scores = made
    big = re.findall(r'<p class="big">([^<]*)</p>', html)
    assert big == [
        percent(scores["evidence"]["recall_at_round"]["2"]),
        percent(scores["evidence"]["all_hit_at_round"]["2"]),
        percent(scores["accuracy"]["rule"]["value"]),
        percent(scores["f1"]["rule"]["value"]),
    ]
    assert "1 failed" in html
    assert "0 unscored" in html
    assert "too few documents" in html


def test_a_thumbnail_is_embedded_once_and_boxes_lie_where_the_citation_says(made: tuple[str, dict[str, Any]]) -> None:
    html = made[0]
    assert html.count("data:image/jpeg;base64,") == 3  # pages 1, 2 and the missed 4; page 2 is shown twice
    assert "left:10.00%;top:25.00%;width:50.00%;height:25.00%" in html
    assert "gold, found" in html
    assert "gold, missed" in html


def test_failures_and_remedies_are_shown(made: tuple[str, dict[str, Any]]) -> None:
    assert "It is empty. Replace the file." in made[0]
    assert "ModelTimeoutError: no reply in 120 s (the next run asks again)" in made[0]
    assert "Read 1 of 4 pages." in made[0]


def test_extracts_are_never_called_answers_to_questions(made: tuple[str, dict[str, Any]]) -> None:
    assert "low-confidence extract, not question answering" in made[0]


def test_an_empty_run_still_makes_a_report(tmp_path: Path) -> None:
    write_report(
        tmp_path / "report.html",
        scores=aggregate([], [], [], [], rounds=3),
        questions=[],
        answers=[],
        judgements=[],
        documents=[],
        pages_dir=tmp_path,
        params=ReportParams(),
        provenance={},
    )
    assert "0 questions" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_marks_stand_on_the_questions_terms_only() -> None:
    assert mark_terms("Sales rose; the <b> fell.", "How did the sale rise?") == (
        "<mark>Sales</mark> rose; the &lt;b&gt; fell."
    )
    assert mark_terms("今年的销售额", "销售额是多少") == "今年的<mark>销售额</mark>"


def test_damaged_or_missing_pages_cost_only_their_picture(tmp_path: Path) -> None:
    name = tmp_path / artifact_name("bad.pdf", ".pages.zip")
    pages = PageSet(doc_id="bad.pdf", sha256="", pages=[Page(page=1, image="1.jpg"), Page(page=2, image="no.jpg")])
    write_archive(name, PAGES_MEMBER, pages, [("1.jpg", b"not a picture")])
    assert list(thumbnails(tmp_path, {"bad.pdf": {1, 2, 3}, "gone.pdf": {1}}, 100)) == []


def test_thumbnails_keep_to_their_width_and_shape(tmp_path: Path) -> None:
    archive(tmp_path, "a.pdf", 1)
    (one,) = thumbnails(tmp_path, {"a.pdf": {1}}, 120)
    assert one.ratio == pytest.approx(800 / 600, rel=0.02)


@pytest.mark.parametrize("evidence_finder", [True, False])
def test_the_headline_fits_80_columns_and_accuracy_stands_with_f1(
    made: tuple[str, dict[str, Any]], evidence_finder: bool
) -> None:
    console = Console(width=200, file=io.StringIO(), record=True, color_system=None)
    console.print(headline(made[1], evidence_finder=evidence_finder), width=80)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join("\n".join(lines).split())
    rows = [line for line in lines if "%" in line and "95% interval" not in line]
    assert any("accuracy (rule)" in line for line in rows)
    assert any("F1 (rule)" in line for line in rows)
    assert ("evidence recall" in rows[0]) is evidence_finder
    assert ("low-confidence extracts, not question answering" in text) is evidence_finder
    assert "1 failed · 0 unscored · 2 documents · 1 document failed" in text
