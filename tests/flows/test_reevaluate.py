"""Scheduled re-evaluation notices a changed model, runs what depends on it, and fails visibly on a regression."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_socket

from docmemo.evaluation.revisions import Repository
from flows.reproduce import stale_stages
from flows.worktree import Workshop, commit_results
from tests.flows.toy import GOOD, WORSE, Toy, api, artifacts, flow_runs
from tests.servers import ScriptedServer
from tests.stages.project import Project, wait_until

TOPICS = [f"topic{number}" for number in range(10)]
COMMAND = ("python", "-m", "flows.reevaluate", "--patience", "0")

READER = '''
"""A reader for tests that notes each question and answers what ANSWER says."""
import os, pathlib
from docmemo.qa.protocols import ReadReply

ANSWER = "103"

class Reader:
    async def read(self, request):
        with open(pathlib.Path(os.environ["TEST_NOTES"]) / "reads.log", "a") as log:
            log.write(request.question.question_id + "\\n")
        return ReadReply(outcome="answer", answer=ANSWER, useful=list(request.evidence[:1]))

def make(params):
    return Reader()
'''


@pytest.fixture
def loopback(prefect_url: str) -> Iterator[str]:
    """The Prefect API, which the test may ask; nothing else is reachable."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    yield prefect_url
    pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture
def project(tmp_path: Path, loopback: str) -> Project:
    """The real pipeline over ten documents of a page; its run is accepted: every answer right."""
    (tmp_path / "project").mkdir()
    made = Project(tmp_path / "project", TOPICS, {"PREFECT_API_URL": loopback, "TEST_NOTES": str(tmp_path)}, pages=1)
    (made.folder / "test_reader.py").write_text(READER)
    made.set({"answer.reader": "test_reader:make"})
    made.git("branch", "-M", "main")
    made.run("docmemo", "models", "lock")
    made.repro()
    made.commit("first run")
    made.run("docmemo", "accept")
    (tmp_path / "reads.log").unlink()
    return made


@pytest.fixture(scope="module")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    """A scripted server, which says what its model is."""
    pytest_socket.enable_socket()
    with ScriptedServer({}, tmp_path_factory.mktemp("models")) as server:
        yield server


@pytest.fixture(scope="module")
def made_toy(tmp_path_factory: pytest.TempPathFactory, prefect_url: str, model_server: ScriptedServer) -> Toy:
    """A pipeline that does no work, with an accepted run."""
    folder = tmp_path_factory.mktemp("toy") / "project"
    folder.mkdir()
    pytest_socket.enable_socket()
    return Toy.make(folder, {"PREFECT_API_URL": prefect_url}, model_server)


@pytest.fixture
def toy(made_toy: Toy, tmp_path: Path, loopback: str) -> Iterator[Toy]:
    """A copy of it."""
    made = made_toy.copied(tmp_path)
    yield made
    made.stop()


def reads(project: Project) -> int:
    """Questions the reader was asked."""
    path = project.folder.parent / "reads.log"
    return len(path.read_text().split()) if path.exists() else 0


