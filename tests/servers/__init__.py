"""Servers that tests talk to: real processes on loopback.

    with ScriptedServer({"answers": "tests.qa.rules:answer", "faults": {"probability": 0.2, "seed": 1}}) as server:
        monkeypatch.setenv("DOCMEMO_BASE_URL", server.base_url)
        ...
        assert server.state()["peak"] <= 8
        server.kill()       # kill -9; then server.start() again on the same port

What a script may say: tests/servers/scripted.py. A test that uses one carries `@pytest.mark.enable_socket` (or, with
the fixture `scripted_server`, nothing: the fixture opens loopback for the test).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


class ScriptedServer:
    """A scripted server process; a context manager.

    Args:
        script: what it does; see tests/servers/scripted.py.
        folder: where its script and log lie; a temporary one by default.
        python_path: further folders for modules that `answers` names.
    """

    model = "scripted"
    """The id of the model of a script without `models`."""

    def __init__(
        self, script: dict[str, Any] | None = None, folder: Path | None = None, python_path: tuple[Path, ...] = ()
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self.script = dict(script or {})
        self.python_path = python_path
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        """Address to give to a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def log(self) -> Path:
        """One line a chat request, over all starts of this server."""
        return self.folder / "requests.jsonl"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process, on the port it had before if there was one."""
        path = self.folder / "script.json"
        path.write_text(json.dumps(self.script), encoding="utf-8")
        command = [sys.executable, "-m", "tests.servers.scripted", "--port", str(self.port)]
        command += ["--script", str(path), "--log", str(self.log)]
        paths = [str(ROOT), *map(str, self.python_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the scripted server ended with status {self._process.wait()}")
        self.port = int(line)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def restart(self) -> None:
        """kill -9 and start again on the same port."""
        self.kill()
        self.start()

    def state(self) -> dict[str, Any]:
        """requests, distinct, in_flight, peak, probes (GET /v1/models) and seen of this start.

        `seen` has {number, digest, attempt, status, fault, text_tokens, image_tokens} for each chat request.
        """
        return self._control("state", None)

    def change(self, **keys: Any) -> None:
        """Merge keys into the running script; None removes one."""
        self._control("script", keys)
        self.script = {**{k: v for k, v in self.script.items() if k not in keys}, **_set(keys)}

    def reset(self, **script: Any) -> None:
        """Another script on the running server, and nothing seen so far."""
        self.log.unlink(missing_ok=True)
        self._control("reset", script)
        self.script = script

    def requests(self) -> list[dict[str, Any]]:
        """Chat requests over all starts, as in `state()["seen"]`."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def _control(self, what: str, body: dict[str, Any] | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}/control/{what}"
        with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=30) as answer:
            return dict(json.loads(answer.read()))

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()


def _set(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}
