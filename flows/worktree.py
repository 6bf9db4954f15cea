"""A second checkout of the project for a run of its own: a git worktree under the state folder, removed afterwards.

It shares git's objects and DVC's cache with the checkout it was made from, and touches none of its files. What a
killed run left (the folder, git's note of it, a `dvc` still working in it) is cleared by the next run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml
from filelock import FileLock, Timeout

from docmemo.artifacts import write_atomic
from docmemo.errors import BusyError, ConfigError
from docmemo.evaluation.compare_answers import cache_folder
from docmemo.evaluation.revisions import Repository, Revision


class Workshop:
    """The folder in which runs of their own are made, for one checkout.

    Args:
        repository: the project.
        folder: below the state folder; `.gitignore` and `.dvcignore` name that.
    """

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.repository = repository
        self.folder = folder
        self._tree = folder / "worktree" / "checkout"
        self._process = folder / "process.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Only one run at a time works here; the lock goes with its process, however that ends.

        Raises:
            BusyError: if another run is under way.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise BusyError(
                "Another re-evaluation of this project is running.", remedy="Wait for it, or stop it."
            ) from error
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def checkout(self, revision: Revision, keep: bool = False) -> Iterator[Path]:
        """A fresh checkout of a revision; yields the project's folder in it. Removed afterwards unless `keep`.

        Raises:
            ConfigError: if the dataset cannot be reached from there.
        """
        self.clear()
        self.repository.text("worktree", "add", "--quiet", "--detach", str(self._tree), revision.sha)
        try:
            project = self._tree / self.repository.text("rev-parse", "--show-prefix")
            self._share_cache(project)
            self._link_dataset(project)
            yield project
        finally:
            if not keep:
                self.clear()

    def clear(self) -> None:
        """Remove the checkout, also one that a killed run left, after ending what still works in it."""
        self._end_process()
        if self._tree.exists():
            shutil.rmtree(self._tree.parent)
        self.repository.maybe("worktree", "prune")

    def note_process(self, pid: int) -> None:
        """Write down who works in the checkout, so that the next run can end it if this one is killed."""
        write_atomic(self._process, json.dumps({"pid": pid, "started": psutil.Process(pid).create_time()}).encode())

    def _end_process(self) -> None:
        try:
            noted = json.loads(self._process.read_bytes())
            process = psutil.Process(noted["pid"])
            if abs(process.create_time() - noted["started"]) < 0.01:
                # Stages end with the dvc that started them.
                process.terminate()
                process.wait(10)
        except psutil.TimeoutExpired:
            process.kill()
        except (OSError, ValueError, KeyError, psutil.Error):
            pass  # nothing was written down, or that process has ended
        self._process.unlink(missing_ok=True)

    def _share_cache(self, project: Path) -> None:
        """DVC's settings and cache of the first checkout: what is finished there is not done again."""
        settings = project / ".dvc"
        if not settings.is_dir():
            raise ConfigError(
                f"{self.repository.project} has no .dvc folder at that revision.", remedy="Choose --ref."
            )
        own = self.repository.project / ".dvc" / "config.local"
        target = settings / "config.local"
        if own.is_file():
            shutil.copy(own, target)
        cache = Path(os.path.normpath(cache_folder(self.repository).absolute()))
        self.repository.text("config", "-f", str(target), "cache.dir", str(cache))

    def _link_dataset(self, project: Path) -> None:
        """Make a dataset that git does not hold reachable under the same relative name."""
        params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8")) or {}
        root = str((params.get("dataset") or {}).get("root") or "")
        here, there = self.repository.project / root, Path(os.path.normpath(project / root))
        if not root or Path(root).is_absolute() or there.exists() or not here.exists():
            return
        if not there.is_relative_to(self.folder):
            raise ConfigError(
                f"dataset.root {root} cannot be reached from a second checkout.",
                remedy="Give it as an absolute path.",
            )
        there.parent.mkdir(parents=True, exist_ok=True)
        there.unlink(missing_ok=True)
        there.symlink_to(os.path.normpath(here.absolute()), target_is_directory=True)


def _outs(project: Path) -> list[str]:
    """Paths of everything that stages make, by dvc.lock."""
    path = project / "dvc.lock"
    lock = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    stages = (lock or {}).get("stages") or {}
    return [out["path"] for stage in stages.values() for out in stage.get("outs", [])]


def commit_results(
    repository: Repository, project: Path, files: list[str], message: str, prefix: str
) -> tuple[str, str] | None:
    """Commit files of a checkout on a branch of its own; returns (branch, commit), None when nothing differs.

    A branch of the same prefix that already holds the same result from the same start is used again.

    Args:
        repository: whose git it is.
        project: the project's folder in the checkout.
        files: what is committed, where it exists.
        prefix: the branch's name; "-2", "-3", .. are added while it is taken by another result.
    """
    there = Repository(project)
    present = [name for name in files if (project / name).exists()]
    there.text("add", "--all", "--", *present)
    if there.maybe("diff", "--cached", "--quiet") is not None:
        return None
    identity = [] if there.maybe("config", "user.email") else _IDENTITY
    there.text(*identity, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", message)
    commit = there.text("rev-parse", "HEAD")
    same = there.text("rev-parse", "HEAD^{tree}", "HEAD^")
    folder = prefix.rsplit("/", 1)[0]
    for line in repository.text("for-each-ref", "--format=%(refname:short)", f"refs/heads/{folder}").splitlines():
        if repository.maybe("rev-parse", f"{line}^{{tree}}", f"{line}^") == same:
            return line, repository.text("rev-parse", line)
    name, number = prefix, 1
    while repository.maybe("rev-parse", "--verify", "--quiet", f"refs/heads/{name}") is not None:
        number += 1
        name = f"{prefix}-{number}"
    repository.text("branch", "--no-track", name, commit)
    return name, commit


_IDENTITY = ["-c", "user.name=docmemo", "-c", "user.email=docmemo@localhost"]
"""Used only where git has no identity of the user."""
