"""Worker processes for the parsers that can crash or hang: time limits, deaths contained, innocent pages kept.

Workers are spawned, never forked, and do not re-import the parent's `__main__` (which may have loaded Prefect
or DVC). They start at the first task, ignore SIGINT (the parent decides) and die with the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from pebble import ProcessExpired, ProcessPool

from docmemo.errors import DocumentError, PageTimeoutError, WorkerDiedError

R = TypeVar("R")

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_PR_SET_PDEATHSIG = 1
_RESTARTS = 3
"""How often a task is handed in again when the pool itself broke (not the task's own worker)."""


@dataclass(frozen=True)
class PageFailure:
    """Why a page has no result."""

    reason: str
    retryable: bool
    """True for a time limit, a worker's death or a full disk: the page itself may be fine."""


def describe(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- what runs in a worker ------------------------------------------------------------------------------------


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _init_worker(parent: int) -> None:
    for name in _THREADS:
        os.environ[name] = "1"
    os.environ["DOCMEMO_WORKER"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # pebble's own handler needs the interpreter, which a hanging C call never gives back
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _nothing() -> None:
    """Makes pebble start its workers."""


def _guarded(fn: Callable[..., Mapping[int, R | PageFailure]], shared: tuple[Any, ...], page: int) -> R | PageFailure:
    """One page's result; everything a page can raise becomes its failure, a broken document is raised."""
    try:
        return fn(*shared, [page])[page]
    except DocumentError:
        raise
    except (OSError, MemoryError) as error:
        return PageFailure(describe(error), retryable=True)
    except Exception as error:  # noqa: BLE001 - whatever a parser raises is recorded as this page's failure
        return PageFailure(describe(error), retryable=False)


def _run_chunk(
    fn: Callable[..., Mapping[int, R | PageFailure]],
    shared: tuple[Any, ...],
    pages: Sequence[int],
    beat: str,
    budget: float,
) -> dict[int, R | PageFailure]:
    """Pages one after another until `budget` seconds are spent; the file `beat` names the page being worked on."""
    results: dict[int, R | PageFailure] = {}
    start = time.monotonic()
    for page in pages:
        if results and time.monotonic() - start > budget:
            break
        with contextlib.suppress(OSError):  # without it the first page gets the blame
            Path(beat).write_text(str(page), encoding="ascii")
        results[page] = _guarded(fn, shared, page)
    return results


# --- spawning without the parent's __main__ -------------------------------------------------------------------

_main_lock = threading.Lock()


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hide `__main__` while a worker starts, or spawn would import it again in the worker."""
    with _main_lock:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        with _no_main():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    Process = _Process


class _Keeper(threading.Thread):
    """The thread that starts the workers and lives as long as they do.

    PR_SET_PDEATHSIG fires when the *thread* that started a process ends, and the first task often comes from
    a short-lived thread.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(name="docmemo-workers", daemon=True)
        self.pool = ProcessPool(
            max_workers=workers,
            initializer=_init_worker,
            initargs=(os.getpid(),),
            context=cast(Any, _Context()),
        )
        self._ready = threading.Event()
        self._end = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self.pool.schedule(_nothing)
        except (RuntimeError, OSError) as error:
            self._error = error
        self._ready.set()
        self._end.wait()

    def begin(self) -> None:
        self.start()
        self._ready.wait()
        if self._error is not None:
            raise WorkerDiedError(f"Worker processes could not be started: {describe(self._error)}.")

    def finish(self) -> None:
        self.pool.stop()  # type: ignore[no-untyped-call]
        self.pool.join()
        self._end.set()


class Closable(Protocol):
    """Anything with processes of its own."""

    def close(self) -> None:
        """End them at once."""


@dataclass
class _Chunk:
    pages: list[int]
    beat: Path
    restarts: int = 0


class WorkPool:
    """A pool of worker processes; a context manager. Safe to use from several threads at once.

    Functions handed in are importable top-level functions of modules that are cheap to import.

    Args:
        workers: processes; 0 runs everything in this process without time limits (tests, tiny jobs).
        page_timeout: seconds one page may take before its worker is stopped.
    """

    def __init__(self, workers: int, page_timeout: float) -> None:
        self.workers = workers
        self.page_timeout = page_timeout
        self._lock = threading.Lock()
        self._keeper: _Keeper | None = None
        self._closed = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._beats = 0
        self._attached: list[Closable] = []

    def __enter__(self) -> WorkPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers at once, whatever they do."""
        with self._lock:
            self._closed = True
            keeper, self._keeper = self._keeper, None
            folder, self._folder = self._folder, None
            attached, self._attached = self._attached, []
        for other in attached:
            other.close()
        if keeper is not None:
            keeper.finish()
        if folder is not None:
            folder.cleanup()

    def attach(self, other: Closable) -> None:
        """Close `other` when this pool is closed: an interrupted step closes its pool, whatever else it waits for."""
        with self._lock:
            if not any(other is known for known in self._attached):
                self._attached.append(other)

    def map_pages(
        self,
        fn: Callable[..., Mapping[int, R | PageFailure]],
        shared: tuple[Any, ...],
        pages: Sequence[int],
        chunk: int = 8,
    ) -> dict[int, R | PageFailure]:
        """`fn(*shared, [page])` for each page, in workers, `chunk` pages a task; `fn` returns {page: result}.

        A page that raises becomes a PageFailure that is not worth a retry. A page that hangs costs about one
        `page_timeout`; it, and a page that kills its worker twice, becomes a retryable PageFailure. The other
        pages of its task are done again elsewhere.

        Raises:
            DocumentError: if `fn` raises one, since that concerns all pages.
            WorkerDiedError: if no worker can be kept alive at all.
        """
        if self.workers == 0:
            return {page: _guarded(fn, shared, page) for page in pages}
        results: dict[int, R | PageFailure] = {}
        running: dict[Future[Any], _Chunk] = {}
        try:
            for start in range(0, len(pages), chunk):
                self._start(running, fn, shared, self._chunk(list(pages[start : start + chunk])))
            while running:
                done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                if self._closed:
                    raise WorkerDiedError("The worker pool was closed while pages were being processed.")
                for future in done:
                    task = running.pop(future)
                    for rest in self._settle(future, task, results):
                        self._start(running, fn, shared, rest)
        finally:
            for future in running:
                future.cancel()
        return {page: results[page] for page in pages}

    def call(self, fn: Callable[..., R], *args: Any, timeout: float | None = None) -> R:
        """`fn(*args)` in a worker.

        Raises:
            PageTimeoutError: if it took longer than `timeout` seconds.
            WorkerDiedError: if the worker ended.
            Exception: whatever `fn` raised.
        """
        if self.workers == 0:
            return fn(*args)
        for _ in range(_RESTARTS):
            future = self._schedule(fn, args, timeout)
            while not wait([future], timeout=1.0).done:
                if self._closed:  # pebble leaves the futures of workers it stopped as they are
                    raise WorkerDiedError("The worker pool was closed while it worked.")
            try:
                return cast(R, future.result())
            except ProcessExpired as error:
                raise WorkerDiedError(self._death(error), remedy="Run it again.") from error
            except (BrokenProcessPool, CancelledError):
                if self._closed:
                    break
                continue
            except TimeoutError as error:
                if not _is_limit(error):
                    raise
                raise PageTimeoutError(
                    f"It took longer than {timeout:g} s.", remedy="Raise DOCMEMO_PAGE_TIMEOUT."
                ) from error
        raise WorkerDiedError("Worker processes keep dying.", remedy="Look at free memory, or set DOCMEMO_WORKERS=1.")

    # --- inside ---------------------------------------------------------------------------------------------------

    def _chunk(self, pages: list[int]) -> _Chunk:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="docmemo-pool-")
            self._beats += 1
            return _Chunk(pages, Path(self._folder.name) / str(self._beats))

    def _running_pool(self, broken: ProcessPool | None = None) -> ProcessPool:
        """The pool, started if need be; another one if it is `broken`."""
        with self._lock:
            if self._closed:
                raise WorkerDiedError("The worker pool is closed.")
            if self._keeper is not None and self._keeper.pool is broken:
                self._keeper.finish()
                self._keeper = None
            if self._keeper is None:
                keeper = _Keeper(self.workers)
                keeper.begin()
                self._keeper = keeper
            return self._keeper.pool

    def _schedule(self, fn: Callable[..., Any], args: tuple[Any, ...], timeout: float | None) -> Future[Any]:
        broken = None
        for _ in range(_RESTARTS):
            pool = self._running_pool(broken)
            try:
                return pool.schedule(fn, args=args, timeout=timeout)
            except RuntimeError:  # pebble's word for a pool that broke
                broken = pool
        raise WorkerDiedError("Worker processes keep dying.", remedy="Look at free memory, or set DOCMEMO_WORKERS=1.")

    def _start(
        self, running: dict[Future[Any], _Chunk], fn: Callable[..., Any], shared: tuple[Any, ...], task: _Chunk
    ) -> None:
        budget = min(self.page_timeout / 4, 10.0)
        limit = self.page_timeout + (budget if len(task.pages) > 1 else 0.0)
        args = (fn, shared, task.pages, str(task.beat), budget)
        running[self._schedule(_run_chunk, args, limit)] = task

    def _settle(self, future: Future[Any], task: _Chunk, results: dict[int, R | PageFailure]) -> Iterator[_Chunk]:
        """Take one finished task's results; yield what has to be done (again)."""
        try:
            done = future.result()
        except TimeoutError as error:
            if not _is_limit(error):
                raise
            page = self._blamed(task)
            results[page] = PageFailure(f"took longer than {self.page_timeout:g} s", retryable=True)
            rest = [p for p in task.pages if p != page]
        except ProcessExpired as error:
            page = self._blamed(task)
            if len(task.pages) == 1:
                results[page] = PageFailure(self._death(error), retryable=True)
                return
            yield self._chunk([page])
            rest = [p for p in task.pages if p != page]
        except (BrokenProcessPool, CancelledError) as error:
            if task.restarts >= _RESTARTS:
                raise WorkerDiedError(
                    f"Worker processes keep dying: {describe(error)}.", remedy="Look at memory."
                ) from error
            task.restarts += 1
            yield task
            return
        else:
            results.update(done)
            rest = [p for p in task.pages if p not in done]
        finally:
            with contextlib.suppress(OSError):
                task.beat.unlink()
        if rest:
            yield self._chunk(rest)

    @staticmethod
    def _blamed(task: _Chunk) -> int:
        try:
            page = int(task.beat.read_text(encoding="ascii"))
        except (OSError, ValueError):
            page = task.pages[0]
        return page if page in task.pages else task.pages[0]

    @staticmethod
    def _death(error: ProcessExpired) -> str:
        code = error.exitcode
        try:
            how = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
        except ValueError:
            how = f"exit status {code}"
        return f"the worker process died ({how})"


def _is_limit(error: TimeoutError) -> bool:
    """Whether pebble's time limit raised this, and not the function itself (an OSError can be a TimeoutError)."""
    return bool(error.args) and error.args[0] == "Task timeout"
