"""The judge stage with a language model: what is asked again, what is not, and what a judge that fails leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docmemo.artifacts import write_jsonl
from docmemo.types import AnswerRecord, Failure
from tests.servers import ScriptedServer
from tests.servers.fixtures import StartServer
from tests.stages.project import Project

RULE = "tests.evaluation.judge_rules:same_words"
GOLD = {"q1": "412", "q2": "413", "q3": "414", "q4": "415", "q5": "416", "q6": "Not answerable"}
SAID = {"q1": "It was 412.", "q2": "It was 9.", "q3": "414", "q6": None}
"""q4 failed; q5 was called not answerable; q6 is not."""
ANSWERED = ["q1", "q2", "q3"]


def record(name: str) -> AnswerRecord:
    values: dict[str, Any] = {"question_id": name, "doc_id": "heron.pdf", "question": f"How many in {name}?"}
    if name == "q4":
        return AnswerRecord(**values, outcome="failed", error=Failure(kind="RefusalError", message="no"))
    if SAID.get(name) is None:
        return AnswerRecord(**values, outcome="not_answerable")
    return AnswerRecord(**values, outcome="answer", answer=SAID[name])


@pytest.fixture
def server(scripted_server: StartServer) -> ScriptedServer:
    """A judge that is also served under a second name."""
    models = [{"id": name, "root": name, "max_model_len": 8192} for name in ("scripted", "second")]
    return scripted_server(answers=RULE, models=models)


@pytest.fixture
def project(checkout: Any, server: ScriptedServer) -> Project:
    """Six answers of one document, ready to be judged."""
    made: Project = checkout(["heron"])
    made.environment |= {
        "DOCMEMO_BASE_URL": server.base_url,
        "DOCMEMO_CALL_ATTEMPTS": "1",
        "DOCMEMO_SERVER_PATIENCE": "0.2",
        "DOCMEMO_CONCURRENCY": "1",
    }
    rows = [
        {
            "question_id": name,
            "doc_id": "heron.pdf",
            "question": f"How many in {name}?",
            "answer": gold,
            "answer_format": "None" if name == "q6" else "Str",
            "evidence_pages": [] if name == "q6" else [1],
            "evidence_sources": [] if name == "q6" else ["text"],
        }
        for name, gold in GOLD.items()
    ]
    (made.folder / "dataset" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made.folder / "data" / "answers").mkdir()
    write_jsonl(made.folder / "data" / "answers" / "answers.jsonl", [record(name) for name in GOLD])
    use(made, "scripted")
    made.run("python", "-m", "stages.ingest")
    return made


def use(project: Project, model: str) -> None:
    """Judge by a model."""
    project.set({"judge.backend": "llm", "judge.model.id": model, "judge.model.context": 8192})
    path = project.folder / "models.lock.json"
    lock = json.loads(path.read_text())
    lock["judge"] = {"provider": "openai_compatible", "id": model, "served": {"id": model, "owned_by": "vllm"}}
    lock["judge"]["served"] |= {"root": model, "max_model_len": 8192}
    path.write_text(json.dumps(lock))


def judge(project: Project, expect: int = 0, **variables: str) -> dict[str, dict[str, Any]]:
    """Run the stage; question id to judgement."""
    project.run("python", "-m", "stages.judge", expect=expect, **variables)
    return {row["question_id"]: row for row in project.lines("data/judgements/judgements.jsonl")}


def test_each_judge_is_asked_once_about_each_answer(project: Project, server: ScriptedServer) -> None:
    first = judge(project)
    assert len(server.requests()) == len(ANSWERED), "q4 failed, and q5 and q6 are decided by rule"
    verdicts = {name: row["verdict"] and row["verdict"]["correct"] for name, row in first.items()}
    assert verdicts == {"q1": True, "q2": False, "q3": True, "q4": None, "q5": False, "q6": True}
    assert {row["verdict"]["judge"] for row in first.values() if row["verdict"]} == {"scripted"}
    assert len({row["verdict"]["prompt"] for row in first.values() if row["verdict"]}) == 1
    assert {name: row["rule_score"] for name, row in first.items() if name in ("q3", "q4", "q5", "q6")} == {
        "q3": 1.0,
        "q4": None,
        "q5": 0.0,
        "q6": 1.0,
    }, "the rule's score stands beside"
    assert sum(row["usage"]["calls"] for row in first.values()) == len(ANSWERED)

    use(project, "second")
    second = judge(project)
    assert len(server.requests()) == 2 * len(ANSWERED)
    assert {row["verdict"]["judge"] for row in second.values() if row["verdict"]} == {"second"}

    use(project, "scripted")
    assert judge(project) == first
    assert "0 to judge, 6 already judged" in project.output
    assert len(server.requests()) == 2 * len(ANSWERED), "going back asks nothing"


def test_a_judge_that_fails_leaves_answers_open_or_unscored_never_wrong(
    project: Project, server: ScriptedServer
) -> None:
    server.change(faults_at={"1": "bad_json", "2": "bad_json", "3": "500"})
    found = judge(project, expect=3, DOCMEMO_ATTEMPTS="1")
    assert "1 answers failed in a way that may pass" in project.output
    unscored, pending = found["q1"], found["q2"]
    assert unscored["unscored"].startswith("no verdict: ModelResponseError")
    assert (unscored["verdict"], unscored["error"]["retryable"]) == (None, False)
    assert pending["unscored"].startswith("judging failed")
    assert (pending["verdict"], pending["error"]["retryable"]) == (None, True)
    assert all(row["rule_score"] is not None for row in (unscored, pending)), "the rule's score is kept"
    assert found["q3"]["verdict"]["correct"]

    server.change(faults_at=None)
    server.kill()
    judge(project, expect=3)
    assert "The run was stopped: The model server could not be reached" in project.output
    server.start()
    found = judge(project)
    assert "1 to judge, 5 already judged" in project.output
    assert server.state()["requests"] == 1, "only what was open"
    assert found["q2"]["verdict"]["correct"] is False
    assert found["q1"] == unscored
