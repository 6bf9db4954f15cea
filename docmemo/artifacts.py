"""The files stages hand on: one packed file a document, JSON lines for records. Reading is validated.

Archives are ZIP files without compression of pictures and with fixed time stamps, so equal content gives equal bytes.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from docmemo.errors import ArtifactError
from docmemo.fingerprint import canonical_json, digest
from docmemo.types import LayoutSet, PageSet

M = TypeVar("M", bound=BaseModel)

_EPOCH = (1980, 1, 1, 0, 0, 0)

_LONGEST_NAME = 120
"""Bytes; file systems take 255, and temporary names and endings come on top."""

PAGES_MEMBER = "pages.json"
LAYOUT_MEMBER = "layout.json"


def artifact_name(doc_id: str, suffix: str) -> str:
    """File name of a document's artifact: readable, safe on every file system, and one-to-one with `doc_id`."""
    safe = "".join(c if c.isalnum() or c in "-_.() " else f"%{ord(c):x}%" for c in doc_id)
    if len(safe.encode()) > _LONGEST_NAME:
        safe = f"{safe.encode()[:80].decode(errors='ignore')}~{digest(doc_id)[:24]}"
    return f"{safe}{suffix}"


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` so that `path` holds either the old or the whole new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_archive(
    target: Path | io.BytesIO, header_name: str, header: BaseModel, members: Iterable[tuple[str, bytes]]
) -> None:
    """Write a ZIP archive: `header` as deflated JSON, then the members stored as they are, in the order given."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        info = zipfile.ZipInfo(header_name, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, canonical_json(header.model_dump(mode="json")))
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def read_member(path: Path, name: str) -> bytes:
    """One member of an archive.

    Raises:
        ArtifactError: if the archive or the member is missing or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ArtifactError(f"{path} has no readable member {name!r}: {error}.", remedy="Run `dvc repro`.") from error


def _parse(model: type[M], data: bytes | str, where: str) -> M:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise ArtifactError(
            f"{where} is not what this version writes: {error.errors()[0]['msg']}.", remedy="Run `dvc repro`."
        ) from error


def read_pages(path: Path) -> PageSet:
    """The page records of a page archive, without images."""
    return _parse(PageSet, read_member(path, PAGES_MEMBER), str(path))


def read_layout(path: Path) -> LayoutSet:
    """The regions of a layout archive, without crops."""
    return _parse(LayoutSet, read_member(path, LAYOUT_MEMBER), str(path))


def read_json(path: Path, model: type[M]) -> M:
    """A JSON file as `model`.

    Raises:
        ArtifactError: if it is missing or not valid.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error}.", remedy="Run `dvc repro`.") from error
    return _parse(model, data, str(path))


def write_json(path: Path, value: BaseModel) -> None:
    """`value` as indented JSON with sorted keys."""
    text = json.dumps(value.model_dump(mode="json"), sort_keys=True, indent=1, ensure_ascii=False)
    write_atomic(path, (text + "\n").encode())


def read_jsonl(path: Path, model: type[M]) -> Iterator[M]:
    """Records of a JSON-lines file, one at a time."""
    try:
        handle = path.open(encoding="utf-8")
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error}.", remedy="Run `dvc repro`.") from error
    with handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                yield _parse(model, line, f"{path} line {number}")


def write_jsonl(path: Path, records: Iterable[BaseModel], *, exclude_none: bool = False) -> None:
    """Records as JSON lines with sorted keys."""
    lines = (canonical_json(r.model_dump(mode="json", exclude_none=exclude_none)) for r in records)
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode())
