from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from docmemo.artifacts import LAYOUT_MEMBER, PAGES_MEMBER, artifact_name, write_archive
from docmemo.config import ReportParams
from docmemo.evaluation import report_views as views
from docmemo.evaluation.ablation_record import AblationRecord, AblationTable, Curves
from docmemo.evaluation.ablations import CSV_COLUMNS, METRICS, SLICES
from docmemo.evaluation.aggregate import aggregate
from docmemo.evaluation.efficiency import RATIOS
from docmemo.evaluation.history import HistoryRow
from docmemo.evaluation.report import Beside, mark_terms, write_report
from docmemo.evaluation.terminal import headline
from docmemo.evaluation.thumbnails import thumbnails
from docmemo.types import Citation, Document, LayoutSet, Page, PageSet, Region, Verdict
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


def crops(folder: Path, doc_id: str, page: int) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (900, 500), (200, 220, 210)).save(buffer, "JPEG")
    region = Region(page=page, kind="table", bbox=(0.1, 0.1, 0.9, 0.5), text=f"Table 1: {HOSTILE}", crop="c1.jpg")
    layout = LayoutSet(doc_id=doc_id, regions=[region])
    write_archive(
        folder / artifact_name(doc_id, ".layout.zip"), LAYOUT_MEMBER, layout, [("c1.jpg", buffer.getvalue())]
    )


def ablation_table(dataset: str = "da7a") -> AblationTable:
    """A table of three configurations, as `read_ablations` gives it."""
    full: dict[str, Any] = dict.fromkeys(CSV_COLUMNS)
    rows = [{**full, "configuration": "questions", "metric": m, "overall": 3.0} for m in METRICS]
    for name, calls, value in (("full", 6.0, 0.8), ("static", 3.0, 0.55), ("fixed_rounds", 9.0, 0.9)):
        for metric in METRICS:
            row = {**full, "configuration": name, "metric": metric, "overall": value, "TAB": value / 2, "rounds": 1.5}
            row |= {"calls": calls, "page_reads": calls, "n_failed": 0.0, "n_unscored": 0.0, "changed": 1.0}
            if name != "full":
                row |= {"difference": value - 0.8, "low": value - 0.9, "high": value - 0.7}
            if name != "static":
                row |= {f"{ratio}_to_static": calls / 3 for ratio in RATIOS}
            rows.append(row)
    curve = {"1": 0.5, "2": 0.75}
    record = AblationRecord(
        dataset=dataset,
        parameters="p",
        models="m",
        code="c",
        evidence_finder=True,
        n_questions=3,
        n_documents=2,
        curves={"fixed_rounds": Curves(recall_at_round=curve, all_hit_at_round=curve)},
    )
    return AblationTable(record, rows)


HISTORY = [
    HistoryRow(f"2026-0{i + 1}-01T00:00:00+00:00", f"{i}{'abc' * 13}", 0.5 + i / 10, recall=0.9, n=3, dataset="da7a")
    for i in range(3)
]


