"""The human check: sample, marks that last, and what they say about rule and judge."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from docmemo.errors import ArtifactError, BusyError, ConfigError
from docmemo.evaluation.cases import Case, build_cases
from docmemo.evaluation.review import (
    Marks,
    Session,
    answer_digest,
    counted,
    draw,
    judged,
    outdated,
    reviewers,
    stratum,
)
from docmemo.evaluation.review_result import results
from tests.evaluation.review_cases import cases, records


def ids(drawn: list[Case]) -> list[str]:
    return [case.question.question_id for case in drawn]


def marked(folder: Path, sample: list[Case], right: set[str], name: str = "ann") -> Marks:
    marks = Marks(folder, name)
    for case in sample:
        marks.add(case, "right" if case.question.question_id in right else "wrong")
    return marks


def test_a_sample_has_each_stratum_in_proportion_and_the_seed_decides_it() -> None:
    everything = cases(200)
    drawn = draw(everything, 60, seed=0)
    assert len(set(ids(drawn))) == 60
    whole, part = Counter(map(stratum, judged(everything))), Counter(map(stratum, drawn))
    for name, n in whole.items():
        assert abs(part[name] - n * 60 / 200) <= 1, name
    assert ids(draw(everything, 60, seed=0)) == ids(drawn)
    assert ids(draw(everything[::-1], 60, seed=0)) == ids(drawn), "whatever the order of the questions"
    assert set(ids(draw(everything, 60, seed=1))) != set(ids(drawn))


def test_every_case_has_about_the_same_chance_to_be_drawn() -> None:
    everything = cases(40)
    seen = Counter(name for seed in range(400) for name in ids(draw(everything, 10, seed)))
    # 400 draws of a quarter: 100 each, standard deviation 8.7.
    assert len(seen) == 40
    assert min(seen.values()) > 60 and max(seen.values()) < 140


def test_fewer_answers_than_asked_for_are_all_shown_and_failed_ones_never() -> None:
    everything = cases(20)
    assert set(ids(draw(everything, 300, 0))) == {f"q{i}" for i in range(20)}
    with pytest.raises(ConfigError, match="at least one"):
        draw(everything, 0, 0)


def test_a_mark_is_on_the_disk_at_once_and_holds_no_text(tmp_path: Path) -> None:
    sample = draw(cases(20), 20, 0)
    session = Session(sample, Marks(tmp_path, "ann"))
    first = session.current
    assert first is not None
    session.mark("right")
    (line,) = (tmp_path / "ann.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "question_id": first.question.question_id,
        "answer": answer_digest(first),
        "mark": "right",
        "at": json.loads(line)["at"],
    }
    for text in ("gold", "other", "Question number", "It says"):
        assert text not in line


def test_a_new_sitting_goes_on_where_the_last_one_stopped_and_skipped_ones_come_last(tmp_path: Path) -> None:
    sample = draw(cases(20), 20, 0)
    session = Session(sample, Marks(tmp_path, "ann"))
    for mark in ("right", "skip", "wrong"):
        session.mark(mark)  # type: ignore[arg-type]
    again = Session(sample, Marks(tmp_path, "ann"))
    assert again.current is sample[3]
    assert (again.done, again.left) == (2, 18)
    for _ in range(17):
        again.mark("right")
    assert again.current is sample[1], "the skipped one"
    other = Session(sample, Marks(tmp_path, "bob"))
    assert other.current is sample[0], "another reviewer starts at the beginning"


def test_undo_takes_back_the_last_mark_of_the_sitting_only(tmp_path: Path) -> None:
    sample = draw(cases(5), 5, 0)
    session = Session(sample, Marks(tmp_path, "ann"))
    assert not session.undo()
    session.mark("right")
    session.mark("wrong")
    assert session.undo()
    assert session.current is sample[1]
    session.mark("right")
    standing = Marks(tmp_path, "ann").standing()
    assert [standing[case.question.question_id].mark for case in sample[:2]] == ["right", "right"]
    assert not Session(sample, Marks(tmp_path, "ann")).undo()


def test_a_mark_of_an_answer_that_has_changed_since_does_not_count(tmp_path: Path) -> None:
    questions, answers, judgements, documents = records(4)
    before = build_cases(questions, answers, judgements, documents)
    standing = marked(tmp_path, judged(before), {"q1"}).standing()
    assert (len(counted(before, standing)), outdated(before, standing)) == (4, 0)
    answers[1] = answers[1].model_copy(update={"answer": "changed"})
    questions[2] = questions[2].model_copy(update={"answer": "other gold"})
    answers[3] = answers[3].model_copy(update={"citations": []})
    after = build_cases(questions, answers, judgements, documents)
    assert [c.question.question_id for c, _ in counted(after, standing)] == ["q0", "q3"]
    assert outdated(after, standing) == 2
    session = Session(judged(after), Marks(tmp_path, "ann"))
    assert session.left == 2, "the two that changed are asked again"


def test_the_kappas_are_those_of_scikit_learn_overall_and_by_slice(tmp_path: Path) -> None:
    everything = cases(60)
    right = {c.question.question_id for i, c in enumerate(judged(everything)) if (c.score == 1) != (i % 11 == 0)}
    found = results(everything, {"ann": marked(tmp_path, judged(everything), right).standing()})["reviewers"]["ann"]
    assert (found["n"], found["right"], found["outdated"]) == (60, len(right), 0)
    person = {c.question.question_id: c.question.question_id in right for c in judged(everything)}
    for rater, value in (("rule", lambda c: c.score), ("judge", lambda c: c.verdict)):
        theirs = cohen_kappa_score([bool(value(c)) for c in judged(everything)], list(person.values()))
        assert found[rater]["overall"]["kappa"]["value"] == pytest.approx(theirs, abs=1e-6)
        assert found[rater]["overall"]["kappa"]["low"] < theirs < found[rater]["overall"]["kappa"]["high"]
        for piece in found[rater]["slices"]:
            if piece["dimension"] != "evidence_source":
                continue
            own = [c for c in judged(everything) if piece["slice"] in c.question.evidence_sources]
            assert piece["n"] == len(own)
            if piece["kappa"]["value"] is not None:
                wanted = cohen_kappa_score(
                    [bool(value(c)) for c in own], [person[c.question.question_id] for c in own]
                )
                assert piece["kappa"]["value"] == pytest.approx(wanted, abs=1e-6)


def test_two_reviewers_are_held_against_each_other(tmp_path: Path) -> None:
    everything = cases(30)
    own = judged(everything)
    ann = marked(tmp_path, own, {f"q{i}" for i in range(15)}, "ann").standing()
    bob = marked(tmp_path, own[:20], {f"q{i}" for i in range(12)}, "bob").standing()
    (pair,) = results(everything, {"ann": ann, "bob": bob})["between"]
    assert (pair["first"], pair["second"], pair["n"], pair["only_first"]) == ("ann", "bob", 20, 3)
    assert reviewers(tmp_path) == ["ann", "bob"]


def test_a_line_cut_off_by_a_kill_costs_that_mark_alone(tmp_path: Path) -> None:
    sample = draw(cases(5), 5, 0)
    session = Session(sample, Marks(tmp_path, "ann"))
    session.mark("right")
    path = tmp_path / "ann.jsonl"
    path.write_bytes(path.read_bytes() + b'{"question_id": "q4", "ans')
    again = Session(sample, Marks(tmp_path, "ann"))
    assert again.done == 1
    again.mark("wrong")
    assert Session(sample, Marks(tmp_path, "ann")).done == 2
    path.write_text('{"question_id": "q1", "mark": "perhaps"}\n{}\n')
    with pytest.raises(ArtifactError, match="line 1 is no mark"):
        Marks(tmp_path, "ann")


def test_two_processes_cannot_write_one_reviewers_marks(tmp_path: Path) -> None:
    first, second = Marks(tmp_path, "ann"), Marks(tmp_path, "ann")
    first.hold()
    with pytest.raises(BusyError, match="'ann'"):
        second.hold()
    Marks(tmp_path, "bob").hold()
    first.release()
    second.hold()
    second.release()


@pytest.mark.parametrize("name", ["", "../ann", "a/b", ".hidden", "x" * 41])
def test_a_reviewers_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="reviewer's name"):
        Marks(tmp_path, name)
