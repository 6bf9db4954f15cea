"""`docmemo models lock` and `dvc repro` in another checkout, as programs, so that its own code does the work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmemo.errors import DocMemoError
from docmemo.evaluation.compare_checks import flatten
from docmemo.models.lock import LOCK_NAME

_RUNNING = re.compile(r"^Running stage '([^']+)'", re.MULTILINE)
_INCOMPLETE = re.compile(r"exited with 3\b")
_ABSENT = ("deleted", "not in cache")
_LAST_LINES = 15
_NOT_INHERITED = ("PREFECT_LOGGING_LEVEL", "PREFECT_LOGGING_TO_API_ENABLED", "PYTHONPATH")
"""Questions are answered quietly; and the other checkout finds its own code."""


class ReproductionError(DocMemoError):
    """A program that re-evaluation needs ended with an error."""


class IncompleteError(DocMemoError):
    """Some questions failed in a way that trying again may cure: the results are not complete."""

    retryable = True
    exit_code = 75


class UnresolvedError(DocMemoError):
    """A model cannot be asked what it is."""

    retryable = True
    exit_code = 75


_RESOLVE = f"""
import sys
from pathlib import Path
from docmemo.config import load_params
from docmemo.errors import DocMemoError, ModelError, ModelLockError
from docmemo.models.lock import resolve_lock, write_lock
try:
    write_lock(resolve_lock(load_params(Path("params.yaml"))))
except DocMemoError as error:
    print(error, file=sys.stderr)
    sys.exit({UnresolvedError.exit_code} if isinstance(error, ModelLockError | ModelError) else error.exit_code)
"""
"""`docmemo models lock`, telling models that are not there now from wrong parameters."""


@dataclass(frozen=True)
class Reproduced:
    """What `dvc repro` did."""

    stages: list[str]
    """Stages that really ran, in order."""


def environment(api_url: str) -> dict[str, str]:
    """The variables for programs of the other checkout: this Python, this Prefect server, no flow run of ours."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PREFECT__")
        and name not in ("PREFECT_LOGGING_LEVEL", "PREFECT_LOGGING_TO_API_ENABLED")
    }
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    if api_url:
        kept["PREFECT_API_URL"] = api_url
    return kept


def resolve_models(project: Path, api_url: str = "") -> list[str]:
    """Write the lock of what would run now; returns one line a role that changed.

    Raises:
        UnresolvedError: if a model's server cannot be asked or a model is not installed; it may be there later.
        ReproductionError: if the parameters are wrong.
    """
    before = _lock(project)
    done = subprocess.run(
        [sys.executable, "-c", _RESOLVE],
        cwd=project,
        env=environment(api_url),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        kind = UnresolvedError if done.returncode == UnresolvedError.exit_code else ReproductionError
        raise kind(f"The models cannot be resolved: {_tail(done.stderr)}")
    after = _lock(project)
    return [
        f"{role}: {_changed(before.get(role), after.get(role))}"
        for role in sorted({*before, *after})
        if before.get(role) != after.get(role)
    ]


def _lock(project: Path) -> dict[str, dict[str, object]]:
    try:
        value = json.loads((project / LOCK_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _changed(before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> str:
    """What differs between two entries of a role, field by field."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    old, new = (flatten({k: v for k, v in entry.items() if k != "files"}) for entry in (before, after))
    fields = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {_short(old.get(key))} → {_short(new.get(key))}" for key in fields) or "other files"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 48 else f"{text[:47]}…"


def stale_stages(project: Path, api_url: str = "") -> list[str]:
    """Stages whose inputs, parameters, models or results changed; stages after them will run too.

    A fresh checkout holds none of the data that stages make, so data that is only absent counts as unchanged.

    Raises:
        ReproductionError: if DVC cannot say.
    """
    done = subprocess.run(
        ["dvc", "status", "--json"],
        cwd=project,
        env=environment(api_url),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        status = json.loads(done.stdout)
    except ValueError:
        raise ReproductionError(f"`dvc status` failed: {_tail(done.stdout + done.stderr)}") from None
    made = {path for changes in status.values() for path in _entries(changes, "changed outs")}
    return [stage for stage, changes in status.items() if _is_stale(changes, made)]


def _entries(changes: Sequence[Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, dict):
            found |= change.get(kind, {})
    return found


def _is_stale(changes: Sequence[Any], made: set[str]) -> bool:
    """Whether a stage's entry in `dvc status --json` says more than that results of stages are absent."""
    if any(isinstance(change, str) for change in changes):  # "changed command", "always changed"
        return True
    if any(what not in _ABSENT for what in _entries(changes, "changed outs").values()):
        return True
    return any(
        not (isinstance(what, str) and what in _ABSENT)
        or not any(path == out or path.startswith(f"{out}/") for out in made)
        for path, what in _entries(changes, "changed deps").items()
    )


def reproduce(project: Path, log: Path, started: Callable[[int], None], api_url: str = "") -> Reproduced:
    """`dvc repro`: everything that depends on what changed, and nothing else.

    Args:
        project: the checkout.
        log: file for its output.
        started: is told the pid of the process.

    Raises:
        IncompleteError: if `answer` or `judge` ended with retryable failures; what is finished is kept.
        ReproductionError: if it failed otherwise.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            ["dvc", "repro"], cwd=project, env=environment(api_url), stdout=output, stderr=subprocess.STDOUT
        )
        started(process.pid)
        try:
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    if status == 0:
        return Reproduced(_RUNNING.findall(text))
    if _INCOMPLETE.search(text):
        raise IncompleteError(
            f"Some questions could not be answered or judged now: {_tail(text)}",
            remedy="What is finished is kept; the next run asks only the rest.",
        )
    raise ReproductionError(
        f"`dvc repro` ended with {status}: {_tail(text)}", remedy=f"Its whole output is in {log}."
    )


def _tail(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])
