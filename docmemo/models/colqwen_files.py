"""Which ColQwen2.5 weights would run, found without importing torch: for models.lock.json and for the loader.

A model is a folder, or a name on the hub whose files are in the local hub cache; nothing is ever downloaded here.
The published ColQwen2.5 is an adapter of a few megabytes on a base model in a repository of its own, so what
identifies it is the commit of both.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmemo.artifacts import write_atomic
from docmemo.config import EmbedParams
from docmemo.errors import ModelLockError
from docmemo.fingerprint import canonical_json, digest, digest_file
from docmemo.models.lock import LockEntry
from docmemo.settings import load_settings

PROVIDER = "colpali-engine"
MODEL_PACKAGES = ("colpali-engine", "transformers", "peft", "torch")
"""They decide the embeddings."""
LEXICAL_PACKAGES = ("bm25s", "PyStemmer")
"""They score the words that stand beside the embeddings."""
INSTALL = "Install the extra: pip install --constraint constraints.txt --editable '.[colqwen]'"

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_IDENTIFYING = (".bin", ".jinja", ".json", ".model", ".safetensors", ".txt")
"""Endings of the files that decide what a folder's model computes: weights, configuration, tokenizer, processor."""


@dataclass(frozen=True)
class Weights:
    """Files of one model.

    Attributes:
        name: as in the lock: the name on the hub, or the folder's name.
        folder: where the files are.
        revision: the hub's commit, or "sha256:..." over the folder's files; with a base model, both.
        base: the model that the adapter in `folder` belongs on; None for a whole model.
        files: digests by file name; empty for a model of the hub, whose commit says it all.
    """

    name: str
    folder: Path
    revision: str
    base: Weights | None = None
    files: Mapping[str, str] = field(default_factory=dict, compare=False)


def identify(params: EmbedParams) -> LockEntry:
    """The lock entry of the model that `params` name.

    Raises:
        ModelLockError: if the extra is not installed, or the model's files are not on this machine.
    """
    packages = ", ".join(f"{name} {_version(name)}" for name in (*MODEL_PACKAGES, *LEXICAL_PACKAGES))
    weights = find_weights(params)
    return LockEntry(
        provider=PROVIDER,
        id=weights.name,
        revision=weights.revision,
        package_version=packages,
        files=dict(weights.files),
    )


def visual_identity(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What of a lock entry decides an embedding: all but the versions of the lexical packages."""
    versions = str(entry.get("package_version", "")).split(", ")
    kept = [version for version in versions if version.partition(" ")[0] not in LEXICAL_PACKAGES]
    return {**entry, "package_version": ", ".join(kept)}


def _version(name: str) -> str:
    """A package's version, without the local part that tells builds of one version apart (torch 2.13.0+cpu)."""
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelLockError(
            f"embed.backend is colqwen, but the package {name} is not installed.", remedy=INSTALL
        ) from error


def find_weights(params: EmbedParams) -> Weights:
    """The files of the model that `params` name, and of its base model if it is an adapter.

    Raises:
        ModelLockError: if they are not on this machine.
    """
    if params.revision is not None and Path(params.model).expanduser().is_dir():
        raise ModelLockError(
            f"embed.revision is {params.revision!r}, but embed.model is a folder.",
            remedy="Set embed.revision to null.",
        )
    return _find(params.model, params.revision)


def _find(model: str, revision: str | None, beside: Path | None = None) -> Weights:
    """`beside` is the adapter's folder, where a relative path of its base may start."""
    places = [Path(model).expanduser(), *([beside / model] if beside is not None else [])]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is not None:
        name, files = folder.resolve().name, _folder_digests(folder)
        own = f"sha256:{digest(files)}"
    elif _HUB_NAME.fullmatch(model):
        name, files, folder = model, {}, _snapshot(model, revision)
        own = folder.name
    else:
        raise ModelLockError(
            f"The ColQwen2.5 model {model!r} is neither a folder nor a name on the hub.",
            remedy="Correct embed.model in params.yaml.",
        )
    base = _base(folder)
    if base is None:
        return Weights(name, folder, own, None, files)
    files |= {f"base/{file}": sha256 for file, sha256 in base.files.items()}
    return Weights(name, folder, f"{own} on {base.name}@{base.revision}", base, files)


def _snapshot(name: str, revision: str | None) -> Path:
    """The folder of a commit in the local hub cache; its name is the commit."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ModelLockError(
            "embed.backend is colqwen, but the package huggingface_hub is not installed.", remedy=INSTALL
        ) from error
    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        which = f" --revision {revision}" if revision else ""
        raise ModelLockError(
            f"The model {name}{f' at {revision}' if revision else ''} is not on this machine.",
            remedy=f"Run `hf download {name}{which}`, or name a folder with the weights in embed.model.",
        ) from error


def _base(folder: Path) -> Weights | None:
    """The base model of the adapter in `folder`; None if it holds a whole model."""
    path = folder / "adapter_config.json"
    if not path.is_file() or (folder / "config.json").is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        name, revision = values["base_model_name_or_path"], values.get("revision")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelLockError(
            f"{path} does not name the adapter's base model: {error}.", remedy="Download the model again."
        ) from error
    return _find(str(name), str(revision) if revision else None, folder)


def _folder_digests(folder: Path) -> dict[str, str]:
    """File name to sha256 of the files that decide what the model computes."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _IDENTIFYING)
    if not any(path.suffix in (".safetensors", ".bin") for path in paths):
        raise ModelLockError(
            f"The folder {folder} holds no weights (*.safetensors).", remedy="Correct embed.model in params.yaml."
        )
    return _remembered_digests(paths, load_settings().home / "file_digests.json")


def _remembered_digests(paths: list[Path], memory: Path) -> dict[str, str]:
    """Digests of files by name; a file of the same place, size and time as before is not read again.

    Seven gigabytes take several seconds to read, and every stage asks.
    """
    try:
        known = json.loads(memory.read_bytes())
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    digests, new = {}, {}
    for path in paths:
        try:
            status = path.stat()
            mark = [str(status.st_size), str(status.st_mtime_ns)]
            place = str(path.resolve())
            before = known.get(place)
            if isinstance(before, list) and len(before) == 3 and before[:2] == mark:
                digests[path.name] = str(before[2])
                continue
            digests[path.name] = digest_file(path)
        except OSError as error:
            raise ModelLockError(f"{path} cannot be read: {error}.", remedy="Check embed.model.") from error
        new[place] = [*mark, digests[path.name]]
    if new:
        write_atomic(memory, canonical_json({**known, **new}).encode())
    return digests
