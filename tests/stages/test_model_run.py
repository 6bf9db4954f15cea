"""A run whose reader and reranker are models behind a server, through `dvc repro` as a user would."""

from __future__ import annotations

from collections import Counter

from benchmarks.fault_run import ANSWERS
from tests.servers.fixtures import StartServer
from tests.stages.project import wait_until

TOPICS = ["heron", "turbine", "orchard"]
CONCURRENCY = 2


def test_a_run_over_a_model_server_stops_and_resumes(checkout, scripted_server: StartServer) -> None:
    """One story, since each run of the pipeline takes seconds."""
    server = scripted_server(answers=ANSWERS, delay=0.5)
    project = checkout(TOPICS)
    project.environment |= {"DOCMEMO_BASE_URL": server.base_url, "DOCMEMO_CONCURRENCY": str(CONCURRENCY)}
    project.set({f"answer.{role}": "vlm" for role in ("reader", "reranker")})
    project.set({f"answer.{role}_model.id": "scripted" for role in ("reader", "reranker")})
    project.run("docmemo", "models", "lock")

    run = project.start("dvc", "repro", "answer", DOCMEMO_SERVER_PATIENCE="1", DOCMEMO_ACCEPT_FAILURES="1")
    wait_until(lambda: len(server.requests()) >= 5, 240)
    server.kill()
    assert run.wait(timeout=240) != 0, "a stopped run is not accepted"
    assert project.output.count("The run was stopped: The model server could not be reached") == 1
    assert "waiting up to 1 seconds for it" in project.output
    answers = project.lines("data/answers/answers.jsonl")
    assert len(answers) == len(TOPICS)
    assert any(answer["outcome"] == "failed" and answer["error"]["retryable"] for answer in answers)

    server.start()
    server.change(delay=0)
    project.repro("answer")
    answers = project.lines("data/answers/answers.jsonl")
    assert {answer["outcome"] for answer in answers} <= {"answer", "not_answerable"}
    assert all(answer["usage"]["image_tokens"] > 0 for answer in answers)
    repeated = sum(times - 1 for times in Counter(entry["digest"] for entry in server.requests()).values())
    assert repeated <= CONCURRENCY + 1, "only what was in flight (or the check before the run) is asked again"

    asked = len(server.requests())
    assert project.repro("answer").ran == []
    assert len(server.requests()) == asked
