"""models.lock.json: which model plays each role, so that a changed model is noticed before it changes a result.

An entry has the keys of `LockEntry`. A model behind a server is asked for what identifies it when the lock is written
or checked; a stage compares what it knows without asking, and the first request of its run compares the rest
(docmemo/models/connection.py), so that a run with nothing to ask needs no server. Built-in parts (provider "docmemo")
carry no version: a digest of their code is in the key of every step that uses them. The packages they score with are
in the entry of the embedder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from docmemo.artifacts import write_atomic
from docmemo.config import ModelParams, Params
from docmemo.errors import ConfigError, ModelLockError
from docmemo.fingerprint import digest
from docmemo.models import installed
from docmemo.models.mineru_command import find_mineru
from docmemo.models.registry import is_plugin, target_of
from docmemo.settings import load_settings
from docmemo.types import Record

ROLES = (
    "renderer",
    "layout",
    "ocr",
    "embedder",
    "summarizer",
    "schema",
    "reranker",
    "reasoner",
    "judge",
)
LOCK_NAME = "models.lock.json"
LOCK_FILE = Path(LOCK_NAME)
SERVED = "openai_compatible"
"""Provider of models behind a server."""
SERVED_PARAMS = {
    "summarizer": "summarize.model",
    "schema": "schema.model",
    "reranker": "answer.reranker_model",
    "reasoner": "answer.reader_model",
    "judge": "judge.model",
}
"""Role to where params.yaml names its model."""
_REMEDY = "Run `docmemo models lock` to accept what is installed, or install what the lock names."


class LockEntry(Record):
    """What identifies the model of one role."""

    provider: str
    """Who makes it: a package's name, "docmemo" for built-in parts, "plugin", or "none"."""
    id: str
    revision: str = ""
    """Digest of weights (of `files`) or of a plugin's code; '' when the package version says it all."""
    package_version: str = ""
    """Distributions and versions, e.g. "rapidocr 3.10.0, onnxruntime 1.32.0"."""
    files: dict[str, str] = Field(default_factory=dict)
    """Weight files by name, with their sha256."""
    served: dict[str, Any] = Field(default_factory=dict)
    """What the server says of the model (root, max_model_len, owned_by, ...), without times and permissions."""


@dataclass(frozen=True)
class Difference:
    """A role whose lock entry is not what would run."""

    role: str
    locked: dict[str, Any] | None
    """None: the lock has no such role."""
    installed: dict[str, Any] | None
    """None: the lock names a role that does not exist."""

    def __str__(self) -> str:
        if self.locked is None:
            return f"{self.role}: not in the lock; installed is {_short(self.installed or {})}"
        if self.installed is None:
            return f"{self.role}: in the lock, but there is no such role"
        fields = sorted(
            key
            for key in {*self.locked, *self.installed}
            if self.locked.get(key) != self.installed.get(key) and key != "files"
        )
        changes = [
            f"{key} is {self.locked.get(key, '')!r} in the lock, {self.installed.get(key, '')!r} installed"
            for key in fields
        ]
        return f"{self.role}: {'; '.join(changes) or 'files differ'}"


def _short(entry: Mapping[str, Any]) -> str:
    parts = [str(entry.get(key, "")) for key in ("provider", "id", "package_version")]
    return " / ".join(part for part in parts if part)


def _weights(provider: str, name: str, files: list[Path], packages: tuple[str, ...]) -> LockEntry:
    digests = installed.file_digests(files)
    return LockEntry(
        provider=provider,
        id=name,
        revision=f"sha256:{digest(digests)}",
        package_version=installed.versions(*packages),
        files=digests,
    )


def _renderer(_: Params) -> LockEntry:
    return LockEntry(provider="pymupdf", id="pymupdf", package_version=installed.versions("pymupdf"))


def _layout(params: Params) -> LockEntry:
    if params.layout.backend == "mineru":
        mineru = find_mineru(load_settings().mineru)
        return LockEntry(provider="mineru", id=f"mineru-{params.layout.mineru_tier}", package_version=mineru.packages)
    files = installed.pymupdf_layout_files()
    return _weights(params.layout.backend, "pymupdf-layout", files, ("pymupdf", "onnxruntime"))


def _ocr(params: Params) -> LockEntry:
    if params.render.ocr.backend == "none":
        return LockEntry(provider="none", id="none")
    files = installed.rapidocr_files()
    names = " + ".join(path.stem for path in files)
    return _weights("rapidocr", names, files, ("rapidocr", "onnxruntime"))


def _served(role: str, model: ModelParams, ask: bool) -> LockEntry:
    """A model behind an OpenAI-compatible server; `ask` for what the server says of it.

    Raises:
        ConfigError: if no model is named.
        ModelLockError: if the server cannot be reached or does not have the model.
    """
    if not model.id:
        raise ConfigError(
            f"The role {role} has no model.",
            remedy=f"Name one in params.yaml ({SERVED_PARAMS[role]}.id), as its server calls it.",
        )
    entry = LockEntry(provider=SERVED, id=model.id)
    if not ask:
        return entry
    from docmemo.models.endpoints import endpoint_of, served_model

    return entry.model_copy(update={"served": served_model(endpoint_of(role), model.id)})


def _embedder(params: Params) -> LockEntry:
    if params.embed.backend == "colqwen":
        from docmemo.models.colqwen_files import identify

        return identify(params.embed)
    packages = installed.versions("bm25s", "PyStemmer")
    return LockEntry(provider="docmemo", id=params.embed.backend, package_version=packages)


