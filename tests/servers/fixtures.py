"""Fixtures of the servers; tests/conftest.py makes them known everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_socket

from tests.servers import ScriptedServer

StartServer = Callable[..., ScriptedServer]
"""`scripted_server(answers="module:function", faults={...}, ...)`: keys of a script."""


@pytest.fixture
def scripted_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartServer]:
    """Starts scripted servers; the first becomes DOCMEMO_BASE_URL. Opens loopback, and nothing else, for the test."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    running: list[ScriptedServer] = []

    def start(**script: Any) -> ScriptedServer:
        folder = tmp_path / f"server-{len(running)}"
        folder.mkdir()
        server = ScriptedServer(script, folder)
        server.start()
        running.append(server)
        if len(running) == 1:
            monkeypatch.setenv("DOCMEMO_BASE_URL", server.base_url)
        return server

    yield start
    for server in running:
        server.kill()
    pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture(scope="session")
def _one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    folder = tmp_path_factory.mktemp("scripted")
    server = ScriptedServer({}, folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def server(_one_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """One scripted server for all tests, with an empty script at the start of each; it is DOCMEMO_BASE_URL.

    `server.reset(faults_at={"1": "500"})` gives it a script. Waits between tries are short.
    """
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    _one_server.reset()
    monkeypatch.setenv("DOCMEMO_BASE_URL", _one_server.base_url)
    monkeypatch.setenv("DOCMEMO_RETRY_WAIT", "0.01")
    yield _one_server
    pytest_socket.disable_socket(allow_unix_socket=True)