def test_a_changed_model_is_noticed_and_a_regression_fails_the_run(project: Project) -> None:
    """One story, since each run of the pipeline takes seconds."""
    path = project.folder / "test_reader.py"
    path.write_text(path.read_text().replace('"103"', '"412"'))
    project.commit("another reader")
    head, status = project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")
    before = (project.folder / "metrics" / "scores.json").read_bytes()
    output = project.run(*COMMAND, expect=1)
    assert "Regression: accuracy (rule) fell by 100.0 points" in output
    assert "model changed: reasoner" in output
    assert reads(project) == len(TOPICS), "every question once"

    run = flow_runs(project)[-1]
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Regression")
    shown = artifacts(project, run)
    assert "Stages that ran: answer, judge, report" in shown["reevaluation"], "and only those"
    assert "Model changed: reasoner" in shown["reevaluation"]
    assert all(f"q-{topic}" in shown["reevaluation"] for topic in TOPICS), "flipped questions are named"
    assert "accuracy (rule)" in shown["headline"]
    (page,) = (project.folder / ".docmemo" / "reevaluate" / "comparisons").iterdir()
    assert "Regression: accuracy (rule)" in page.read_text()

    (branch,) = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/reevaluate").splitlines()
    changed = set(project.git("diff", "--name-only", "main", branch).splitlines())
    assert {"models.lock.json", "dvc.lock", "metrics/scores.json", "metrics/questions.csv"} <= changed
    assert all(name.startswith("metrics/") for name in changed - {"models.lock.json", "dvc.lock"})
    assert (project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")) == (head, status)
    assert (project.folder / "metrics" / "scores.json").read_bytes() == before, "main's files stay"
    assert project.git("worktree", "list").count("\n") == 0
    compared = project.run("docmemo", "compare", "docmemo/accepted", branch, expect=1)
    assert "Regression" in compared


def test_a_model_that_its_server_replaced_is_noticed_at_the_next_tick(toy: Toy) -> None:
    quiet = toy.run(*COMMAND)
    assert "Nothing changed since refs/docmemo/accepted" in quiet
    assert (toy.answered, flow_runs(toy)[-1]["state"]["name"]) == (0, "Nothing changed")
    assert "Nothing changed" in artifacts(toy, flow_runs(toy)[-1])["reevaluation"]
    toy.change_model(WORSE)
    output = toy.run(*COMMAND, expect=1)
    assert GOOD in output
    assert WORSE in output
    assert "Regression" in output
    run = flow_runs(toy)[-1]
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Regression")
    assert "Stages that ran: answer, report" in artifacts(toy, run)["reevaluation"]
    branch = toy.git("for-each-ref", "--format=%(refname:short)", "refs/heads/reevaluate")
    toy.git("merge", "-q", "--ff-only", branch)
    toy.run("docmemo", "accept")
    assert "Nothing changed" in toy.run(*COMMAND)


def test_a_killed_run_is_cleared_by_the_next_and_two_never_work_at_once(toy: Toy) -> None:
    toy.change_model(WORSE)
    first = toy.start(*COMMAND, TEST_READER_SECONDS="600")
    wait_until(lambda: toy.answered == 1, 240)
    assert "Skipped: Another re-evaluation of this project is running." in toy.run(*COMMAND)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert toy.git("worktree", "list").count("\n") == 1, "its checkout is still there"
    assert "Regression" in toy.run(*COMMAND, expect=1)
    assert toy.git("worktree", "list").count("\n") == 0


def test_incomplete_and_incomparable_runs_fail_and_say_why(toy: Toy) -> None:
    toy.change_model(WORSE)
    failing = toy.folder.parent / "failing"
    failing.write_text("")
    output = toy.run(*COMMAND, expect=75)
    assert "Incomplete: Some questions could not be answered or judged now" in output
    run = flow_runs(toy)[-1]
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Incomplete")
    failing.unlink()
    path = toy.folder / "report.py"
    path.write_text(path.read_text().replace("models=lock)", "models=lock, dataset={'digest': 'other'})"))
    toy.commit("other questions")
    output = toy.run(*COMMAND, expect=3)
    assert "Cannot compare: The two runs are over different datasets" in output
    run = flow_runs(toy)[-1]
    assert (run["state"]["type"], run["state"]["name"]) == ("FAILED", "Cannot compare")
    assert "different datasets" in artifacts(toy, run)["reevaluation"]
    assert toy.git("for-each-ref", "refs/heads/reevaluate") == "", "nothing is committed of either"
    toy.change_model("a model that is not there")
    toy.server.reset(models=[{"id": "another"}])
    assert "Incomplete: The models cannot be resolved" in toy.run(*COMMAND, expect=75)


def test_served_it_runs_by_the_clock_and_by_the_event(toy: Toy) -> None:
    serving = toy.start(*COMMAND, "--serve", "--every", "20")
    wait_until(lambda: "Nothing changed" in states(toy), 240)
    toy.change_model(WORSE)
    wait_until(lambda: "Regression" in states(toy), 240)
    serving.send_signal(signal.SIGINT)
    serving.wait(120)
    toy.start(*COMMAND, "--serve", "--cron", "0 6 29 2 *")
    wait_until(lambda: deployment(toy)["schedules"][0]["schedule"].get("cron") == "0 6 29 2 *", 120)
    assert deployment(toy)["entrypoint"] == "flows.reevaluate.reevaluate"
    done = len(states(toy))
    toy.run("python", "-m", "flows.reevaluate", "--notify")
    wait_until(lambda: len(states(toy)) > done, 240)
    assert states(toy)[-1] == "Regression"


def states(toy: Toy) -> list[str]:
    """Names of the states of the runs that have ended."""
    ended = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
    return [run["state"]["name"] for run in flow_runs(toy) if run["state"]["type"] in ended]


def deployment(toy: Toy) -> dict[str, Any]:
    """The deployment of this project."""
    return next(d for d in api(toy, "deployments/filter", {}) if d["parameters"]["repository"] == str(toy.folder))


@pytest.fixture
def repository(tmp_path: Path) -> Project:
    """A repository without any run."""
    folder = tmp_path / "project"
    (folder / ".dvc").mkdir(parents=True)
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/cache\n")
    (folder / ".gitignore").write_text("/.docmemo/\n/documents\n")
    (folder / "params.yaml").write_text("dataset: {root: documents}\n")
    made = Project.__new__(Project)
    made._settle(folder, None)
    made.git("init", "-q", "-b", "main")
    made.commit("start")
    return made


def test_the_checkout_shares_the_cache_and_reaches_a_dataset_outside_git(repository: Project) -> None:
    (repository.folder / "documents").mkdir()
    (repository.folder / "documents" / "a.pdf").write_text("a")
    repo = Repository(repository.folder)
    workshop = Workshop(repo, repository.folder / ".docmemo" / "reevaluate")
    with workshop.checkout(repo.resolve("HEAD")) as checkout:
        assert (checkout / "documents" / "a.pdf").read_text() == "a"
        cache = repo.text("config", "-f", str(checkout / ".dvc" / "config.local"), "cache.dir")
        assert Path(cache) == repository.folder / ".dvc" / "cache"
        assert repository.git("status", "--porcelain") == ""
        (checkout / "metrics").mkdir()
        (checkout / "metrics" / "scores.json").write_text("{}")
        first = commit_results(repo, checkout, ["metrics", "dvc.lock"], "a result", "reevaluate/2026-01-05")
        assert commit_results(repo, checkout, ["metrics"], "the same", "reevaluate/2026-01-05") is None
    with workshop.checkout(repo.resolve("HEAD")) as checkout:
        (checkout / "metrics").mkdir()
        (checkout / "metrics" / "scores.json").write_text("{}")
        same = commit_results(repo, checkout, ["metrics"], "a result", "reevaluate/2026-01-12")
        assert first is not None and same == first, "the branch that holds the same result is used again"
    with workshop.checkout(repo.resolve("HEAD")) as checkout:
        (checkout / "metrics").mkdir()
        (checkout / "metrics" / "scores.json").write_text("[]")
        other = commit_results(repo, checkout, ["metrics"], "another result", "reevaluate/2026-01-05")
        assert other is not None and other[0] == "reevaluate/2026-01-05-2"
    assert repository.git("worktree", "list").count("\n") == 0


def test_data_that_is_only_absent_makes_no_stage_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dvc status --json` of a fresh checkout, as DVC 3.67.1 prints it."""
    absent = {
        "ingest": [{"changed outs": {"data/corpus": "deleted"}}],
        "render": [
            {"changed deps": {"data/corpus/documents.jsonl": "deleted"}},
            {"changed outs": {"data/p": "deleted"}},
        ],
    }
    answer = [
        {"changed deps": {"data/p": "deleted", "models.lock.json": {"reasoner": "modified"}}},
        {"changed outs": {"data/answers": "deleted"}},
    ]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        (absent, []),
        ({**absent, "answer": answer}, ["answer"]),
        ({**absent, "judge": ["changed command"]}, ["judge"]),
        ({"ingest": [{"changed deps": {"dataset": "deleted"}}]}, ["ingest"]),
        ({"report": [{"changed outs": {"metrics/scores.json": "modified"}}]}, ["report"]),
        ({"report": [{"changed deps": {"params.yaml": {"loop.rounds": "deleted"}}}]}, ["report"]),
        ({}, []),
    ]
    program = tmp_path / "dvc"
    monkeypatch.setattr("sys.executable", str(program.parent / "python"))
    for printed, expected in cases:
        program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(printed)}\nEOF\n")
        program.chmod(0o755)
        assert stale_stages(tmp_path) == expected
