"""Versions of the project: git revisions, DVC's experiments (which are git refs) and the working tree.

Only git is asked, so all of it works in a fresh clone without a DVC remote or cache.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmemo.errors import DocMemoError

WORKING_TREE = "working tree"
_EXPERIMENTS = "refs/exps/"
_INTERNAL = ("exec", "stash", "queue", "celery", "apply", "push", "naming", "temp")
"""What DVC keeps under refs/exps/ that is no experiment."""


class RevisionError(DocMemoError):
    """A revision does not exist, is ambiguous, or this is no git repository."""

    exit_code = 3


@dataclass(frozen=True)
class Revision:
    """One version of the project."""

    name: str
    """As people call it: what was asked for, or the short hash."""
    sha: str = ""
    """Commit; '' for the working tree."""
    date: str = ""
    """Committer date, ISO 8601 with offset."""
    subject: str = ""

    @property
    def short(self) -> str:
        """The commit's first ten digits, or "working tree"."""
        return self.sha[:10] if self.sha else WORKING_TREE

    @property
    def label(self) -> str:
        """Name and commit, each once."""
        return self.name if not self.sha or self.sha.startswith(self.name) else f"{self.name} ({self.short})"


@dataclass(frozen=True)
class Experiment:
    """One experiment of DVC."""

    name: str
    sha: str
    baseline: str
    """The commit it was made from."""


class Repository:
    """The git repository around a project.

    Args:
        project: the project's folder, which need not be the repository's root.

    Raises:
        RevisionError: if git is missing or the folder is in no repository.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        if self.maybe("rev-parse", "--git-dir") is None:
            raise RevisionError(
                f"{project} is not in a git repository.", remedy="Work in a git clone of the project."
            )

    def run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Output of a git command, run in the project's folder.

        Raises:
            RevisionError: with git's own words, if it fails.
        """
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.project,
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                check=True,
                env={**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            )
        except FileNotFoundError as error:
            raise RevisionError("git is not installed.", remedy="Install git.") from error
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode(errors="replace").strip()
            raise RevisionError(f"`git {' '.join(arguments)}` failed: {words}.") from error
        return done.stdout

    def text(self, *arguments: str) -> str:
        """The same as stripped text."""
        return self.run(*arguments).decode(errors="replace").strip()

    def maybe(self, *arguments: str) -> str | None:
        """The same; None where git says no."""
        try:
            return self.text(*arguments)
        except RevisionError:
            return None

    @property
    def is_shallow(self) -> bool:
        """Whether older commits were left out when the repository was cloned."""
        return self.maybe("rev-parse", "--is-shallow-repository") == "true"

    def cut_off(self) -> set[str]:
        """Commits whose parents are not here because the clone is shallow."""
        if not self.is_shallow:
            return set()
        path = self.project / self.text("rev-parse", "--git-path", "shallow")
        return set(path.read_text(encoding="ascii").split()) if path.is_file() else set()

    def resolve(self, name: str) -> Revision:
        """The commit that `name` means: anything git knows (branch, tag, hash, HEAD~1), else an experiment.

        Raises:
            RevisionError: if there is none, or several experiments have the name.
        """
        sha = self.maybe("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if sha is None:
            sha = self._experiment(name)
        date, subject = self.text("show", "-s", "--format=%cI%x00%s", sha).split("\x00", 1)
        return Revision(name, sha, date, subject)

    def _experiment(self, name: str) -> str:
        found = [e for e in self.experiments() if e.name == name]
        if len(found) > 1:
            listing = ", ".join(f"{e.sha[:10]} (from {e.baseline[:10]})" for e in found)
            raise RevisionError(
                f"{len(found)} experiments are called {name!r}: {listing}.", remedy="Name one by its hash."
            )
        if found:
            return found[0].sha
        remedy = "`docmemo runs` lists revisions and experiments that hold figures."
        if self.is_shallow:
            remedy = f"This clone is shallow: `git fetch --unshallow` brings older commits. {remedy}"
        raise RevisionError(f"There is no revision or experiment {name!r} here.", remedy=remedy)

    def experiments(self) -> list[Experiment]:
        """DVC's experiments in this repository, by name; a clone has none until they are fetched."""
        lines = self.text("for-each-ref", "--format=%(refname) %(objectname)", _EXPERIMENTS).splitlines()
        found = []
        for line in lines:
            ref, sha = line.split(" ")
            parts = ref.removeprefix(_EXPERIMENTS).split("/")
            if len(parts) >= 3 and parts[0] not in _INTERNAL:
                found.append(Experiment("/".join(parts[2:]), sha, parts[0] + parts[1]))
        return sorted(found, key=lambda e: (e.name, e.sha))

    def read(self, revision: Revision, path: str) -> bytes | None:
        """A file of a version, by its path inside the project; None where it has no such file."""
        if not revision.sha:
            file = self.project / path
            return file.read_bytes() if file.is_file() else None
        return self.read_many([(revision.sha, path)])[revision.sha, path]

    def read_many(self, wanted: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], bytes | None]:
        """Files by (commit, path inside the project), with one git process; None where there is no such file."""
        prefix = self.text("rev-parse", "--show-prefix")
        names = "".join(f"{sha}:{prefix}{path}\n" for sha, path in wanted)
        output = self.run("cat-file", "--batch", stdin=names.encode())
        found: dict[tuple[str, str], bytes | None] = {}
        position = 0
        for key in wanted:
            end = output.index(b"\n", position)
            header = output[position:end].split(b" ")
            position = end + 1
            if header[-1] == b"missing" or len(header) != 3 or header[1] != b"blob":
                found[key] = None
                if len(header) == 3 and header[1] != b"missing":  # a folder: its content follows
                    position += int(header[2]) + 1
                continue
            size = int(header[2])
            found[key] = output[position : position + size]
            position += size + 1
        return found

    def commits_touching(
        self, path: str, start: Iterable[str] = ("HEAD",), everything: bool = False
    ) -> list[Revision]:
        """Commits reachable from `start` (or from any branch or tag) that changed a file, newest first."""
        if self.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
            return []
        pattern = "--format=%H%x00%cI%x00%s"
        wide = ["--branches", "--remotes", "--tags"] if everything else []
        text = self.text("log", pattern, *wide, "--end-of-options", *start, "--", path)
        rows = [line.split("\x00") for line in text.splitlines() if line]
        return [Revision(sha[:10], sha, date, subject) for sha, date, subject in rows]

    def names_of(self) -> dict[str, list[str]]:
        """Commit to the branches and tags that stand at it."""
        names: dict[str, list[str]] = {}
        pattern = "--format=%(objectname) %(*objectname) %(refname:short)"
        for line in self.text("for-each-ref", pattern, "refs/heads", "refs/tags").splitlines():
            sha, peeled, name = line.split(" ", 2)
            names.setdefault(peeled or sha, []).append(name)
        return names