def served_roles(params: Params) -> dict[str, ModelParams]:
    """The roles that a model behind a server plays with these parameters."""
    chosen = {
        "summarizer": (params.summarize.backend == "vlm", params.summarize.model),
        "schema": (params.schema_.backend == "vlm", params.schema_.model),
        "reranker": (params.answer.reranker == "vlm", params.answer.reranker_model),
        "reasoner": (params.answer.reader == "vlm", params.answer.reader_model),
        "judge": (params.judge.backend == "llm", params.judge.model),
    }
    return {role: model for role, (used, model) in chosen.items() if used}


def _summarizer(params: Params) -> LockEntry:
    return LockEntry(provider="docmemo", id=params.summarize.backend)


def _schema(params: Params) -> LockEntry:
    return LockEntry(provider="docmemo", id=params.schema_.backend)


def _reader(kind: str, name: str) -> LockEntry:
    if not is_plugin(name):
        target_of(kind, name)
        return LockEntry(provider="docmemo", id="evidence-finder" if name == "embedded" else name)
    code, version = installed.plugin_source(name.partition(":")[0])
    return LockEntry(provider="plugin", id=name, revision=f"code:{code}", package_version=version)


def _reranker(params: Params) -> LockEntry:
    return _reader("reranker", params.answer.reranker)


def _reasoner(params: Params) -> LockEntry:
    return _reader("reader", params.answer.reader)


def _judge(params: Params) -> LockEntry:
    return LockEntry(provider="docmemo", id=params.judge.backend)


_RESOLVERS: dict[str, Callable[[Params], LockEntry]] = {
    "renderer": _renderer,
    "layout": _layout,
    "ocr": _ocr,
    "embedder": _embedder,
    "summarizer": _summarizer,
    "schema": _schema,
    "reranker": _reranker,
    "reasoner": _reasoner,
    "judge": _judge,
}


def resolve_role(params: Params, role: str, *, ask: bool = False) -> dict[str, Any]:
    """The lock entry of what would run in a role now; empty fields are left out.

    Args:
        params: all parameters.
        role: one of ROLES.
        ask: ask the server of a served model what it says of it; else only its name is known.

    Raises:
        ModelLockError: if the role is unknown, its package or model files are not installed, or its server cannot
            be asked.
        ConfigError: if params name an unknown reader or reranker, or no model.
    """
    if role not in _RESOLVERS:
        raise ModelLockError(f"Unknown role {role!r}.", remedy=f"Known roles: {', '.join(ROLES)}.")
    served = served_roles(params)
    if role in served:
        return _served(role, served[role], ask).model_dump(mode="json", exclude_defaults=True)
    return _RESOLVERS[role](params).model_dump(mode="json", exclude_defaults=True)


def resolve_lock(params: Params) -> dict[str, dict[str, Any]]:
    """The whole lock for these parameters: role to entry. Servers are asked; heavy packages are not imported."""
    return {role: resolve_role(params, role, ask=True) for role in ROLES}


def write_lock(lock: Mapping[str, Any], path: Path = LOCK_FILE) -> None:
    """Write the lock sorted and indented, so that a change of one model is a small diff."""
    text = json.dumps(lock, sort_keys=True, indent=2, ensure_ascii=False)
    write_atomic(path, f"{text}\n".encode())


def load_lock(path: Path = LOCK_FILE) -> dict[str, dict[str, Any]]:
    """The lock as written; unknown roles are kept.

    Raises:
        ModelLockError: if the file is missing, not JSON, or an entry is not a lock entry.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelLockError(f"{path} does not exist.", remedy="Run `docmemo models lock`.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLockError(f"{path} is not readable JSON: {error}.", remedy="Run `docmemo models lock`.") from error
    if not isinstance(values, dict):
        raise ModelLockError(f"{path} must hold an object of roles.", remedy="Run `docmemo models lock`.")
    lock = {}
    for role, entry in values.items():
        try:
            lock[role] = LockEntry.model_validate(entry).model_dump(mode="json", exclude_defaults=True)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in (role, *problem["loc"]))
            raise ModelLockError(
                f"{path} is not valid: {where}: {problem['msg']}.", remedy="Run `docmemo models lock`."
            ) from error
    return lock


def check_lock(params: Params, path: Path = LOCK_FILE) -> list[Difference]:
    """Where the lock differs from what would run, in the order of the roles; empty when it holds.

    Raises:
        ModelLockError: if the lock cannot be read, or something is not installed.
    """
    lock = load_lock(path)
    now = resolve_lock(params)
    differences = [Difference(r, lock.get(r), now[r]) for r in ROLES if lock.get(r) != now[r]]
    return differences + [Difference(r, lock[r], None) for r in sorted(lock.keys() - now.keys())]


def require_lock(params: Params, roles: Iterable[str], path: Path = LOCK_FILE) -> dict[str, dict[str, Any]]:
    """The entries of these roles, after making sure that they are what would run. Stages call this first.

    Returns:
        role to entry, as written in the lock; part of a step's key.

    Raises:
        ModelLockError: naming each role that differs, what the lock says and what is installed.
    """
    lock = load_lock(path)
    wrong = []
    for role in roles:
        try:
            now = resolve_role(params, role)
        except ConfigError as error:
            raise ModelLockError(error.message, remedy=error.remedy) from error
        locked = lock.get(role)
        known = {k: v for k, v in locked.items() if k != "served"} if locked is not None else None
        if known != now:
            wrong.append(Difference(role, lock.get(role), now))
    if wrong:
        listing = "\n  ".join(str(difference) for difference in wrong)
        raise ModelLockError(f"{path} does not match what would run:\n  {listing}\n", remedy=_REMEDY)
    return {role: lock[role] for role in roles}
