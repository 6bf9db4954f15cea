"""Prefect as this project runs it: quiet, private to the project, and leaving nothing behind.

`configure` must run before anything imports prefect. Without PREFECT_API_URL Prefect starts a server of its own for
the run; if the run is killed, that server would stay, so its pid and start time are written down and the next run
ends exactly that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import psutil

from docmemo.artifacts import write_atomic
from docmemo.settings import Settings

_DEFAULTS = {
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_CLI_WRAP_LINES": "false",
}


def configure(settings: Settings) -> None:
    """Set Prefect's environment where the user has not; ends a server that a killed run left."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    home = (settings.state / "prefect").absolute()
    home.mkdir(parents=True, exist_ok=True)  # its server never comes up when the folder above is missing
    os.environ.setdefault("PREFECT_HOME", str(home))
    end_orphans(settings)


def _record(settings: Settings) -> Path:
    return settings.state.absolute() / "prefect-servers.json"


def _servers() -> list[psutil.Process]:
    """Prefect servers among this process's children."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("prefect.server" in part for part in child.cmdline()):
                found.append(child)
    return found


def note_servers(settings: Settings) -> None:
    """Write down the servers this run started."""
    me = psutil.Process()
    owner = {"owner": me.pid, "owner_started": me.create_time()}
    servers = [{"pid": p.pid, "started": p.create_time(), **owner} for p in _servers()]
    write_atomic(_record(settings), json.dumps(servers).encode())


def _end(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.Error):
        process.terminate()
        process.wait(3)
    with contextlib.suppress(psutil.Error):
        process.kill()


def _alive(pid: int | None, started: float | None) -> bool:
    """Whether the process that had this pid at that time still runs."""
    if pid is None or started is None:
        return False
    try:
        return abs(psutil.Process(pid).create_time() - started) < 0.01
    except psutil.Error:
        return False


def end_orphans(settings: Settings) -> None:
    """End the servers a killed run left: only those written down whose run is no longer alive."""
    try:
        recorded = json.loads(_record(settings).read_bytes())
    except (OSError, ValueError):
        return
    if any(_alive(item.get("owner"), item.get("owner_started")) for item in recorded):
        return
    for item in recorded:
        with contextlib.suppress(psutil.Error):
            if _alive(item["pid"], item["started"]):
                _end(psutil.Process(item["pid"]))
    _record(settings).unlink(missing_ok=True)


@contextlib.contextmanager
def prompt_exit(settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    """While inside, Ctrl-C and a termination end the process at once: everything finished is in the journal.

    Prefect's own shutdown takes a minute or more with tasks under way.
    """
    note_servers(settings)

    def leave(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        say("interrupted; finished work is kept, the next run asks only the rest.")
        for server in _servers():
            with contextlib.suppress(psutil.Error):
                server.kill()
        _record(settings).unlink(missing_ok=True)
        sys.stderr.flush()
        os._exit(128 + number)

    previous = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _record(settings).unlink(missing_ok=True)
