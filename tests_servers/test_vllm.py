"""vLLM on the CPU with a tiny random Qwen2.5-VL, started by `docmemo models serve`: the protocol of a real server.

What it answers is nonsense in the right form. The last test kills the server, so the order of this file matters.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
import yaml
from pydantic import BaseModel

from docmemo.config import ModelParams, Params, parse_params
from docmemo.errors import ContextLengthError, ImageInputError, ModelAccessError, ModelUnavailableError
from docmemo.models.chat import Message
from docmemo.models.doctor import check_role, picture
from docmemo.models.endpoints import endpoint_of, served_model
from docmemo.models.openai_compatible import open_model
from docmemo.models.serve_plan import images_of
from tests.conftest import ROOT

NAME = "tiny-vlm"
CONTEXT = 8192
SITE = Path(__file__).parent / "vllm_site"


class Colour(BaseModel):
    """A form that no reply can leave."""

    colour: Literal["red", "green", "blue"]
    sure: bool


class Story(BaseModel):
    """A reply that takes its time."""

    words: list[Literal["once", "upon", "a", "time"]]


@dataclass
class Served:
    """A running server."""

    base_url: str
    process: subprocess.Popen[str]
    folder: Path


def params(**changes: Any) -> Params:
    model = {"id": NAME, "context": CONTEXT, "max_tokens": 200, "image_tokens": "qwen2_5_vl", **changes}
    return parse_params({"answer": {"reader": "vlm", "reader_model": model}})


@pytest.fixture(scope="module")
def served(vllm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    project = tmp_path_factory.mktemp("project")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(SITE)]),
        "DOCMEMO_VLLM": str(vllm),
        "DOCMEMO_HOME": str(project / "home"),
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    folder = project / "tiny"
    subprocess.run(
        [vllm.parent / "python", "-m", "tests_servers.tiny_qwen", str(folder)], env=environment, cwd=ROOT, check=True
    )
    (project / "params.yaml").write_text(yaml.safe_dump(params().model_dump(mode="json", by_alias=True)))
    command = [sys.executable, "-m", "docmemo.cli", "models", "serve", "reasoner", "--model", str(folder)]
    command += ["--port", "18643", "--timeout", "900", "--", "--dtype", "float32", "--enforce-eager"]
    process = subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("export DOCMEMO_BASE_URL="), line
    yield Served(line.strip().partition("=")[2], process, project)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture(autouse=True)
def address(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", served.base_url)
    monkeypatch.setenv("DOCMEMO_CALL_ATTEMPTS", "2")
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.1")


def ask(parts: list[Any], schema: type[BaseModel] = Colour, **changes: Any) -> Any:
    model = params(**changes).answer.reader_model
    return asyncio.run(open_model("reasoner", model, journal=False).ask([Message("user", parts)], schema))


def most() -> int:
    return images_of("reasoner", params())


def test_it_tells_its_context_and_where_its_weights_are(served: Served) -> None:
    said = served_model(endpoint_of("reasoner"), NAME)
    assert said["max_model_len"] == CONTEXT
    assert said["root"] == str(served.folder / "tiny")


def test_a_reply_about_a_picture_keeps_to_the_schema_and_counts_its_tokens() -> None:
    reply = ask(["Which colour?", picture("red")])
    assert isinstance(reply.value, Colour)
    assert (reply.usage.calls, reply.repaired) == (1, False)
    assert reply.usage.image_tokens > 0
    assert reply.usage.input_tokens > reply.usage.image_tokens


def test_what_two_requests_begin_with_is_computed_once() -> None:
    question = "Which colour has the disc? " * 30  # the cache keeps whole blocks of 128 tokens
    ask([question, picture("red")])
    assert ask([question, picture("red")]).usage.cached_tokens > 0


def test_images_are_never_more_tokens_than_they_were_counted() -> None:
    model = open_model("reasoner", params().answer.reader_model, journal=False)
    one, three = ([Message("user", [picture("red")] * n)] for n in (1, 3))
    estimate = model.count(three) - model.count(one)
    assert ask([picture("red")] * 3).usage.image_tokens - ask([picture("red")]).usage.image_tokens <= estimate


def test_it_takes_the_images_a_request_may_hold_and_one_more_is_one_clear_error() -> None:
    assert isinstance(ask([*[picture("red")] * most(), "Which?"]).value, Colour)
    with pytest.raises(ImageInputError, match=str(most())):
        ask([*[picture("red")] * (most() + 1), "Which?"])


def test_a_request_past_the_context_is_refused_and_named() -> None:
    with pytest.raises(ContextLengthError, match=str(CONTEXT)):
        ask(["word " * 4000])


def test_a_model_it_does_not_have_is_no_reason_to_try_again() -> None:
    with pytest.raises(ModelAccessError, match="nobody"):
        ask(["Which?"], id="nobody")


def test_many_requests_at_once_are_all_answered() -> None:
    async def several() -> list[Any]:
        model = open_model("reasoner", params().answer.reader_model, journal=False)
        return await asyncio.gather(*(model.ask([Message("user", [f"Colour {i}?"])], Colour) for i in range(12)))

    assert len(asyncio.run(several())) == 12


def test_the_doctor_finds_all_that_a_role_needs() -> None:
    found = {finding.what: finding for finding in check_role("reasoner", params())}
    assert found["server"].status == found["context"].status == "ok"
    assert found["images"].status in ("ok", "warning"), found["images"]  # a random model may guess the colour
    assert f"takes {most()} at once" in found["images"].message


def test_the_server_killed_in_the_middle_of_a_request_is_a_lost_server(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_SERVER_PATIENCE", "3")
    leader = next(p for p in psutil.Process(served.process.pid).children() if "serve" in " ".join(p.cmdline()))
    family = [leader, *leader.children(recursive=True)]
    assert len(family) > 1  # the engine is a process of its own
    model = open_model("reasoner", ModelParams(id=NAME, context=CONTEXT, max_tokens=4000), journal=False)

    async def killed() -> None:
        asked = asyncio.ensure_future(model.ask([Message("user", ["Tell a story."])], Story))
        await asyncio.sleep(2)
        assert not asked.done()
        leader.send_signal(signal.SIGKILL)
        await asked

    with pytest.raises(ModelUnavailableError):
        asyncio.run(killed())
    assert served.process.wait(60) != 0
    end = time.monotonic() + 30
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family):
        assert time.monotonic() < end
        time.sleep(0.1)
