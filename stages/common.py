"""What every stage's main shares: one process an output, no orphans, errors a person can act on."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from docmemo.artifacts import read_jsonl, write_atomic
from docmemo.config import Params, load_params
from docmemo.errors import BusyError, ConfigError, DocMemoError
from docmemo.fingerprint import canonical_json, digest
from docmemo.settings import Settings, load_settings
from docmemo.types import Document, Question

CORPUS = Path("data/corpus")
FOLDERS: Mapping[str, Path] = {
    "render": Path("data/pages"),
    "layout": Path("data/layout"),
    "embed": Path("data/embeddings"),
    "summarize": Path("data/summaries"),
    "schema": Path("data/schema"),
}
TIMINGS = Path("data/timings")
"""Seconds by stage: not an out, since it differs between equal runs."""

log = logging.getLogger("docmemo")


@dataclass(frozen=True)
class StageContext:
    """What a stage's function gets."""

    params: Params
    settings: Settings
    console: Console

    def progress(self, description: str, total: int) -> tuple[Progress, Callable[[], None]]:
        """A progress bar on stderr and the function that advances it."""
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        task = bar.add_task(description, total=total)
        return bar, lambda: bar.advance(task)


def die_with_parent() -> None:
    """End this process when the one that started it (dvc) ends, even by kill -9; else it would go on alone."""
    parent = os.getppid()
    if platform.system() == "Linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(143)
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()


def hold(out: Path, settings: Settings, patience: float = 15.0) -> FileLock:
    """Lock an output for this process; the lock goes with the process however it ends.

    Raises:
        BusyError: if another process still holds it after `patience` seconds.
    """
    try:
        settings.lock_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{settings.home} cannot be written: {error}.", remedy="Set DOCMEMO_HOME to a folder of yours."
        ) from error
    lock = FileLock(settings.lock_dir / f"{digest(str(out.absolute()))[:32]}.lock")
    try:
        lock.acquire(timeout=patience)
    except Timeout as error:
        raise BusyError(
            f"Another process is writing {out}.", remedy="Wait until it is done, or stop it, and run again."
        ) from error
    return lock


def stage_main(name: str, outs: Sequence[Path], run: Callable[[StageContext], None]) -> None:
    """Run a stage as a program: exits 0, or with the error's status after one clear message."""
    die_with_parent()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore", "httpx2", "httpcore2", "rapidocr", "RapidOCR", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        settings = load_settings()
        locks = [hold(out, settings) for out in outs]
        run(StageContext(load_params(), settings, console))
        del locks
    except DocMemoError as error:
        console.print(f"[bold red]error[/] ({name}): ", end="")
        console.print(str(error), markup=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        console.print(f"{name}: interrupted; finished work is kept.")
        sys.stderr.flush()
        os._exit(130)


def read_documents() -> list[Document]:
    """The manifest of the ingest stage."""
    return list(read_jsonl(CORPUS / "documents.jsonl", Document))


def read_questions() -> list[Question]:
    """The questions of the ingest stage."""
    return list(read_jsonl(CORPUS / "questions.jsonl", Question))


def write_timings(stage: str, seconds: Mapping[str, float]) -> None:
    """Record wall seconds by document or question id."""
    write_atomic(TIMINGS / f"{stage}.json", canonical_json(dict(seconds)).encode())


def read_timings(stage: str) -> dict[str, float]:
    """The seconds of a stage; empty when unknown (a checkout that has not run it)."""
    try:
        values = json.loads((TIMINGS / f"{stage}.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): float(value) for key, value in values.items()}
