"""Any folder of PDFs or page images, with or without a file of questions."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from docmemo.config import DatasetParams
from docmemo.datasets.base import Dataset, Quirk
from docmemo.datasets.fields import Problems
from docmemo.datasets.questions import build_questions, missing_columns, read_rows, unknown_columns
from docmemo.errors import DatasetError
from docmemo.types import Document, Question

IMAGE_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"})
QUESTION_FILES = ("questions.jsonl", "questions.csv")


def _is_image(name: str) -> bool:
    return not name.startswith(".") and PurePosixPath(name).suffix.lower() in IMAGE_ENDINGS


@dataclass
class _Listing:
    pdfs: list[str] = field(default_factory=list)
    image_folders: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def _walk(root: Path, skip: set[str]) -> _Listing:
    """Everything below `root`, by relative path. Each folder is entered once, whatever links lead there."""
    listing = _Listing()
    inside = root.resolve()
    entered: set[tuple[int, int]] = set()
    folders = [""]
    while folders:
        relative = folders.pop()
        folder = root / relative
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            listing.unreadable.append(relative)
            continue
        has_images = False
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if entry.name.startswith(".") or path in skip:
                continue
            if entry.is_dir():
                # A link to a folder of the dataset itself adds nothing but a second name (or a loop).
                if not (entry.is_symlink() and (folder / entry.name).resolve().is_relative_to(inside)):
                    folders.append(path)
            elif entry.name.lower().endswith(".pdf"):
                listing.pdfs.append(path)
            elif _is_image(entry.name):
                has_images = True
            else:
                listing.ignored.append(path)
        if has_images:
            listing.image_folders.append(relative)
    return listing


def _printable(name: str) -> str:
    """A name that can be written as UTF-8, whatever bytes the file system holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _document(path: str, kind: str, doc_id: str) -> Document:
    readable = _printable(path)
    failed = readable != path
    return Document(
        doc_id=_printable(doc_id),
        path=readable,
        kind="images" if kind == "images" else "pdf",
        status="failed" if failed else "ok",
        reason="The file's name is not valid UTF-8. Rename the file and run again." if failed else "",
    )


def list_documents(root: Path, skip: set[str] | None = None) -> tuple[list[Document], dict[str, Quirk]]:
    """Documents of a folder and what was passed over.

    A document's id is its path relative to `root`; images directly in `root` go by the folder's name.

    Args:
        root: an existing folder.
        skip: paths relative to it that are no documents and are not counted as ignored.
    """
    listing = _walk(root, skip or set())
    documents = [_document(path, "pdf", path) for path in listing.pdfs]
    taken = {d.doc_id for d in documents} | set(listing.image_folders)
    for path in listing.image_folders:
        own_name = root.resolve().name
        doc_id = path or (own_name if own_name and own_name not in taken else ".")
        documents.append(_document(path or ".", "images", doc_id))
    notes = {}
    if listing.ignored:
        notes["file ignored"] = Quirk(
            len(listing.ignored), f"Neither a PDF nor a page image; passed over: {_some(listing.ignored)}."
        )
    if listing.unreadable:
        notes["folder unreadable"] = Quirk(
            len(listing.unreadable),
            f"The folder cannot be opened, so its documents are missing: {_some(listing.unreadable)}.",
        )
    return sorted(documents, key=lambda d: d.doc_id), notes


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(_printable(name) or "." for name in sorted(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def document_resolver(documents: Sequence[Document]) -> Callable[[Any], str]:
    """A function from what a row calls its document (id, file name or stem) to the doc_id.

    It raises ValueError if nothing or more than one document answers to the name. Without a name it gives the
    dataset's only document.
    """
    names: list[dict[str, set[str]]] = [{}, {}, {}]
    for document in documents:
        path = PurePosixPath(document.doc_id)
        for level, name in enumerate(
            (document.doc_id, path.name, path.stem if document.kind == "pdf" else path.name)
        ):
            names[level].setdefault(_normal(name), set()).add(document.doc_id)

    def resolve(value: Any) -> str:
        wanted = "" if value is None else str(value).strip()
        if not wanted:
            if len(documents) == 1:
                return documents[0].doc_id
            raise ValueError("doc_id is missing")
        key = _normal(wanted)
        for level in names:
            found = level.get(key, set())
            if len(found) == 1:
                return next(iter(found))
            if found:
                raise ValueError(f"doc_id {wanted!r} is ambiguous: {_some(sorted(found))}. Use the relative path")
        raise ValueError(f"unknown document {wanted!r} (there are: {_some([d.doc_id for d in documents])})")

    return resolve


def _normal(name: str) -> str:
    name = unicodedata.normalize("NFC", name.replace("\\", "/"))
    return re.sub(r"^(\./)+", "", name).rstrip("/") or name


def questions_file(root: Path, params: DatasetParams) -> Path | None:
    """The file of questions: the one that is named, else questions.jsonl or questions.csv, else None.

    Raises:
        DatasetError: if the named file is missing, or both default files are there.
    """
    if params.questions is not None:
        path = root / Path(params.questions).expanduser()
        if not path.is_file():
            raise DatasetError(
                f"The questions file {path} does not exist.",
                remedy="Correct dataset.questions in params.yaml: a file inside the dataset's folder.",
            )
        return path
    found = [root / name for name in QUESTION_FILES if (root / name).is_file()]
    if len(found) > 1:
        raise DatasetError(
            f"{root} holds both {QUESTION_FILES[0]} and {QUESTION_FILES[1]}.",
            remedy="Name the one to use in dataset.questions, or remove the other.",
        )
    return found[0] if found else None


def read_questions(path: Path, documents: Sequence[Document]) -> tuple[list[Question], dict[str, Quirk]]:
    """Questions of a file, and a note on columns that mean nothing.

    Raises:
        DatasetError: listing what is wrong, with line numbers.
    """
    problems = Problems(path)
    rows = list(read_rows(path, problems))
    found = list(dict.fromkeys(column for _, row in rows for column in row))
    several = ("doc_id",) if len(documents) > 1 else ()
    if rows and (missing := missing_columns(found, ("question", *several))):
        problems.add(0, missing)
        problems.raise_if_any()
    columns = unknown_columns(rows, problems)
    questions = build_questions(rows, document_resolver(documents), problems, strip=True)
    problems.raise_if_any()
    if not columns:
        return questions, {}
    explanation = f"Columns of {path.name} with no meaning here; passed over: {_some(sorted(columns))}."
    return questions, {"column ignored": Quirk(len(columns), explanation)}


def read(root: Path, params: DatasetParams) -> Dataset:
    """Every PDF and every folder of page images below `root`.

    Raises:
        DatasetError: if there is no document at all, or the questions cannot be used.
    """
    path = questions_file(root, params)
    skip = set(QUESTION_FILES)
    if path is not None:
        skip.add(os.path.relpath(path, root).replace(os.sep, "/"))
    documents, notes = list_documents(root, skip)
    if not documents:
        raise DatasetError(
            f"{root} holds no documents: no PDF and no page images.",
            remedy=f"Put *.pdf files or folders of images ({', '.join(sorted(IMAGE_ENDINGS))}) there.",
        )
    questions: list[Question] = []
    if path is not None:
        questions, column_notes = read_questions(path, documents)
        notes = {**notes, **column_notes}
    name = "" if path is None else os.path.relpath(path, root).replace(os.sep, "/")
    return Dataset("folder", "mmlongbench", documents, questions, notes, name)
