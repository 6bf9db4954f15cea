"""A server of one's own in the foreground: started, waited for, ended with all it started."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from docmemo.errors import ConfigError, ModelUnavailableError
from docmemo.models.serve_plan import Plan
from docmemo.processes import end_group, tied
from docmemo.settings import Settings

_POLL = 0.5
_GRACE = 20.0
"""Seconds a server gets to end by itself."""
_SHOWN = 30
"""Lines of its log that an error shows."""


def _say_nothing(_: str) -> None:
    """Nobody listens."""


def need_port(host: str, port: int) -> None:
    """Make sure that a port is free.

    Raises:
        ConfigError: if something listens there, or the address is none of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be used: {error.strerror or error}.",
            remedy="Choose another with --port, or end the server that uses it.",
        ) from error


def shown(command: Sequence[str]) -> str:
    """A command as one would type it."""
    return shlex.join(command)


def environment_lines(what: Plan, base_url: str) -> list[str]:
    """Shell lines that point the plan's roles to the server."""
    if what.covers_all:
        return [f"export DOCMEMO_BASE_URL={base_url}"]
    return [f"export DOCMEMO_{role.upper()}_BASE_URL={base_url}" for role in what.roles]


class Server:
    """A server process; a context manager that ends it.

    Args:
        command: what to start.
        host, port: where it will listen.
        log_file: where its output goes.
        settings: its key is the server's too, if one is set.
        echo: told of each line of output.
    """

    def __init__(
        self,
        command: Sequence[str],
        host: str,
        port: int,
        log_file: Path,
        settings: Settings,
        echo: Callable[[str], None] = _say_nothing,
    ) -> None:
        self.command = list(command)
        reached = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        self._root = f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"
        self.base_url = f"{self._root}/v1"
        self.log_file = log_file
        self._key = settings.api_key.get_secret_value()
        self._echo = echo
        self._last: deque[str] = deque(maxlen=_SHOWN)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Server:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
        if self._key:
            environment |= {"VLLM_API_KEY": self._key, "DOCMEMO_SERVED_API_KEY": self._key}
        self._process = subprocess.Popen(
            tied(self.command, signal.SIGTERM),  # at SIGTERM vLLM ends its engine too
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, name="server-log", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and what it started."""
        if self._process is not None:
            end_group(self._process, _GRACE if self._process.poll() is None else 0.0)
        if self._reader is not None:
            self._reader.join(5.0)

    @property
    def pid(self) -> int:
        """Of the server's main process."""
        assert self._process is not None
        return self._process.pid

    def wait_until_healthy(self, limit: float, tell: Callable[[str], None] = _say_nothing) -> float:
        """Wait until it answers.

        Args:
            limit: seconds it may take.
            tell: told of its last line of output, twice a second.

        Returns:
            Seconds it took.

        Raises:
            ModelUnavailableError: if it ended or did not get ready in time; shows the end of its log.
        """
        assert self._process is not None
        start = time.monotonic()
        while not self._healthy():
            code = self._process.poll()
            waited = time.monotonic() - start
            if code is not None:
                raise self._failed(f"The server ended with status {code} before it was ready.")
            if waited > limit:
                raise self._failed(f"The server was not ready after {limit:g} s (--timeout).")
            tell(self._last[-1] if self._last else "")
            time.sleep(_POLL)
        return time.monotonic() - start

    def wait(self) -> None:
        """Wait while it serves.

        Raises:
            ModelUnavailableError: if it ends by itself.
        """
        assert self._process is not None
        code = self._process.wait()
        raise self._failed(f"The server ended with status {code}.")

    def _failed(self, message: str) -> ModelUnavailableError:
        assert self._process is not None
        self.stop()  # also what a dead server left running, which holds its log open
        tail = "\n".join(f"  {line}" for line in self._last)
        return ModelUnavailableError(
            f"{message} The end of its log:\n{tail}\n", remedy=f"The whole log is in {self.log_file}."
        )

    def _healthy(self) -> bool:
        """Whether it lists its models; /health alone is answered by some servers while they still load."""
        request = urllib.request.Request(f"{self.base_url}/models", headers={"Authorization": f"Bearer {self._key}"})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return bool(json.load(answer).get("data"))
        except (OSError, ValueError, AttributeError):
            return False

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log_file.open("wb") as log:
            for raw in self._process.stdout:
                log.write(raw)
                log.flush()
                line = raw.decode("utf-8", "replace").rstrip()
                if line:
                    self._last.append(line)
                    self._echo(line)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is inside as Ctrl-C does, so that children are ended too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
