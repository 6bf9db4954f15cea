"""`docmemo compare` says what changed between two commits, and whether that is noise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from typer.testing import CliRunner

from docmemo.cli import app
from docmemo.evaluation.compare import compare
from docmemo.evaluation.compare_page import write_comparison_page
from docmemo.evaluation.compare_text import markdown, verdict
from docmemo.evaluation.intervals import difference_interval
from docmemo.evaluation.paired import Part, holm, mcnemar, paired_difference
from docmemo.evaluation.revisions import Repository
from docmemo.evaluation.run_metrics import RunMetrics, load_run
from docmemo.types import AnswerRecord, Judgement, Question, Verdict
from tests.evaluation.runs import Runs, all_right, failing_in, make_questions, reply, wrong_in

EVERY_DOCUMENT = [f"d{d}-q{i}" for d in range(12) for i in ((0, 1, 2) if d % 3 else (0, 1))]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """An empty repository, which is the working folder."""
    made = Runs(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


def docmemo(*arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def load(runs: Runs, *names: str | None) -> list[RunMetrics]:
    """Runs of the repository."""
    return [load_run(Repository(runs.folder), name) for name in names]


def test_a_planted_regression_exits_1_and_names_every_flipped_question(runs: Runs) -> None:
    runs.run("before", wrong_in("d11-q5"), params={"answer": {"reader": "test_reader:make", "seed": 1}})
    after = [name for name in EVERY_DOCUMENT if name != "d11-q5"]
    runs.run("after", wrong_in(*after), params={"answer": {"reader": "test_reader:make", "seed": 2}})
    status, out, err = docmemo("compare", "HEAD~1", "HEAD", "--json")
    found = json.loads(out)
    assert (status, err) == (1, "")
    accuracy = next(f for f in found["figures"] if f["name"] == "rule")
    assert (accuracy["decides"], accuracy["verdict"]) == (True, "regression")
    assert accuracy["result"]["difference"] == pytest.approx((1 - len(after)) / 96)
    assert accuracy["result"]["high"] < 0
    (rule, hits) = found["flips"]
    assert {q["question_id"] for q in rule["lost"]} == set(after)
    assert [q["question_id"] for q in rule["gained"]] == ["d11-q5"]
    assert {q["question_id"] for q in hits["lost"]} == set(after)
    assert [(c["what"], c["a"], c["b"]) for c in found["changes"]] == [("params.answer.seed", 1, 2)]
    text = docmemo("compare", "HEAD~1", "--show", "100")[1]
    assert text.startswith("Regression: accuracy (rule) fell by")
    assert all(name in text for name in (*after, "d11-q5")), "the terminal names them too"


def test_noise_exits_0_and_no_change_says_so(runs: Runs) -> None:
    runs.run("before", wrong_in("d0-q0", "d3-q1", "d5-q2", "d7-q0"))
    runs.run("after", wrong_in("d1-q0", "d4-q1", "d5-q2", "d8-q3", "d9-q1"))
    status, out, _ = docmemo("compare", "HEAD~1", "HEAD")
    assert status == 0
    assert out.startswith("No significant difference in accuracy (rule).")
    assert "4 lost, 3 gained" in out
    same = json.loads(docmemo("compare", "HEAD", "HEAD", "--json")[1])
    assert all(f["result"]["difference"] == 0 and f["result"]["note"] == "all equal" for f in same["figures"])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"dataset": {"format": "folder", "digest": "d2", "n_questions": 96}}, "different datasets"),
        ({"judge": {"backend": "rule", "scorer": "mmlongbench/2"}}, "different rules: 'mmlongbench/1' and"),
    ],
)
def test_another_dataset_or_scorer_exits_3_and_says_why(runs: Runs, changed: dict, reason: str) -> None:
    runs.run("before", all_right)
    runs.run("after", all_right, **changed)
    status, out, err = docmemo("compare", "HEAD~1", "HEAD")
    assert (status, out) == (3, "")
    assert reason in err
    if "judge" in changed:
        assert docmemo("compare", "HEAD~1", "HEAD", "--metric", "recall")[0] == 0, "pages need no scorer"


def test_revisions_without_figures_or_that_do_not_exist_exit_3(runs: Runs) -> None:
    (runs.folder / "metrics" / "README").write_text("nothing yet")
    runs.commit("empty")
    runs.run("first", all_right)
    status, _, err = docmemo("compare", "HEAD~1", "HEAD")
    assert (status, "HEAD~1" in err, "has no metrics/scores.json" in err) == (3, True, True)
    status, _, err = docmemo("compare", "no-such-branch")
    assert status == 3
    assert "There is no revision or experiment 'no-such-branch' here." in err
    assert docmemo("compare", "HEAD", "HEAD", "--metric", "acuracy")[0] == 2
    assert docmemo("compare", "HEAD", "HEAD", "--alpha", "5")[0] == 2
    (runs.folder / "metrics" / "questions.csv").write_text("question_id,doc_id\nx,y\n")
    status, _, err = docmemo("compare", "HEAD")
    assert (status, "line 2" in err) == (3, True)


def test_a_drop_within_the_threshold_is_no_regression(runs: Runs) -> None:
    runs.run("before", all_right)
    runs.run("after", wrong_in(*EVERY_DOCUMENT))
    assert docmemo("compare", "HEAD~1", "HEAD")[0] == 1
    status, out, _ = docmemo("compare", "HEAD~1", "HEAD", "--threshold", "0.5")
    assert status == 0
    assert out.startswith("Lower: accuracy (rule) fell by")
    assert docmemo("compare", "HEAD", "HEAD~1")[1].startswith("Better: accuracy (rule) rose by")


def test_the_working_tree_is_compared_by_default_and_experiments_go_by_name(runs: Runs) -> None:
    first = runs.run("before", all_right)
    experiment = runs.run("an experiment", wrong_in(*EVERY_DOCUMENT))
    runs.git("update-ref", f"refs/exps/{first[:2]}/{first[2:]}/brave-otter", experiment)
    runs.git("reset", "-q", "--hard", first)
    assert docmemo("compare", "main")[0] == 0
    assert docmemo("compare", "main", "brave-otter")[0] == 1
    runs.write(wrong_in(*EVERY_DOCUMENT))
    status, out, _ = docmemo("compare", "main", "--json")
    assert (status, json.loads(out)["b"]["name"]) == (1, "working tree")
    runs.git("update-ref", f"refs/exps/{experiment[:2]}/{experiment[2:]}/brave-otter", first)
    status, _, err = docmemo("compare", "main", "brave-otter")
    assert (status, "2 experiments are called 'brave-otter'" in err) == (3, True)


def test_it_works_in_a_fresh_clone_and_in_a_folder_inside_the_repository(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.run("before", all_right)
    runs.run("after", wrong_in(*EVERY_DOCUMENT))
    runs.git("clone", "-q", str(runs.folder), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    assert docmemo("compare", "HEAD~1", "HEAD")[0] == 1
    runs.git("clone", "-q", "--depth", "1", f"file://{runs.folder}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    status, _, err = docmemo("compare", "HEAD~1", "HEAD")
    assert (status, "git fetch --unshallow" in err) == (3, True)
    outer = tmp_path / "outer"
    outer.mkdir()
    inner = Runs(outer / "inner")
    inner.folder.joinpath(".git").rename(outer / ".git")
    inner.run("before", all_right)
    inner.run("after", all_right)
    monkeypatch.chdir(inner.folder)
    assert docmemo("compare", "HEAD~1", "HEAD")[0] == 0


def test_figures_equal_the_scores_of_each_run(runs: Runs) -> None:
    """The same denominators as the run's own scores.json: F1 of two kinds of error included."""
    wrong = [name for i, name in enumerate(EVERY_DOCUMENT) if i % 4 == 0] + ["d3-q7", "d4-q7"]
    scores = [runs.write(failing_in("d1-q3", "d2-q7"))]
    runs.commit("before")
    scores.append(runs.write(wrong_in(*wrong)))
    runs.commit("after")
    found = compare(*load(runs, "HEAD~1", "HEAD"))
    figures = {f.name: f.result for f in found.figures}
    for side, score in zip("ab", scores, strict=True):
        expected = {
            "rule": score["accuracy"]["rule"]["value"],
            "f1": score["f1"]["rule"]["value"],
            "recall": score["evidence"]["recall_at_round"]["1"],
            "all_hit": score["evidence"]["all_hit_at_round"]["1"],
        }
        for name, value in expected.items():
            assert getattr(figures[name], side) == pytest.approx(value, abs=1e-6), (side, name)
    slices = {(s.figure, s.dimension, s.slice): s.result for s in found.slices}
    for dimension, key in (("evidence source", "by_evidence_source"), ("text layer", "by_text_layer")):
        for name, values in scores[1][key].items():
            if values["n"]:
                shown = slices["rule", dimension, name]
                assert (shown.n, shown.b) == (values["n"], pytest.approx(values["accuracy"]["value"], abs=1e-6))
    for name in ("single_page", "multi_page", "unanswerable"):
        shown = slices["rule", "pages", name.replace("_", " ")]
        assert shown.b == pytest.approx(scores[1][name]["accuracy"]["value"], abs=1e-6)
    assert ("n_failed", 2, 0) in found.counts()


