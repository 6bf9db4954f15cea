"""The runner takes finished artifacts, computes the rest, and leaves nothing else behind."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from docmemo.errors import ArtifactError, UnreadableDocumentError
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.runner import jobs_for, read_index, run_step, seed
from docmemo.pipeline.step import WHOLE, Job, StepResult
from docmemo.store import Store
from docmemo.types import Document
from docmemo.usage import Usage


@dataclass
class Upper:
    """Writes the document in capitals; can fail, or leave a hole."""

    setting: str = "a"
    failing: tuple[str, ...] = ()
    holes: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    usage: Usage | None = None
    seen: list = field(default_factory=list)
    name: str = "render"
    suffix: str = ".txt"
    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ("docmemo.usage",)

    def key(self, job):
        return {"document": job.document.sha256, "setting": self.setting}

    def compute(self, job, target, pool):
        self.seen.append(job.document.doc_id)
        if job.document.doc_id in self.failing:
            raise UnreadableDocumentError("It is damaged.", remedy="Get another copy.")
        target.write_text(f"{self.setting}{job.document.doc_id.upper()}")
        hole = job.document.doc_id in self.holes
        if job.document.doc_id in self.waiting:
            return StepResult(failures={WHOLE: "made by hand"}, storable=False, waiting="the model was away")
        return StepResult(failures={2: "it hung"} if hole else {}, storable=not hole, usage=self.usage)


def documents(*names):
    return [Document(doc_id=name, path=f"{name}.pdf", sha256=f"sha of {name}", n_pages=1) for name in names]


def run(step, names, tmp_path, store=None):
    jobs = [Job(d, tmp_path / d.path, {}) for d in documents(*names)]
    with WorkPool(0, 10.0) as pool:
        return run_step(step, jobs, tmp_path / "out", store=store or Store(tmp_path / "store"), pool=pool, parallel=2)


def test_the_second_run_takes_everything_from_the_store(tmp_path):
    assert run(Upper(), ["one", "two"], tmp_path).computed
    shutil.rmtree(tmp_path / "out")
    step = Upper()
    summary = run(step, ["one", "two"], tmp_path)
    assert (sorted(summary.reused), step.seen) == (["one", "two"], [])
    assert (tmp_path / "out" / "two.txt").read_text() == "aTWO"


def test_going_back_to_an_earlier_setting_computes_nothing(tmp_path):
    for setting in ("a", "b"):
        run(Upper(setting), ["one"], tmp_path)
    step = Upper("a")
    assert run(step, ["one"], tmp_path).line("render") == "render: 0 computed, 1 reused"


def test_artifacts_of_documents_that_left_are_removed(tmp_path):
    run(Upper(), ["one", "two"], tmp_path)
    summary = run(Upper(), ["two"], tmp_path)
    assert summary.removed == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.json", "two.txt"]


def test_a_failing_document_is_recorded_and_the_others_are_made(tmp_path):
    summary = run(Upper(failing=("two",)), ["one", "two", "three"], tmp_path)
    index = read_index(tmp_path / "out")
    assert summary.failed == {"two": "It is damaged. Get another copy."} == index.failed
    assert sorted(index.documents) == ["one", "three"]
    jobs, failed = jobs_for(documents("one", "two", "three"), tmp_path, {"render": tmp_path / "out"})
    assert [job.document.doc_id for job in jobs] == ["one", "three"]
    assert list(failed) == ["two"], "later stages know why"


def test_an_artifact_with_a_hole_is_delivered_but_never_reused(tmp_path):
    run(Upper(holes=("one",)), ["one"], tmp_path)
    entry = read_index(tmp_path / "out").documents["one"]
    assert (entry.failures, entry.complete) == ({"2": "it hung"}, False)
    assert seed(Store(tmp_path / "other"), [tmp_path / "out"]) == 0
    assert run(Upper(), ["one"], tmp_path).computed == ["one"]


def test_a_document_that_waits_for_its_model_is_delivered_named_and_made_again(tmp_path):
    summary = run(Upper(waiting=("one",)), ["one", "two"], tmp_path)
    assert (summary.waiting, summary.incomplete) == ({"one": "the model was away"}, [])
    entry = read_index(tmp_path / "out").documents["one"]
    assert (entry.failures, entry.complete) == ({"0": "made by hand"}, False)
    again = run(Upper(), ["one", "two"], tmp_path)
    assert (again.computed, again.reused, again.waiting) == (["one"], ["two"], {})


def test_what_an_artifact_cost_stays_with_it(tmp_path):
    spent = Usage(calls=3, input_tokens=40, cost_usd=0.5)
    run(Upper(usage=spent), ["one", "two"], tmp_path)
    fresh = Store(tmp_path / "fresh")
    seed(fresh, [tmp_path / "out"])
    step = Upper()
    run(step, ["one", "two"], tmp_path, fresh)
    index = read_index(tmp_path / "out")
    assert (step.seen, index.documents["one"].usage) == ([], spent)
    assert index.usage == spent + spent
    run(Upper("b"), ["one"], tmp_path)
    assert read_index(tmp_path / "out").usage == Usage(), "nothing was asked"


def test_an_out_folder_seeds_an_empty_store_and_a_changed_file_does_not(tmp_path):
    run(Upper(), ["one", "two"], tmp_path)
    (tmp_path / "out" / "two.txt").write_text("edited by hand")
    fresh = Store(tmp_path / "fresh")
    assert seed(fresh, [tmp_path / "out", tmp_path / "absent"]) == 1
    step = Upper()
    run(step, ["one", "two"], tmp_path, fresh)
    assert step.seen == ["two"]


def test_an_unfinished_folder_is_one_clear_error(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match=r"index\.json cannot be read"):
        read_index(tmp_path / "out")


def test_an_interruption_keeps_what_was_finished(tmp_path):
    class Interrupting(Upper):
        def compute(self, job, target, pool):
            if job.document.doc_id == "three":
                raise KeyboardInterrupt
            return super().compute(job, target, pool)

    with pytest.raises(KeyboardInterrupt):
        run(Interrupting(), ["one", "two", "three"], tmp_path)
    step = Upper()
    run(step, ["one", "two", "three"], tmp_path)
    assert "three" in step.seen
    assert len(step.seen) <= 2


def test_file_names_are_safe_and_one_to_one(tmp_path):
    names = ["a/b.pdf", "a%2f%b.pdf", "报告.pdf", "..", "a b (1).pdf"]
    run(Upper(), names, tmp_path)
    files = [entry.file for entry in read_index(tmp_path / "out").documents.values()]
    assert len(set(files)) == len(names)
    assert all(Path(file).name == file for file in files)
