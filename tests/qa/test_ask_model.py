"""`docmemo ask` with a model behind a server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pymupdf
import pytest
from typer.testing import CliRunner

from docmemo.cli import app
from tests.qa.test_ask import make_pdf
from tests.servers.fixtures import StartServer

ANSWERS = "tests.qa.scripted_answers:answer"
FOUND = {
    "decision": "answer",
    "answer": "The heron measured 41 units in spring.",
    "short_answer": ["41"],
    "answer_format": "Int",
    "confidence": 0.9,
    "useful_pages": [2],
    "citations": [{"page": 2, "quote": "measured 41 units"}],
}
PLAIN = "Nothing to see here, on a page with enough words to need no OCR."
QUESTION = "How many units did the heron measure?"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Outside of the project, as most people will be; without layout, which takes seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("docmemo.qa.adhoc.LAYOUT_PAGES", 0)
    monkeypatch.setenv("DOCMEMO_WORKERS", "0")
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.01")


@pytest.fixture
def document(tmp_path) -> str:
    made = make_pdf(tmp_path / "a.pdf", PLAIN, "The heron measured 41 units in spring, all told.")
    with pymupdf.open(made) as opened:
        opened.set_page_labels([{"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 5}])
        opened.save(tmp_path / "b.pdf")
    return str(tmp_path / "b.pdf")


def ask(server, *arguments: str):
    return CliRunner().invoke(app, ["ask", *arguments, "--base-url", server.base_url])


def found(body):
    """Names the second page and answers from it."""
    name = body["response_format"]["json_schema"]["name"]
    return {"reason": "", "pages": [2, 1]} if name == "ChosenPages" else FOUND


def test_people_see_the_answer_its_confidence_the_printed_page_and_what_was_spent(
    document, scripted_server: StartServer
):
    server = scripted_server(answers=f"{__name__}:found")
    done = ask(server, document, QUESTION)
    assert done.exit_code == 0, done.output
    assert "asking scripted (32768 tokens)" in done.stderr
    for said in (
        "1. page 2 (printed vi)",
        "measured 41 units",
        "Answer: 41",
        "The heron measured 41 units in spring.",
        "own confidence: 90%",
        "1 round; 2 model calls, ",
        "cost unknown",
    ):
        assert said in done.stdout, said


def test_machines_get_the_same_as_json(document, scripted_server: StartServer):
    server = scripted_server(answers=f"{__name__}:found")
    answer = json.loads(ask(server, document, QUESTION, "--json").stdout)
    assert (answer["answer"], answer["full_answer"]) == ("41", FOUND["answer"])
    assert (answer["confidence"], answer["confidence_score"]) == (None, 0.9)
    (cited,) = answer["citations"]
    assert (cited["page"], cited["label"], cited["quote"]) == (2, "vi", "measured 41 units")
    assert cited["bbox"] is not None
    assert answer["usage"]["calls"] == 2
    assert answer["usage"]["image_tokens"] > 0


def test_pages_are_sent_as_pictures_unless_the_model_takes_none(document, scripted_server: StartServer):
    server = scripted_server(answers=f"{__name__}:found", images=False)
    done = ask(server, document, QUESTION)
    assert done.exit_code == 2
    assert "takes no" in done.stderr or "does not take the images" in done.stderr
    assert "--no-images" in done.stderr
    assert len([e for e in server.requests() if e["status"] != 200]) == 1, "no retry storm"
    done = ask(server, document, QUESTION, "--no-images")
    assert done.exit_code == 0, done.output
    assert "text only" in done.stderr
    assert "Answer: 41" in done.stdout


def test_a_short_document_is_shown_with_crops_of_its_tables(tmp_path, monkeypatch, scripted_server: StartServer):
    monkeypatch.setattr("docmemo.qa.adhoc.LAYOUT_PAGES", 40)
    server = scripted_server(answers=f"{__name__}:found")
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 80), "Table 1: Herons by year")
    for row in range(6):
        for column in range(3):
            cell = pymupdf.Rect(72 + 120 * column, 100 + 24 * row, 192 + 120 * column, 124 + 24 * row)
            page.draw_rect(cell)
            page.insert_text((cell.x0 + 6, cell.y1 - 7), f"{2000 + row} / {column * 17 + row}")
    document.save(tmp_path / "t.pdf")
    done = ask(server, str(tmp_path / "t.pdf"), "How many herons were there in 2003?")
    assert done.exit_code == 0, done.output
    plain = server.state()["seen"][-1]["image_tokens"]
    monkeypatch.setattr("docmemo.qa.adhoc.LAYOUT_PAGES", 0)
    done = ask(server, str(tmp_path / "t.pdf"), "How many herons were there in 2003?")
    assert "without enlarged crops" in " ".join(done.stderr.split())
    assert server.state()["seen"][-1]["image_tokens"] < plain


def test_several_files_are_read_as_one_and_cited_apart(tmp_path, scripted_server: StartServer):
    server = scripted_server(answers=ANSWERS)
    one = make_pdf(tmp_path / "one.pdf", PLAIN, PLAIN)
    two = make_pdf(tmp_path / "two.pdf", PLAIN, "The lantern weighs 17 grams without its handle.")
    answer = json.loads(
        ask(server, str(one), str(two), "How much does the lantern weigh?", "--json", "--rounds", "1").stdout
    )
    assert answer["rounds"] == 1
    assert {c["file"] for c in answer["citations"]} <= {str(one), str(two)}
    assert server.state()["seen"][-1]["image_tokens"] > 0


def test_a_slow_server_is_waited_for_as_long_as_the_settings_say(document, scripted_server: StartServer, monkeypatch):
    server = scripted_server(answers=f"{__name__}:found", faults_at={"2": "slow"}, slow=6.0)
    monkeypatch.setenv("DOCMEMO_CONNECT_TIMEOUT", "1")
    done = ask(server, document, QUESTION, "--rounds", "1")
    assert done.exit_code == 0, done.output
    assert len(server.requests()) == 2, "each request was sent once"
    server.change(delay=3.0)
    monkeypatch.setenv("DOCMEMO_REQUEST_TIMEOUT", "0.5")
    monkeypatch.setenv("DOCMEMO_CALL_ATTEMPTS", "1")
    done = ask(server, document, "Another question?")
    assert done.exit_code == 2
    assert "no reply within 0.5 seconds (DOCMEMO_REQUEST_TIMEOUT)" in done.stderr


def test_what_is_wrong_with_the_server_is_said_before_any_work(document, scripted_server: StartServer, monkeypatch):
    server = scripted_server(models=[{"id": "one"}, {"id": "two"}], key="secret")
    monkeypatch.setenv("MY_KEY", "secret")
    keyed = ("--api-key-env", "MY_KEY")
    for arguments, said in (
        (keyed, "2 models, so one must be named"),
        ((*keyed, "--model", "three"), "has no model 'three'"),
        (("--model", "one"), "HTTP 401"),
        (("--api-key-env", "NOT_SET"), "NOT_SET is not set"),
    ):
        done = ask(server, document, QUESTION, *arguments)
        assert done.exit_code == 2, done.output
        assert said in done.stderr
        assert "Traceback" not in done.output
    assert server.requests() == []
    assert not (Path(os.environ["DOCMEMO_HOME"]) / "store").exists()


def test_a_key_goes_only_where_it_was_meant_to(document, scripted_server: StartServer, monkeypatch):
    server = scripted_server(answers=f"{__name__}:found", key="secret")
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("DOCMEMO_API_KEY", "secret")
    done = ask(server, document, QUESTION)
    assert done.exit_code == 2
    assert "HTTP 401" in done.stderr
    monkeypatch.setenv("DOCMEMO_BASE_URL", server.base_url)
    assert ask(server, document, QUESTION).exit_code == 0


def test_options_of_a_model_need_a_model(document):
    done = CliRunner().invoke(app, ["ask", document, QUESTION, "--no-images"])
    assert done.exit_code == 2
    assert "--base-url" in done.stderr


def test_the_context_is_the_servers_unless_it_is_given(document, scripted_server: StartServer):
    server = scripted_server(answers=f"{__name__}:found", context=8192)
    done = ask(server, document, QUESTION)
    assert done.exit_code == 0, done.output
    assert "8192 tokens" in done.stderr
    assert "4096 tokens" in ask(server, document, QUESTION, "--context", "4096").stderr
