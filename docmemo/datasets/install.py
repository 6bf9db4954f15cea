"""Brings a benchmark from a folder that holds it in some layout, unpacked or not, to the place it is read from.

Only the questions and the documents they are about are taken. Everything is put together in a hidden folder beside
the place, read there as a run would read it, and moved into place when it can be used.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from docmemo.config import DatasetParams
from docmemo.datasets import longdocurl, mmlongbench, papertab
from docmemo.datasets.base import Dataset, reader_of
from docmemo.datasets.homes import Home
from docmemo.datasets.locate import find_questions, join, page_image, walk
from docmemo.errors import DatasetError

_ARCHIVE = re.compile(r".+\.(?:zip|tar|tar\.gz|tgz)", re.IGNORECASE)
_PARQUET = re.compile(r"(?:data/)?(?:train|test)-.*\.parquet")

Say = Callable[[str], None]


@dataclass
class Installed:
    """What was brought into place."""

    root: Path
    dataset: Dataset
    linked: int = 0
    copied: int = 0
    unpacked: int = 0
    """Files, by how they came."""


def _read(root: Path, home: Home, questions: str | None) -> Dataset:
    return reader_of(home.name)(root, DatasetParams(root=str(root), format=home.name, questions=questions))


def _write_rows(parquet: list[Path], target: Path) -> None:
    """MMLongBench-Doc's rows, which the hub keeps as Parquet, as the JSON list its repository has.

    Raises:
        DatasetError: if no Parquet reader is installed or the files are damaged.
    """
    pandas: Any = importlib.import_module("pandas")
    try:
        rows = [row for path in parquet for row in pandas.read_parquet(path).to_dict(orient="records")]
    except ImportError as error:
        raise DatasetError(
            f"{parquet[0]} cannot be read: no Parquet reader is installed.",
            remedy="Install the extra: pip install 'docmemo[hub]' (in a checkout: pip install -e '.[hub]').",
        ) from error
    except (OSError, ValueError) as error:
        raise DatasetError(f"{parquet[0]} cannot be read: {error}.", remedy="Download it again.") from error
    columns = [name for name in mmlongbench.COLUMNS if all(name in row for row in rows)]
    values = [{name: row[name] for name in columns} for row in rows]
    target.write_text(json.dumps(values, ensure_ascii=False, indent=1, default=_plain), encoding="utf-8")


def _plain(value: Any) -> Any:
    """Arrays and numbers of numpy as lists and numbers of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _bring_questions(home: Home, source: Path, stage: Path, questions: str | None) -> str:
    """Copy the questions file, under its relative path, and give that path.

    Raises:
        DatasetError: if there is none.
    """
    params = DatasetParams(root=str(source), format=home.name, questions=questions)
    names: tuple[str, ...] = (mmlongbench.DEFAULT_QUESTIONS,)
    folders: tuple[str, ...] = ("",)
    if home.name == "mmlongbench":
        parquet = [source / f / n for f, files in walk(source) for n in files if _PARQUET.fullmatch(join(f, n))]
        if questions is None and parquet and not (source / names[0]).is_file():
            _write_rows(sorted(parquet), stage / names[0])
            return names[0]
    elif home.name == "longdocurl":
        names, folders = longdocurl.QUESTION_FILES, longdocurl.FOLDERS
    else:
        names, folders = papertab.question_files(home.name), papertab.FOLDERS
    name = find_questions(source, params, names, folders)
    (stage / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / name, stage / name)
    return name


def _document_of(home: Home, name: str) -> str | None:
    """The document a file belongs to by its name; None when it is no page and no document."""
    if home.pages == "images" and (parts := page_image(name)) is not None:
        return parts[0]
    if not name.lower().endswith(".pdf"):
        return None
    return name if home.name == "mmlongbench" else name[:-4]


def _place(home: Home, name: str) -> str:
    """Where an unpacked file goes."""
    parts = page_image(name) if home.pages == "images" else None
    return f"pdf_pngs/{parts[0]}/{name}" if parts else f"documents/{name}"


