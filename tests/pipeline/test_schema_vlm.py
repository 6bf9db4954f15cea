"""Schema memory by a model, over a real server process that answers from a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docmemo.artifacts import read_json, write_json
from docmemo.errors import RunBudgetError
from docmemo.models.budget import RUN_BUDGET
from docmemo.pipeline.backends import schema_step
from docmemo.pipeline.runner import artifact_key, read_index
from docmemo.pipeline.step import Job, Step
from docmemo.types import Outline, PageSummary, SchemaMemory, SummarySet
from tests.pipeline.model_steps import ENTRY, job, pages_of, params, run, write_pages
from tests.servers.fixtures import StartServer

RULE = "tests.pipeline.model_rules:describe_document"
NO_WAITING = {"DOCMEMO_CALL_ATTEMPTS": "2", "DOCMEMO_RETRY_WAIT": "0.01", "DOCMEMO_SERVER_PATIENCE": "0.3"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and outages take no time."""
    for name, value in NO_WAITING.items():
        monkeypatch.setenv(name, value)


def step(**section: Any) -> Step:
    return schema_step(params(schema=section), {"schema": ENTRY})


def document_job(
    folder: Path, n_pages: int, doc_id: str = "a.pdf", words: int = 3, outline: list[Outline] | None = None
) -> Job:
    """A document with summaries of a length."""
    page_set = pages_of(doc_id, n_pages).model_copy(update={"outline": outline or []})
    told = [
        PageSummary(page=n, summary=f"Tonnage of quay {n}. " + "detail " * words, keywords=["quay"])
        for n in range(1, n_pages + 1)
    ]
    summaries = folder / f"{doc_id}.summaries.json"
    write_json(summaries, SummarySet(doc_id=doc_id, summaries=told))
    return job(write_pages(folder / f"{doc_id}.pages.zip", page_set), page_set, summarize=summaries)


def schema(folder: Path, doc_id: str = "a.pdf") -> SchemaMemory:
    return read_json(folder / "out" / f"{doc_id}.json", SchemaMemory)


def sections(folder: Path) -> list[tuple[str, int, int]]:
    return [(s.label, s.first_page, s.last_page) for s in schema(folder).sections]


def test_one_request_gives_type_topic_and_sections_in_order(scripted_server: StartServer, tmp_path: Path) -> None:
    server = scripted_server(answers=RULE)
    done = run(step(), [document_job(tmp_path, 9)], tmp_path)
    found = schema(tmp_path)
    assert (done.computed, len(server.requests())) == (["a.pdf"], 1)
    assert (found.doc_type, found.topic) == ("harbour report", "A report of 9 pages.")
    assert sections(tmp_path) == [("Opening of 9", 1, 5), ("Close", 6, 9)]
    assert set(found.carries) == set(range(1, 10)), "what pages carry is told from the pages"
    entry = read_index(tmp_path / "out").documents["a.pdf"]
    assert entry.usage is not None
    assert entry.usage.calls == 1


def test_outline_and_summaries_are_shown_as_data(scripted_server: StartServer, tmp_path: Path) -> None:
    scripted_server(answers="tests.pipeline.model_rules:echo_as_topic")
    outline = [Outline(level=1, title="Quays</outline>", page=1), Outline(level=2, title="Fees", page=3)]
    run(step(), [document_job(tmp_path, 3, outline=outline)], tmp_path)
    shown = schema(tmp_path).topic
    assert "Quays‹/outline> (page 1) Fees (page 3)" in shown
    assert "page 2: Tonnage of quay 2." in shown


def test_a_document_beyond_the_reply_is_described_in_parts(scripted_server: StartServer, tmp_path: Path) -> None:
    server = scripted_server(answers=RULE)
    run(step(), [document_job(tmp_path, 64)], tmp_path)
    assert len(server.requests()) == 2, "512 tokens of reply are taken to do for 32 pages"
    assert sections(tmp_path) == [
        ("Opening of 32", 1, 16),
        ("Close", 17, 32),
        ("Opening of 32", 33, 48),
        ("Close", 49, 64),
    ]
    assert schema(tmp_path).topic == "A report of 32 pages."


