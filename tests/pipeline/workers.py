"""Functions that tests run in worker processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def square(pages: list[int]) -> dict[int, int]:
    """Every page is fine."""
    return {p: p * p for p in pages}


def misbehave(bad: dict[int, str], pages: list[int]) -> dict[int, int]:
    """Pages named in `bad` hang, die, exit or raise."""
    results = {}
    for page in pages:
        match bad.get(page):
            case "hang":
                time.sleep(600)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(3)
            case "exit 0":
                os._exit(0)
            case "raise":
                raise ValueError("this page is odd")
            case "disk":
                raise OSError(28, "No space left on device")
            case "own timeout":
                raise TimeoutError("my own")
        results[page] = page * page
    return results


def slow(seconds: float, pages: list[int]) -> dict[int, int]:
    """Each page takes a while."""
    time.sleep(seconds)
    return {p: p for p in pages}


def die_once(flag: str, pages: list[int]) -> dict[int, int]:
    """Page 1 kills its worker the first time only."""
    if 1 in pages and not Path(flag).exists():
        Path(flag).touch()
        os._exit(9)
    return {p: p for p in pages}


def surroundings() -> dict[str, object]:
    """What a worker looks like from inside."""
    return {
        "pid": os.getpid(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "sigint_ignored": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        "main": "__mp_main__" in sys.modules and hasattr(sys.modules["__mp_main__"], "__file__"),
        "modules": sorted(m for m in ("prefect", "dvc", "pytest", "numpy", "pymupdf") if m in sys.modules),
    }


def unreadable(pages: list[int]) -> dict[int, int]:
    """The document is bad, not the page."""
    from docmemo.errors import UnreadableDocumentError

    raise UnreadableDocumentError("nope", remedy="Repair it.")


def sleep_for(seconds: float) -> str:
    """For `call`."""
    time.sleep(seconds)
    return "awake"


def leave(code: int) -> None:
    """For `call`."""
    os._exit(code)