def test_costs_are_compared_and_unknown_stays_unknown(runs: Runs) -> None:
    def dearer(asked: Question) -> AnswerRecord:
        record = reply(asked, right=True, found=True)
        usage = record.usage.model_copy(update={"calls": 4, "cost_usd": None})
        return record.model_copy(update={"usage": usage})

    runs.run("before", all_right)
    runs.run("after", dearer)
    found = compare(*load(runs, "HEAD~1", "HEAD"))
    rows = {row.label: row for row in found.costs}
    assert (rows["model calls, online"].a, rows["model calls, online"].b) == (2 * 96, 4 * 96)
    assert rows["US dollars, online"].a == 0.25 * 96
    assert rows["US dollars, online"].difference is None, "unknown is not 0"
    ratios = {r.name: r.value for r in found.efficiency}
    assert ratios == {
        "calls_ratio": 2.0,
        "rounds_ratio": 1.0,
        "1/calls_ratio": 0.5,
        "accuracy_ratio/calls_ratio": 0.5,
    }


def test_below_ten_documents_nothing_is_decided(runs: Runs) -> None:
    questions = make_questions(documents=9)
    runs.run("before", all_right, questions=questions)
    runs.run("after", wrong_in(*(q.question_id for q in questions)), questions=questions)
    status, out, _ = docmemo("compare", "HEAD~1", "HEAD")
    assert status == 0
    assert out.startswith("Undecided: 9 documents are too few")
    assert "too few documents" in out