def report(folder: Path, name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """The report of four questions with answers of every kind, and its scores."""
    questions = [
        question(1, HOSTILE, [2, 4], question=f"What is alert? {HOSTILE}", evidence_sources=["table"]),
        question(2, "no", [1], "gone.pdf"),
        question(3, "Not answerable", [], answer_format="None"),
        question(4, "cat", [1], doc_type="Report / Introduction"),
    ]
    quote = Citation(page=2, bbox=(0.1, 0.25, 0.6, 0.5), quote=HOSTILE, label="ii")
    rounds = [one_round(1, [2, 1], [2, 1], useful=[2], irrelevant=[1])]
    answers = [
        answered(questions[0], HOSTILE, rounds, citations=[quote], **more),
        failed(questions[1]),
        answered(questions[2], None, [one_round(1, [2], [2])], reason="Read 1 of 4 pages.", **more),
        answered(questions[3], "dog", [one_round(1, [1, 2], [1])], **{**more, "confidence_score": 0.93}),
    ]
    documents = [
        Document(doc_id="a.pdf", path="a.pdf"),
        Document(doc_id="gone.pdf", path="gone.pdf", status="failed", reason="It is empty. Replace the file."),
    ]
    archive(folder, "a.pdf", 4)
    crops(folder, "a.pdf", 4)
    judgements = judged(questions, answers)
    if more.get("confidence", "low") is None:
        verdicts = {"q1": True, "q3": True, "q4": False}
        judgements = [
            j.model_copy(update={"verdict": Verdict(judge="m", prompt="p", correct=verdicts[j.question_id])})
            if j.question_id in verdicts
            else j
            for j in judgements
        ]
    scores = aggregate(questions, answers, judgements, documents, rounds=2)
    write_report(
        folder / name,
        scores=scores,
        questions=questions,
        answers=answers,
        judgements=judgements,
        documents=documents,
        pages_dir=folder,
        layout_dir=folder,
        params=ReportParams(),
        provenance={"code": "ab12", "params": {"x": 1}, "dataset": {"format": "folder", "digest": "da7a"}},
        beside=Beside(ablation_table(), parameters="p", models="m", history=HISTORY),
    )
    return (folder / name).read_text(encoding="utf-8"), scores


@pytest.fixture
def made(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The report of a run of the evidence finder, and its scores."""
    return report(tmp_path, "report.html")


@pytest.fixture
def with_judge(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """The report of a run with a reader that answers and a judge."""
    return report(tmp_path, "judged.html", confidence=None)


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


class Printed(HTMLParser):
    """Collects the text of every element that says which figure it is."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self._now: tuple[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "data-path" in given:
            self._now = (str(given["data-figure"]), str(given["data-path"]))
        elif "data-ablation" in given:
            self._now = ("ablation", str(given["data-ablation"]))

    def handle_data(self, data: str) -> None:
        if self._now:
            self.found.append((*self._now, data))
            self._now = None

    def handle_endtag(self, tag: str) -> None:
        self._now = None


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").rstrip("%"))


def at(scores: Any, path: str) -> Any:
    for key in json.loads(path):
        scores = scores[key]
    return scores


@pytest.mark.parametrize("run", ["made", "with_judge"])
def test_every_printed_figure_is_the_one_of_scores_json(run: str, request: pytest.FixtureRequest) -> None:
    html, scores = request.getfixturevalue(run)
    printed = Printed()
    printed.feed(html)
    kinds = {"percent": (100, 0.05), "decimal": (1, 0.005), "count": (1, 0), "spend": (1, 0.005)}
    for kind, path, text in printed.found:
        if kind == "ablation":
            continue
        value = at(scores, path)
        if kind == "interval":
            if value["low"] is None:
                assert text == "too few documents", path
            else:
                assert [number(end) for end in text.split("–")] == pytest.approx(
                    [100 * value["low"], 100 * value["high"]], abs=0.05
                )
        elif kind == "kappa":
            assert (
                text == "–"
                if value["value"] is None
                else number(text.split()[0]) == pytest.approx(value["value"], abs=0.005)
            ), path
        elif value is None:
            assert text in ("–", "unknown"), path
        else:
            scale, tolerance = kinds[kind]
            assert number(text) == pytest.approx(scale * value, abs=tolerance + 1e-9), path
    shown = {tuple(json.loads(path)) for kind, path, _ in printed.found if kind != "ablation"}
    wanted = {
        *(("evidence", name, t) for name in ("recall_at_round", "all_hit_at_round") for t in "12"),
        ("accuracy", "rule", "value"),
        ("f1", "rule", "value"),
        ("n_failed",),
        ("n_unscored",),
        ("confusion", "unanswerable", "not_answerable"),
        *(
            (name, side)
            for name in ("calls", "tokens", "cost_usd", "seconds")
            for side in ("offline", "online", "judge")
        ),
        ("by_doc_type", "Report / Introduction", "accuracy", "value"),
        ("by_evidence_source", "table", "evidence", "recall", "value"),
        ("multi_page", "n"),
    }
    if run == "with_judge":
        wanted |= {
            ("accuracy", "judge", "value"),
            ("agreement", "kappa"),
            ("calibration", "rule", "ece"),
            ("n_unjudged",),
        }
        wanted |= {("by_evidence_source", "table", "accuracy_judge", "value")}
    assert wanted <= shown


def test_the_ablation_tables_figures_are_those_of_the_csv(made: tuple[str, dict[str, Any]]) -> None:
    printed, table = Printed(), ablation_table()
    printed.feed(made[0])
    found = [(key.split("/"), text) for kind, key, text in printed.found if kind == "ablation"]
    assert len(found) > 60
    for (name, metric, column), text in found:
        row = table.row(name, metric)
        assert row is not None
        value = row[column]
        if value is None:
            assert text == "–"
        elif column in (*SLICES, "overall", "difference") and name != "questions":
            assert number(text.split(" ")[0]) == pytest.approx(100 * value, abs=0.051)
        else:
            assert number(text) == pytest.approx(value, abs=0.005)
    assert "−25.0 (−35.0 to −15.0)" in made[0]


def test_an_ablation_table_of_another_dataset_or_of_none_is_left_out() -> None:
    mine = {"dataset": {"digest": "da7a"}}
    assert views.ablations(ablation_table(), mine, "p", "m") is not None
    assert views.ablations(ablation_table("other"), mine, "p", "m") is None
    assert views.ablations(ablation_table(), {}, "p", "m") is None
    assert views.ablations(None, mine, "p", "m") is None
    other = views.ablations(ablation_table(), mine, "q", "m")
    assert other is not None and not other.same, "the report says that its parameters differ"


def test_curves_are_named_natural_stop_forced_and_reached(made: tuple[str, dict[str, Any]]) -> None:
    chart = made[0][made[0].index("Evidence recall. natural stop:") :]
    assert re.match(
        r"Evidence recall. natural stop: round 1 \S+, round 2 \S+; forced: round 1 50.0%, round 2 75.0%; reached:",
        chart,
    )


def test_the_worst_questions_come_with_their_pages_and_crops(with_judge: tuple[str, dict[str, Any]]) -> None:
    html = with_judge[0]
    section = html[html.index("Look at these first") : html.index("What went wrong")]
    kinds = re.findall(r'badge (?:bad|some)">(failed|confidently wrong|evidence missed)', section)
    assert kinds == ["failed", "confidently wrong", "evidence missed"]
    assert "confidence 93.0%" in section
    assert section.count("background-image:url(data:image/jpeg;base64,") == 4  # page 1; pages 2 and 4; the table on 4
    assert "gold, missed" in section
    assert "A table or figure on page 4 of a.pdf" in section
    assert "<script" not in section


def test_accepted_runs_are_shown_with_a_chart_and_without_a_file_the_section_is_left_out(
    made: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert "Accepted runs" in made[0]
    assert "2abcabc" in made[0]
    assert views.history([]) is None


def test_the_headline_of_a_reader_that_answers_is_its_accuracy(
    made: tuple[str, dict[str, Any]], with_judge: tuple[str, dict[str, Any]]
) -> None:
    def first(html: str) -> str:
        return html[html.index('class="cards"') :].split("<h3>", 2)[1][:30]

    assert first(made[0]).startswith("Evidence recall")
    assert first(with_judge[0]).startswith("Accuracy and F1")


def test_a_thumbnail_is_embedded_once_and_boxes_lie_where_the_citation_says(made: tuple[str, dict[str, Any]]) -> None:
    html = made[0]
    style = html[: html.index("</style>")]
    assert style.count("data:image/jpeg;base64,") == 3  # pages 1, 2 and the missed 4; page 2 is shown twice
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
        layout_dir=tmp_path,
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
