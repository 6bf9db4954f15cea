"""Serving one's own model: the options a role needs, waiting for it, and ending all that was started."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_socket
import yaml

from docmemo.config import LoopParams, Params, parse_params
from docmemo.errors import ConfigError, ModelUnavailableError
from docmemo.models import serve_plan
from docmemo.models.serve import Server, environment_lines, need_port
from docmemo.models.serve_plan import llamacpp_command, plan, vllm_command, weights
from docmemo.settings import Settings
from tests.conftest import ROOT

FAKE_VLLM = """#!{python}
# stands in for vLLM: notes its arguments, starts a child, and serves what the scripted server serves
import json, os, subprocess, sys
sys.path.insert(0, {root!r})
port = sys.argv[sys.argv.index("--port") + 1]
child = subprocess.Popen(["sleep", "600"])
json.dump({{"arguments": sys.argv[1:], "pids": [os.getpid(), child.pid]}}, open({note!r}, "w"))
print("loading weights", flush=True)
{before}
from tests.servers import scripted
sys.argv = ["scripted", "--port", port, "--script", {script!r}]
scripted.main()
"""


@pytest.fixture
def loopback() -> Iterator[None]:
    """Opens loopback, and nothing else, for a test."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    yield
    pytest_socket.disable_socket(allow_unix_socket=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served(**changes: Any) -> Params:
    """Parameters whose reader, reranker and summariser are played by one model, and the judge by another."""
    model = {"id": "org/vlm", "context": 16384}
    values: dict[str, Any] = {
        "summarize": {"backend": "vlm", "model": {**model, "context": 8192}},
        "answer": {"reader": "vlm", "reranker": "vlm", "reader_model": model, "reranker_model": model},
        "judge": {"backend": "llm", "model": {"id": "judge"}},
    }
    return parse_params({**values, **changes})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    values = served().model_dump(mode="json", by_alias=True)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return tmp_path


@pytest.fixture
def fake_vllm(tmp_path: Path) -> Callable[..., Path]:
    def make(before: str = "") -> Path:
        script = tmp_path / "script.json"
        script.write_text("{}")
        program = tmp_path / "vllm"
        program.write_text(
            FAKE_VLLM.format(
                python=sys.executable,
                root=str(ROOT),
                note=str(tmp_path / "note.json"),
                script=str(script),
                before=before,
            )
        )
        program.chmod(0o755)
        return program

    return make


def gone(pids: list[int], patience: float = 20.0) -> bool:
    end = time.monotonic() + patience
    while any(psutil.pid_exists(p) and psutil.Process(p).status() != "zombie" for p in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_a_server_takes_what_every_role_of_its_model_needs() -> None:
    params = served(loop=LoopParams(evidence=4, keep_useful=3, crops=5).model_dump())
    what = plan("summarizer", params)
    assert what.roles == ("summarizer", "reranker", "reasoner")
    assert (what.images, what.context, what.covers_all) == (12, 16384, False)
    alone = plan("judge", params)
    assert (alone.roles, alone.images) == (("judge",), 0)
    assert environment_lines(alone, "http://h:1/v1") == ["export DOCMEMO_JUDGE_BASE_URL=http://h:1/v1"]
    command = vllm_command(what, "vllm", "127.0.0.1", 8001, ["--tensor-parallel-size", "2"])
    assert command[:3] == ["vllm", "serve", "org/vlm"]
    assert option(command, "--served-model-name") == "org/vlm"
    assert option(command, "--max-model-len") == "16384"
    assert json.loads(option(command, "--limit-mm-per-prompt")) == {"image": 12, "video": 0}
    assert command[-2:] == ["--tensor-parallel-size", "2"]


def test_a_role_that_is_shown_no_images_reserves_none() -> None:
    what = plan("reasoner", parse_params({"answer": {"reader_model": {"id": "m", "images": False}}}))
    assert what.images == 0


def test_each_slot_of_llama_cpp_has_the_whole_context() -> None:
    command = llamacpp_command(plan("judge", served()), "127.0.0.1", 8000, mmproj="eyes.gguf", parallel=3)
    assert option(command, "--slot-context") == "32768"
    assert option(command, "--parallel") == "3"
    assert option(command, "--mmproj") == "eyes.gguf"


def test_a_model_without_a_name_or_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"answer\.reader_model\.id"):
        plan("reasoner", Params())
    with pytest.raises(ConfigError, match="Known roles: summarizer"):
        plan("reader", Params())
    assert plan("reasoner", Params(), "org/repo-GGUF:Some-Q4.gguf").name == "Some-Q4"
    assert plan("reasoner", Params(), "/models/Qwen").name == "Qwen"


def test_weights_are_a_file_or_a_name_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert weights(str(file), "--model") == str(file)
    asked = []
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda repo, name: asked.append((repo, name)) or "/hub/x")
    assert weights("org/repo:sub/x.gguf", "--model") == "/hub/x"
    assert asked == [("org/repo", "sub/x.gguf")]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda repo: ["b.gguf", "a.gguf", "README.md"])
    with pytest.raises(ConfigError, match=r"org/repo:FILE; its GGUF files: a\.gguf, b\.gguf"):
        weights("org/repo", "--model")
    with pytest.raises(ConfigError, match="no file"):
        weights("missing.gguf", "--model")
    with pytest.raises(ConfigError, match="neither a GGUF file nor a name on the hub"):
        weights("what is this", "--mmproj")


