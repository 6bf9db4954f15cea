"""The content-addressed store of finished work.

It lies outside DVC's outs, which DVC deletes before a stage runs: a stage takes from here what is still valid and
computes the rest. An entry is a data file and a sidecar that names its sha256; an entry that does not match is
treated as absent, so a damaged store costs time and never a wrong result.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docmemo.artifacts import write_atomic
from docmemo.fingerprint import canonical_json

_FICLONE = 0x40049409


@dataclass(frozen=True)
class Entry:
    """What the store knows about one artifact."""

    key: str
    sha256: str
    size: int
    seconds: float
    """Wall seconds the computation took when it was done; 0 when unknown."""
    failures: dict[str, str]
    """Page (as text) to the reason why it is missing from the artifact."""
    usage: dict[str, Any] | None = None
    """What models cost (the fields of Usage); None where none was asked."""


def _clone(source: Path, target: Path) -> bool:
    """Share blocks with `source` where the file system can (btrfs, xfs); False where it cannot."""
    try:
        import fcntl

        with source.open("rb") as src, target.open("wb") as dst:
            fcntl.ioctl(dst.fileno(), _FICLONE, src.fileno())
    except (ImportError, OSError):
        return False
    return True


def copy_file(source: Path, target: Path) -> str:
    """Copy and return the sha256 of what was copied. Never a hard link: an edit of one must not reach the other."""
    digest = hashlib.sha256()
    cloned = _clone(source, target)
    with source.open("rb") as src, contextlib.ExitStack() as stack:
        dst = None if cloned else stack.enter_context(target.open("wb"))
        while block := src.read(1 << 20):
            digest.update(block)
            if dst is not None:
                dst.write(block)
    return digest.hexdigest()


class Store:
    """Artifacts by (kind, key). Safe for several processes: entries appear whole or not at all."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _paths(self, kind: str, key: str) -> tuple[Path, Path]:
        base = self.root / kind / key[:2]
        return base / f"{key}.data", base / f"{key}.json"

    def has(self, kind: str, key: str) -> bool:
        """Whether an entry is there (its content is verified when it is fetched)."""
        return self._paths(kind, key)[1].exists()

    def fetch(self, kind: str, key: str, target: Path) -> Entry | None:
        """Copy an entry to `target` (replacing it at once) and describe it; None when absent or damaged."""
        data, sidecar = self._paths(kind, key)
        try:
            entry = Entry(**json.loads(sidecar.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            if copy_file(data, temporary) != entry.sha256:
                self.discard(kind, key)
                return None
            temporary.replace(target)
        except FileNotFoundError:
            return None
        finally:
            temporary.unlink(missing_ok=True)
        return entry

    def add(
        self,
        kind: str,
        key: str,
        source: Path,
        *,
        seconds: float = 0.0,
        failures: dict[str, str] | None = None,
        usage: dict[str, Any] | None = None,
    ) -> Entry:
        """Copy `source` into the store under `key`."""
        data, sidecar = self._paths(kind, key)
        data.parent.mkdir(parents=True, exist_ok=True)
        temporary = data.with_name(f".{data.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
        try:
            sha256 = copy_file(source, temporary)
            size = temporary.stat().st_size
            temporary.replace(data)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                error.add_note(f"The store at {self.root} is on a full disk (DOCMEMO_HOME moves it).")
            raise
        finally:
            temporary.unlink(missing_ok=True)
        entry = Entry(key, sha256, size, round(seconds, 3), failures or {}, usage)
        known = {name: value for name, value in asdict(entry).items() if value is not None}
        write_atomic(sidecar, canonical_json(known).encode())
        return entry

    def discard(self, kind: str, key: str) -> None:
        """Forget an entry."""
        for path in self._paths(kind, key):
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A temporary folder on the store's file system, removed afterwards."""
        base = self.root / "tmp"
        base.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=base))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def describe(entry: Entry) -> dict[str, Any]:
    """What an out folder's index says about an artifact: nothing that changes between equal runs."""
    return {"key": entry.key, "sha256": entry.sha256, "failures": entry.failures, "usage": entry.usage}
