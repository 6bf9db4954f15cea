"""A Prefect server with its UI on this machine, for as long as someone needs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from docmemo.errors import DocMemoError

PORT = 4200
_PATIENCE = 180.0
"""Seconds a server may take to start: half a minute on a busy machine is usual."""


class ServerStartError(DocMemoError):
    """The Prefect server did not come up."""


def is_up(api_url: str) -> bool:
    """Whether a Prefect API answers at this address."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


@contextlib.contextmanager
def local_server(log: Path, port: int = PORT) -> Iterator[tuple[str, bool]]:
    """(address of a Prefect API, whether it was started here). One started here ends with the block.

    PREFECT_API_URL comes first, then a server that already runs at `port`, else one is started there, with its
    database in PREFECT_HOME.

    Raises:
        ServerStartError: if it does not come up.
    """
    given = os.environ.get("PREFECT_API_URL", "")
    url = given or f"http://127.0.0.1:{port}/api"
    if given or is_up(url):
        yield url, False
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w", encoding="utf-8") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + _PATIENCE
            while not is_up(url):
                if server.poll() is not None or time.monotonic() > end:
                    raise ServerStartError(
                        "The Prefect server did not start.", remedy=f"Its output is in {log}; --port chooses another."
                    )
                time.sleep(0.3)
            yield url, True
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(15)
            server.kill()
            server.wait()
