"""Killing anything loses only what was in flight, and no two runs work at once."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter

import psutil
import pytest

from tests.stages.project import Project, wait_until

TOPICS = ["heron", "turbine", "orchard", "lantern", "glacier", "harbour"]
SLOW = {"pages": 2, "scanned": True}


def kill(victim: str, dvc: subprocess.Popen[str], project: Project) -> None:
    """kill -9 of dvc or of the stage it runs."""
    if victim == "dvc":
        dvc.kill()
    else:
        stages = [p for p in psutil.Process(dvc.pid).children(recursive=True) if "stages." in " ".join(p.cmdline())]
        for stage in stages:
            stage.kill()
    dvc.wait(timeout=60)
    wait_until(lambda: not project.processes(), 20)


@pytest.mark.parametrize("victim", ["dvc", "stage"])
@pytest.mark.parametrize("step", ["render", "layout"])
def test_a_killed_offline_stage_keeps_every_finished_document(checkout, step: str, victim: str) -> None:
    project = checkout(TOPICS, **SLOW)
    run = project.start("dvc", "repro", "layout", DOCMEMO_WORKERS="1")
    wait_until(lambda: project.stored(step) >= 2, 120)
    kill(victim, run, project)
    finished = project.stored(step)
    assert 2 <= finished < len(TOPICS), "killed in the middle"
    again = project.repro("layout")
    assert again.counts(step) == (len(TOPICS) - finished, finished)
    assert project.stored(step) == len(TOPICS)


@pytest.mark.parametrize("victim", ["dvc", "stage"])
def test_a_killed_answer_stage_asks_again_only_what_was_in_flight(checkout, victim: str) -> None:
    project = checkout(TOPICS)
    project.use_test_reader()
    concurrency = 2
    slow = {"TEST_READER_SECONDS": "1.5", "DOCMEMO_CONCURRENCY": str(concurrency)}
    run = project.start("dvc", "repro", **slow)
    wait_until(lambda: len(project.reads()) >= 4, 180)
    kill(victim, run, project)
    before = Counter(project.reads())
    assert max(before.values()) == 1
    project.repro(**slow)
    reads = Counter(project.reads())
    assert set(reads) == {f"q-{topic}" for topic in TOPICS}
    assert sum(reads.values()) - len(TOPICS) <= concurrency, "only what was in flight is asked again"
    answers = project.lines("data/answers/answers.jsonl")
    assert [a["outcome"] for a in answers] == ["answer"] * len(TOPICS)


def test_a_transient_failure_stops_the_run_and_the_next_asks_only_that_question(checkout) -> None:
    project = checkout(TOPICS)
    project.use_test_reader()
    (project.folder / "failing").write_text("q-orchard")
    output = project.run("dvc", "repro", expect=-1)
    assert "1 questions failed in a way that may pass (q-orchard: the server refused q-orchard)" in output
    assert Counter(project.reads())["q-orchard"] == 2, "retried once, as DOCMEMO_ATTEMPTS says"
    asked = len(project.reads())
    (project.folder / "failing").unlink()
    project.repro()
    assert project.reads()[asked:] == ["q-orchard"]
    assert all(a["outcome"] == "answer" for a in project.lines("data/answers/answers.jsonl"))


def test_accepted_failures_are_counted_as_failed(checkout) -> None:
    project = checkout(["heron", "turbine"])
    project.use_test_reader()
    (project.folder / "failing").write_text("q-heron")
    project.repro(DOCMEMO_ACCEPT_FAILURES="1")
    answers = {a["question_id"]: a for a in project.lines("data/answers/answers.jsonl")}
    assert answers["q-heron"]["outcome"] == "failed"
    assert answers["q-heron"]["error"]["retryable"] is True


def test_ctrl_c_ends_within_five_seconds_and_keeps_what_is_finished(checkout) -> None:
    project = checkout(TOPICS)
    project.use_test_reader()
    run = project.start("dvc", "repro", TEST_READER_SECONDS="1.5", DOCMEMO_CONCURRENCY="2")
    wait_until(lambda: len(project.reads()) >= 4, 180)
    os.killpg(run.pid, signal.SIGINT)
    wait_until(lambda: not project.processes(), 5)
    assert run.wait(timeout=30) != 0
    assert "finished work is kept" in project.output
    project.repro()
    assert len(project.reads()) - len(TOPICS) <= 2


def test_two_runs_of_one_stage_never_work_at_once(checkout) -> None:
    project = checkout(TOPICS, **SLOW)
    project.repro("ingest")
    first = project.start("python", "-m", "stages.render", DOCMEMO_WORKERS="1")
    wait_until(lambda: project.stored("render") >= 1, 120)
    second = subprocess.run(
        ["python", "-c", "import stages.common as c, stages.render as r\n"
         "hold = c.hold\nc.hold = lambda out, settings: hold(out, settings, patience=0.2)\n"
         "c.stage_main('render', [c.FOLDERS['render']], r.run)"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert second.returncode == 75
    assert "Another process is writing data/pages." in second.stderr
    assert first.wait(timeout=120) == 0


def test_without_a_server_of_the_users_the_flow_starts_its_own_and_leaves_none(tmp_path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, ["heron"])
    project.repro("answer")
    assert project.lines("data/answers/answers.jsonl")[0]["outcome"] == "answer"
    left = [p for p in psutil.process_iter(["cmdline", "cwd"]) if p.info["cwd"] == str(folder)]
    assert not left
    assert not (folder / ".docmemo" / "prefect-servers.json").exists()