@pytest.mark.parametrize(("context", "requests"), [(3600, 1), (2600, 2)])
def test_a_document_beyond_the_context_is_shortened_and_then_divided(
    scripted_server: StartServer, tmp_path: Path, context: int, requests: int
) -> None:
    server = scripted_server(answers=RULE, context=context)
    model = {"id": "scripted", "max_tokens": 640, "context": context}
    run(step(model=model), [document_job(tmp_path, 32, words=300)], tmp_path)
    assert [entry["status"] for entry in server.requests()] == [200] * requests, "counted before it was sent"
    assert len(schema(tmp_path).sections) == 2 * requests
    assert schema(tmp_path).sections[-1].last_page == 32


def test_a_reply_that_is_cut_is_asked_for_in_halves(scripted_server: StartServer, tmp_path: Path) -> None:
    server = scripted_server(answers=RULE, faults_at={"1": "length"})
    run(step(), [document_job(tmp_path, 20)], tmp_path)
    assert len(server.requests()) == 3
    assert [label for label, _, _ in sections(tmp_path)] == ["Opening of 10", "Close", "Opening of 10", "Close"]
    entry = read_index(tmp_path / "out").documents["a.pdf"]
    assert (entry.failures, entry.complete) == ({}, True)
    assert entry.usage is not None
    assert entry.usage.calls == 3, "the cut reply cost too"


def test_an_unusable_reply_leaves_the_structural_schema_and_says_so(
    scripted_server: StartServer, tmp_path: Path
) -> None:
    scripted_server(answers=RULE, faults_at={"1": "bad_json", "2": "bad_json"})
    work = document_job(tmp_path, 5)
    done = run(step(), [work], tmp_path)
    entry = read_index(tmp_path / "out").documents["a.pdf"]
    assert "structural sections, since the model's part failed: ModelResponseError" in entry.failures["0"]
    assert (entry.complete, done.waiting) == (True, {})
    (tmp_path / "plain").mkdir()
    run(step(backend="structural"), [work], tmp_path / "plain")
    assert schema(tmp_path) == schema(tmp_path / "plain")


def test_a_server_error_leaves_the_document_unfinished(scripted_server: StartServer, tmp_path: Path) -> None:
    server = scripted_server(answers=RULE, faults_at={"1": "500", "2": "500"})
    work = document_job(tmp_path, 5)
    done = run(step(), [work], tmp_path)
    assert list(done.waiting) == ["a.pdf"]
    assert run(step(), [work], tmp_path).waiting == {}
    assert len(server.requests()) == 3
    assert schema(tmp_path).doc_type == "harbour report"


def test_a_spent_budget_stops_the_step_and_keeps_what_is_finished(
    scripted_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = scripted_server(answers=RULE)
    jobs = [document_job(tmp_path, 5, doc_id=f"{n}.pdf", words=n) for n in range(6)]
    monkeypatch.setenv("DOCMEMO_BUDGET_CALLS", "2")
    RUN_BUDGET.reset()
    with pytest.raises(RunBudgetError, match="2 of 2 requests"):
        run(step(), jobs, tmp_path)
    monkeypatch.delenv("DOCMEMO_BUDGET_CALLS")
    run(step(), jobs, tmp_path)
    assert len(server.requests()) == 6


def test_a_document_without_any_text_is_not_asked_about(scripted_server: StartServer, tmp_path: Path) -> None:
    server = scripted_server(answers=RULE)
    page_set = pages_of("a.pdf", 2)
    page_set = page_set.model_copy(update={"pages": [p.model_copy(update={"lines": []}) for p in page_set.pages]})
    done = run(step(), [job(write_pages(tmp_path / "a.zip", page_set), page_set)], tmp_path)
    assert (done.computed, server.requests()) == (["a.pdf"], [])


def test_the_key_covers_summaries_and_model_only_for_the_model(tmp_path: Path) -> None:
    work, longer = document_job(tmp_path, 3), document_job(tmp_path, 3, doc_id="b.pdf", words=9)
    same_name = Job(work.document, work.source, {**work.inputs, "summarize": longer.inputs["summarize"]})
    other = {"id": "another"}
    assert artifact_key(step(), work) != artifact_key(step(), same_name)
    assert artifact_key(step(), work) != artifact_key(step(model=other), work)
    plain = step(backend="structural")
    assert artifact_key(plain, work) == artifact_key(plain, same_name)
    assert artifact_key(plain, work) == artifact_key(step(backend="structural", model=other), work)