def with_verdicts(runs: Runs, monkeypatch: pytest.MonkeyPatch, right: Callable[[str], bool], judge: str) -> str:
    """Commit a run whose answers are all right by rule, and judged by a model as `right` says."""
    import tests.evaluation.runs as module

    def judge_too(questions: list[Question], answers: list[AnswerRecord]) -> list[Judgement]:
        return [
            Judgement(
                question_id=a.question_id,
                outcome=a.outcome,
                scorer="mmlongbench/1",
                rule_score=1.0,
                verdict=Verdict(correct=right(a.question_id), judge=judge, prompt="p"),
            )
            for a in answers
        ]

    with monkeypatch.context() as patch:
        patch.setattr(module, "judged", judge_too)
        return runs.run(judge, all_right, models={"judge": {"provider": "openai_compatible", "id": judge}})


def test_the_judge_decides_where_both_have_the_same_and_another_judge_exits_3(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_verdicts(runs, monkeypatch, lambda name: True, "judge-1")
    with_verdicts(runs, monkeypatch, lambda name: name not in EVERY_DOCUMENT, "judge-1")
    with_verdicts(runs, monkeypatch, lambda name: True, "judge-2")
    runs.run("by rule alone", all_right)
    status, out, _ = docmemo("compare", "HEAD~3", "HEAD~2")
    assert (status, out.startswith("Regression: accuracy (LLM judge)")) == (1, True)
    assert docmemo("compare", "HEAD~3", "HEAD~2", "--metric", "rule")[0] == 0
    status, _, err = docmemo("compare", "HEAD~3", "HEAD~1")
    assert (status, "different judges: models.judge.id differ" in err) == (3, True)
    assert docmemo("compare", "HEAD~3", "HEAD~1", "--metric", "rule")[0] == 0
    assert docmemo("compare", "HEAD~3", "HEAD")[0] == 0, "only one has a judge: the rule decides"
    assert docmemo("compare", "HEAD~3", "HEAD", "--metric", "judge")[0] == 3


def test_a_run_of_before_the_slice_columns_is_compared_with_the_columns_of_the_other(runs: Runs) -> None:
    runs.write(all_right)
    path = runs.folder / "metrics" / "questions.csv"
    header, *rows = [line.split(",") for line in path.read_text().splitlines()]
    new = {"doc_type", "text_layer", "evidence_sources", "answerable", "answered", "page_reads", "cost_usd"}
    kept = [i for i, name in enumerate(header) if name not in new]
    path.write_text("".join(",".join(row[i] for i in kept) + "\n" for row in (header, *rows)))
    runs.commit("old columns")
    runs.run("new columns", wrong_in(*EVERY_DOCUMENT))
    found = compare(*load(runs, "HEAD~1", "HEAD"))
    assert {s.dimension for s in found.slices} >= {"evidence source", "text layer", "pages", "document type"}
    old = compare(*load(runs, "HEAD~1", "HEAD~1"))
    assert {s.dimension for s in old.slices} == {"answer format"}
    assert any("older than the columns" in note for note in old.notes)


class Outline(HTMLParser):
    """Tags in order, and whether they close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_offline_and_escapes_what_it_shows(runs: Runs, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> | *x*\x1b[31m"
    questions = make_questions()
    questions[0] = questions[0].model_copy(update={"question_id": hostile, "doc_type": hostile})
    runs.run("before", all_right, questions=questions)
    runs.run(hostile, wrong_in(hostile, *EVERY_DOCUMENT), questions=questions)
    found = compare(*load(runs, "HEAD~1", "HEAD"))
    write_comparison_page(tmp_path / "out" / "page.html", found)
    text = (tmp_path / "out" / "page.html").read_text()
    outline = Outline()
    outline.feed(text)
    assert (outline.open, outline.links) == ([], [])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert str(escape(verdict(found))) in text
    assert "d4-q2" in text
    assert "\x1b" not in docmemo("compare", "HEAD~1", "HEAD")[1], "nor does a name steer the terminal"
    written = markdown(found)
    assert "<script>" not in written
    assert "d4-q2" in written


def test_answers_of_flipped_questions_are_shown_only_when_asked_for(runs: Runs) -> None:
    runs.run("before", all_right)
    runs.write(wrong_in("d0-q0"))
    record = reply(make_questions()[0], right=False, found=False).model_copy(update={"answer": "a wrong word"})
    folder = runs.folder / "data" / "answers"
    folder.mkdir(parents=True)
    (folder / "answers.jsonl").write_text(record.model_dump_json() + "\n")
    assert "a wrong word" not in docmemo("compare", "HEAD")[1]
    shown = docmemo("compare", "HEAD", "--answers", "--json")[1]
    assert json.loads(shown)["answers"]["d0-q0"] == {"a": None, "b": {"answer": "a wrong word", "pages": [[40]]}}


def test_the_paired_interval_is_the_one_of_intervals_and_its_p_agrees_with_it() -> None:
    rng = random.Random(3)
    documents = [f"d{rng.randrange(14)}" for _ in range(120)]
    for _ in range(40):
        a = [Part(float(rng.random() < 0.6)) for _ in documents]
        b = [Part(x.y if rng.random() < 0.8 else 1 - x.y) for x in a]
        found = paired_difference(a, b, documents)
        other = difference_interval([y.y - x.y for x, y in zip(a, b, strict=True)], documents)
        assert (found.difference, found.low, found.high) == pytest.approx((other.value, other.low, other.high))
        assert found.p is not None and found.low is not None and found.high is not None
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_under_noise_a_difference_is_called_significant_about_as_often_as_alpha_says() -> None:
    """Two runs that are right equally often, on questions that share their document's difficulty."""
    rng = np.random.default_rng(7)
    significant = regressions = 0
    repeats = 600
    for _ in range(repeats):
        documents = np.repeat(np.arange(20), 8)
        ability = rng.beta(3, 2, 20)[documents]
        shift = rng.normal(0, 0.15, 20)[documents]
        a = rng.random(160) < ability
        b = rng.random(160) < np.clip(ability + shift, 0, 1)
        found = paired_difference(
            [Part(float(x)) for x in a], [Part(float(x)) for x in b], [str(d) for d in documents]
        )
        assert found.p is not None and found.difference is not None
        significant += found.p < 0.05
        regressions += found.p < 0.05 and found.difference < 0
    assert 0.025 < significant / repeats < 0.08
    assert 0.008 < regressions / repeats < 0.045


def test_mcnemar_and_holm_by_hand() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(8, 1) == pytest.approx(2 * (1 + 9) / 512)
    corrected = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.9})
    assert corrected == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.9})
