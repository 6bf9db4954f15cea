"""Asynchronous model calls from synchronous code: one event loop on a thread of its own.

    model = open_model("summarizer", params.summarize.model, entry=lock["summarizer"])
    summaries = run_blocking(gather_pages(model, pages))

Many requests at once belong into one coroutine (asyncio.gather), since a step waits here for the whole of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0


def _running_loop() -> asyncio.AbstractEventLoop:
    """The background loop; a new one in a forked process, where the thread does not exist."""
    global _loop, _owner
    with _lock:
        if _loop is None or _owner != os.getpid() or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            _owner = os.getpid()
            threading.Thread(target=_loop.run_forever, name="docmemo-models", daemon=True).start()
        return _loop


def run_blocking(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on the background loop and wait for it.

    Ctrl-C cancels it and is raised here. Must not be called from a coroutine of the background loop.

    Raises:
        whatever the coroutine raises.
    """
    loop = _running_loop()
    if threading.current_thread().name == "docmemo-models":
        coroutine.close()
        raise RuntimeError("run_blocking inside the background loop would wait for itself; use await")
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