def test_a_hub_that_cannot_be_reached_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(*_: object) -> str:
        raise OSError("no route")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", offline)
    with pytest.raises(ConfigError, match="no route"):
        weights("org/repo:x.gguf", "--model")


def test_missing_servers_say_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="pip install 'vllm"):
        serve_plan.find_vllm("no-such-vllm")
    monkeypatch.setattr(serve_plan.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"\[llamacpp\]"):
        serve_plan.need_xllamacpp()


def cli(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "docmemo.cli", "models", "serve", *arguments]


def environment(program: Path) -> dict[str, str]:
    return {**os.environ, "DOCMEMO_VLLM": str(program), "PYTHONPATH": str(ROOT)}


def test_the_command_is_printed_as_one_would_type_it(project: Path, fake_vllm: Callable[..., Path]) -> None:
    program = fake_vllm()
    done = subprocess.run(
        cli("reasoner", "--print-command", "--", "--enforce-eager"),
        cwd=project,
        env=environment(program),
        capture_output=True,
        text=True,
        check=True,
    )
    command = shlex.split(done.stdout)
    assert command[:3] == [str(program), "serve", "org/vlm"]
    assert command[-1] == "--enforce-eager"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_served_model_is_announced_and_ends_with_all_its_processes(
    project: Path, fake_vllm: Callable[..., Path], end: signal.Signals, loopback: None
) -> None:
    port = free_port()
    process = subprocess.Popen(
        cli("reasoner", "--port", str(port)),
        cwd=project,
        env=environment(fake_vllm()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(3)]
    assert lines == [
        f"export DOCMEMO_{role}_BASE_URL=http://127.0.0.1:{port}/v1"
        for role in ("SUMMARIZER", "RERANKER", "REASONER")
    ]
    process.send_signal(end)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "ended" in said
    assert gone(json.loads((project / "note.json").read_text())["pids"])
    assert "loading weights" in (project / ".docmemo/servers/reasoner.log").read_text()


def test_killing_the_command_ends_the_server_too(
    project: Path, fake_vllm: Callable[..., Path], loopback: None
) -> None:
    process = subprocess.Popen(
        cli("reasoner", "--port", str(free_port())),
        cwd=project,
        env=environment(fake_vllm("child.kill(); child.wait()")),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("export")
    process.kill()
    process.wait()
    assert gone(json.loads((project / "note.json").read_text())["pids"])


@pytest.mark.parametrize(
    ("before", "limit", "words"),
    [
        ("sys.exit('no kernel image for this GPU')", 60.0, "ended with status 1"),
        ("import time; print('still loading', flush=True); time.sleep(600)", 3.0, "not ready after 3 s"),
    ],
)
def test_a_server_that_does_not_get_ready_shows_its_log_and_is_ended(
    tmp_path: Path,
    fake_vllm: Callable[..., Path],
    before: str,
    limit: float,
    words: str,
    loopback: None,
) -> None:
    port = free_port()
    command = vllm_command(plan("reasoner", served()), str(fake_vllm(before)), "127.0.0.1", port)
    server = Server(command, "127.0.0.1", port, tmp_path / "log", Settings())
    with server, pytest.raises(ModelUnavailableError, match=words) as caught:
        server.wait_until_healthy(limit)
    assert "no kernel image" in str(caught.value) or "still loading" in str(caught.value)
    assert gone(json.loads((tmp_path / "note.json").read_text())["pids"])


def test_a_port_in_use_is_noticed_before_anything_starts(loopback: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="--port"):
            need_port("127.0.0.1", taken.getsockname()[1])
