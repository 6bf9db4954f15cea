"""The scripted server itself, over plain HTTP: what it says, refuses, counts and breaks."""

from __future__ import annotations

import base64
import http.client
import io
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from PIL import Image

from tests.servers import ScriptedServer, faults
from tests.servers.fixtures import StartServer

SCHEMA = {
    "type": "object",
    "properties": {
        "pages": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        "why": {"type": "string"},
    },
    "required": ["pages", "why"],
}


def body(text: str = "hello", images: tuple[tuple[int, int], ...] = (), **more: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for size in images:
        data = io.BytesIO()
        Image.new("RGB", size, "white").save(data, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    return {
        "model": "scripted",
        "messages": [{"role": "user", "content": content}],
        "response_format": schema,
        **more,
    }


def ask(server: ScriptedServer, request: dict[str, Any], key: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    sent = urllib.request.Request(f"{server.base_url}/chat/completions", json.dumps(request).encode(), headers)
    try:
        with urllib.request.urlopen(sent, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def text(answer: dict[str, Any]) -> str:
    return str(answer["choices"][0]["message"]["content"])


def test_it_answers_with_an_instance_of_the_schema_that_only_the_request_decides(
    scripted_server: StartServer,
) -> None:
    first, second = scripted_server(), scripted_server()
    values = [json.loads(text(ask(server, body("a"))[1])) for server in (first, second, first)]
    assert values[0] == values[1] == values[2]
    assert len(values[0]["pages"]) == 2
    assert json.loads(text(ask(first, body("b"))[1])) != values[0]


def test_faults_leave_every_answer_as_it_was(scripted_server: StartServer) -> None:
    calm = scripted_server()
    rough = scripted_server(faults={"probability": 0.5, "seed": 3, "kinds": ["429", "500", "503", "cut"]})
    questions = [f"question {n}" for n in range(12)]
    expected = [text(ask(calm, body(q))[1]) for q in questions]
    given = []
    for question in questions:
        for _ in range(30):
            try:
                status, answer = ask(rough, body(question))
            except (http.client.HTTPException, ConnectionError):
                continue
            if status == 200:
                given.append(text(answer))
                break
    assert given == expected
    assert {e["fault"] for e in rough.requests()} == {None, "429", "500", "503", "cut"}


def test_a_restarted_server_keeps_its_port_and_counts_attempts_on(scripted_server: StartServer) -> None:
    server = scripted_server()
    ask(server, body())
    port = server.port
    server.restart()
    ask(server, body())
    assert server.port == port
    assert [entry["attempt"] for entry in server.requests()] == [1, 2]
    assert server.state()["requests"] == 1


def test_it_refuses_what_does_not_fit(scripted_server: StartServer) -> None:
    server = scripted_server(context=2000, max_images=2, key="k")
    assert ask(server, body())[0] == 401
    assert ask(server, body(model="other"), key="k")[0] == 404
    small = (280, 280)
    assert ask(server, body(images=(small, small)), key="k")[0] == 200
    status, answer = ask(server, body(images=(small,) * 3), key="k")
    assert (status, answer["error"]["message"][:17]) == (400, "At most 2 image(s")
    status, answer = ask(server, body(images=((1400, 1400),)), key="k")
    assert status == 400
    assert "2500" not in answer["error"]["message"], "the schema and the text count too"
    assert "context length is only 2000 tokens" in answer["error"]["message"]
    server.change(dialect="llamacpp", images=False)
    assert ask(server, body(images=(small,)), key="k")[1]["error"]["message"].startswith(
        "image input is not supported"
    )
    status, answer = ask(server, body("word " * 3000), key="k")
    assert (status, answer["error"]["type"]) == (400, "exceed_context_size_error")


def test_a_model_can_be_upgraded_while_it_runs(scripted_server: StartServer) -> None:
    server = scripted_server()
    server.change(models=[{"id": "scripted", "root": "scripted/two", "max_model_len": 100}])
    with urllib.request.urlopen(f"{server.base_url}/models", timeout=10) as answer:
        listed = json.loads(answer.read())["data"][0]
    assert (listed["root"], listed["max_model_len"]) == ("scripted/two", 100)
    assert server.state()["probes"] == 1


@pytest.mark.parametrize("kind", [*faults.ODD, "length", "refusal", "bad_json", "empty"])
def test_odd_replies_hold_no_plain_json(scripted_server: StartServer, kind: str) -> None:
    server = scripted_server(faults_at={"1": kind})
    status, answer = ask(server, body())
    assert status == 200
    with pytest.raises((json.JSONDecodeError, TypeError)):
        json.loads(answer["choices"][0]["message"]["content"])
    assert json.loads(text(ask(server, body())[1]))
