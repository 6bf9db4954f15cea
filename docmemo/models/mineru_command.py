"""The MinerU that would run: a command in an environment of its own, since it needs an older `openai` than DocMemo.

python3 -m venv .venv-mineru
.venv-mineru/bin/pip install mineru==4.0.12 docvortex==0.6.4
export DOCMEMO_MINERU=.venv-mineru/bin/mineru-kit
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from docmemo.errors import ModelLockError

VERSION = "4.0.12"
"""The release whose output docmemo/documents/mineru_output.py reads; its fields have changed between releases."""
DOCVORTEX = "0.6.4"
"""The parser that does the work of tier `flash`. MinerU takes any 0.x, so it is pinned beside it."""
INSTALL = (
    f"Give it an environment of its own: `python3 -m venv .venv-mineru && .venv-mineru/bin/pip install "
    f"mineru=={VERSION} docvortex=={DOCVORTEX}`, then set DOCMEMO_MINERU=.venv-mineru/bin/mineru-kit."
)

_PROBE = (
    "from importlib.metadata import version as v; print('mineru', v('mineru')); print('docvortex', v('docvortex'))"
)
_PATIENCE = 60.0


@dataclass(frozen=True)
class MinerU:
    """An installed MinerU of the version wanted."""

    path: Path
    """The command `mineru-kit`."""
    packages: str
    """Distributions and versions, e.g. "mineru 4.0.12, docvortex 0.6.4"."""


def find_mineru(command: str) -> MinerU:
    """The MinerU that a command starts; MinerU itself is not imported.

    Args:
        command: a name on PATH or a path; `Settings.mineru`.

    Raises:
        ModelLockError: if it is not there, does not start, or is another version.
    """
    found = shutil.which(command)
    if found is None:
        raise ModelLockError(f"MinerU is not installed: there is no command {command!r}.", remedy=INSTALL)
    path = Path(found).absolute()
    versions = _versions(path, path.stat().st_mtime_ns)
    if versions.get("mineru") != VERSION:
        raise ModelLockError(
            f"{command} is MinerU {versions.get('mineru', '(unknown)')}; DocMemo reads the output of {VERSION}.",
            remedy=INSTALL,
        )
    return MinerU(path, ", ".join(f"{name} {version}" for name, version in versions.items()))


@lru_cache(maxsize=8)
def _versions(path: Path, modified_ns: int) -> dict[str, str]:
    """Versions by distribution, from the metadata beside the command's Python, else from the command itself.

    Raises:
        ModelLockError: if the command does not start.
    """
    del modified_ns  # part of the cache key only: an environment installed anew is asked again
    for python in (path.parent / "python", path.resolve().parent / "python", path.parent / "python.exe"):
        if python.exists():
            done = _output([str(python), "-c", _PROBE])
            if done is not None:
                return dict(line.split(maxsplit=1) for line in done.splitlines())
    text = _output([str(path), "--version"])
    if text is None:
        raise ModelLockError(f"{path} does not start.", remedy=INSTALL)
    match = re.search(r"MinerU version:\s*(\S+)", text)
    return {"mineru": match[1]} if match else {}


def _output(command: list[str]) -> str | None:
    """What a command prints; None if it fails or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