def _link_or_copy(source: Path, target: Path) -> bool:
    """Whether a hard link could be made, which takes no space; otherwise the file is copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source = source.resolve()
    try:
        os.link(source, target)
    except OSError:  # another file system, or links are not allowed there
        shutil.copyfile(source, target)
        return False
    return True


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """(base name, content) of every file in a ZIP or tar archive. Paths inside play no part."""
    if archive.suffix.lower() == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    with packed.open(info) as content:
                        yield PurePosixPath(info.filename).name, content
        return
    with tarfile.open(archive, "r|*") as stream:
        for member in stream:
            data = stream.extractfile(member) if member.isfile() else None
            if data is not None:
                yield PurePosixPath(member.name).name, data


def _unpack(home: Home, archive: Path, wanted: set[str], stage: Path) -> int:
    """Unpack the wanted documents' files; gives how many.

    Raises:
        DatasetError: if the archive is damaged.
    """
    count = 0
    try:
        for name, content in _members(archive):
            if name.startswith(".") or _document_of(home, name) not in wanted:
                continue
            target = stage / _place(home, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                shutil.copyfileobj(content, out)
            count += 1
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise DatasetError(
            f"{archive} cannot be unpacked: {error or type(error).__name__}.",
            remedy="It is damaged or incomplete. Download it again.",
        ) from error
    return count


def _missing(dataset: Dataset) -> set[str]:
    return {document.doc_id for document in dataset.documents if document.status == "failed"}


def _bring_documents(home: Home, source: Path, stage: Path, name: str | None, result: Installed, say: Say) -> None:
    """Link, copy or unpack the documents that the staged questions are about."""
    wanted = _missing(_read(stage, home, name))
    archives = []
    for folder, names in walk(source):
        for file in names:
            if _document_of(home, file) in wanted:
                # the reader of MMLongBench-Doc knows one place only; the others search
                target = _place(home, file) if home.name == "mmlongbench" else join(folder, file)
                linked = _link_or_copy(source / folder / file, stage / target)
                result.linked += linked
                result.copied += not linked
            elif _ARCHIVE.fullmatch(file):
                archives.append(source / folder / file)
    wanted = _missing(_read(stage, home, name))
    # page images come in several archives, and a document may be spread over them; PDFs are for what is left then
    archives.sort(key=lambda path: ("pdf" in path.name.lower(), path.name))
    for archive in archives:
        if "pdf" in archive.name.lower():
            wanted = _missing(_read(stage, home, name))
        if wanted:
            say(f"unpacking {archive.name}")
            result.unpacked += _unpack(home, archive, wanted, stage)


def refuse_place(place: Path, source: Path | None, replace: bool) -> None:
    """Raise a DatasetError if a benchmark cannot be put at `place`: it is taken, or lies in `source` or around it."""
    if source is not None:
        here, there = place.resolve(), source.resolve()
        if here == there or there in here.parents or here in there.parents:
            raise DatasetError(f"{place} and {source} lie in each other.", remedy="Name another place with --to.")
    if place.exists() and not (place.is_dir() and (replace or not any(place.iterdir()))):
        remedy = "Use --replace to put this copy in its stead, or name another place with --to."
        raise DatasetError(f"{place} is there already.", remedy=remedy)


def install(
    home: Home,
    source: Path,
    place: Path,
    *,
    questions: str | None = None,
    replace: bool = False,
    note: dict[str, str] | None = None,
    say: Say = lambda _: None,
) -> Installed:
    """Bring a benchmark into place.

    Args:
        home: the benchmark.
        source: a folder that holds it: as published, unpacked or not, or as an earlier call left it.
        place: the folder it is to be in; made. It gets a .gitignore, since the data is not the project's to publish.
        questions: a file of questions inside `source`; None is the benchmark's own.
        replace: put it in the place of what is there.
        note: written to source.json in it, e.g. the repository and commit.
        say: told what takes long.

    Raises:
        DatasetError: if `source` lacks the questions, none of their documents is there, the questions cannot be
            read, an archive is damaged, or `place` is taken. Nothing is in place then.
    """
    if not source.is_dir():
        raise DatasetError(f"{source} is not a folder.", remedy="Name the folder that holds the benchmark.")
    refuse_place(place, source, replace)
    if home.name == "mmlongbench" and not (source / "documents").is_dir() and (source / "data/documents").is_dir():
        source = source / "data"  # as in the authors' repository
    stage = place.parent / f".{place.name}.partial"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        name = _bring_questions(home, source, stage, questions)
        named = name if questions is not None else None
        result = Installed(place, Dataset(home.name, "", [], []))
        _bring_documents(home, source, stage, named, result, say)
        result.dataset = _read(stage, home, named)
        if all(document.status == "failed" for document in result.dataset.documents):
            raise DatasetError(
                f"{source} holds questions of {home.title} but none of their "
                f"{len(result.dataset.documents)} documents.",
                remedy=f"They belong beside the questions, unpacked or as published: {', '.join(home.files)}.",
            )
        (stage / ".gitignore").write_text("*\n", encoding="ascii")
        if note:
            (stage / "source.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
        _move(stage, place)
    except OSError as error:
        raise DatasetError(
            f"{home.title} cannot be brought to {place}: {error.strerror or error}.",
            remedy="Check the space and the rights there, or name another place with --to.",
        ) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return result


def _move(stage: Path, place: Path) -> None:
    """Put `stage` where `place` is; what was there goes only after that worked."""
    old = place.parent / f".{place.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    try:
        stage.rename(place)
    except OSError:
        with suppress(OSError):
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)
