"""Child processes that do not outlive what started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

_LAUNCH = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux': ctypes.CDLL(None).prctl(1, int(sys.argv[1]))\n"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


def tied(command: Sequence[str], with_signal: int = signal.SIGKILL) -> list[str]:
    """A command that gets `with_signal` when the thread that starts it ends, even by kill -9 (on Linux)."""
    return [sys.executable, "-c", _LAUNCH, str(int(with_signal)), *command]


def end_group(process: subprocess.Popen[bytes], patience: float = 0.0) -> None:
    """End a process that was started with `start_new_session=True`, and all it started.

    Args:
        process: the leader of the session; may have ended already.
        patience: seconds it is given to end by itself after SIGTERM; 0 kills at once.
    """
    steps: list[tuple[int, float]] = [(signal.SIGTERM, patience)] if patience > 0 else []
    for number, wait in (*steps, (signal.SIGKILL, 10.0)):
        with contextlib.suppress(OSError):  # gone already
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
            if number != signal.SIGKILL:
                continue  # its own children may still be there
