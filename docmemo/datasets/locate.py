"""Where a benchmark's questions and documents lie below a folder: every copy is laid out in its own way."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from docmemo.config import DatasetParams
from docmemo.datasets.base import Quirk
from docmemo.errors import DatasetError
from docmemo.types import Document

_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".gif", ".bmp")
_PAGE_IMAGE = re.compile(r"(.+)_(\d{1,6})\.(?:png|jpe?g|webp|tiff?)", re.IGNORECASE)


def walk(root: Path) -> Iterator[tuple[str, list[str]]]:
    """(folder relative to `root`, its file names), both sorted; '' is `root` itself.

    Links are followed, each folder is entered once, and hidden files and folders are left out.
    """
    entered: set[tuple[int, int]] = set()
    for folder, folders, files in os.walk(root, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = os.path.relpath(folder, root).replace(os.sep, "/")
        yield ("" if relative == "." else relative), sorted(name for name in files if not name.startswith("."))


def join(folder: str, name: str) -> str:
    """A path below the root from `walk`'s pair."""
    return f"{folder}/{name}" if folder else name


def page_image(name: str) -> tuple[str, int] | None:
    """Document and page index (as in the name, mostly from 0) of `NAME_INDEX.png`; None for other names."""
    match = _PAGE_IMAGE.fullmatch(name)
    return (match[1], int(match[2])) if match else None


@dataclass
class ImageSet:
    """The page images of one document in one folder."""

    folder: str
    names: dict[int, str] = field(default_factory=dict)
    """Page index to file name."""
    repeated: int = 0
    """Files whose index another file of the document has too."""

    def missing(self, n_pages: int) -> list[int]:
        """Indices from 0 without a file, up to `n_pages` or the last that is there, whichever is more."""
        return [i for i in range(max(n_pages, max(self.names, default=-1) + 1)) if i not in self.names]


@dataclass
class Found:
    """Documents below a folder, by the names benchmarks call them."""

    images: dict[str, list[ImageSet]] = field(default_factory=dict)
    """Document to its page images, a set a folder, in the order of folders."""
    documents_in: dict[str, int] = field(default_factory=dict)
    """Folder to the number of documents whose page images lie there; other images count as one more."""
    pdfs: dict[str, list[str]] = field(default_factory=dict)
    """File name without .pdf to the paths that have it."""


def find_documents(root: Path) -> Found:
    """Page images and PDFs below `root`."""
    found = Found()
    for folder, names in walk(root):
        sets: dict[str, ImageSet] = {}
        others = False
        for name in names:
            if name.lower().endswith(".pdf"):
                found.pdfs.setdefault(name[:-4], []).append(join(folder, name))
            elif (parts := page_image(name)) is not None:
                images = sets.setdefault(parts[0], ImageSet(folder))
                images.repeated += parts[1] in images.names
                images.names.setdefault(parts[1], name)
            else:
                others = others or name.lower().endswith(_IMAGES)
        found.documents_in[folder] = len(sets) + others
        for document, images in sets.items():
            found.images.setdefault(document, []).append(images)
    return found


def find_questions(root: Path, params: DatasetParams, names: Sequence[str], folders: Sequence[str]) -> str:
    """The questions file relative to `root`: the one that is named, else the first of `names` in `folders`.

    Raises:
        DatasetError: if there is none; it lists what was looked for.
    """
    if params.questions is not None:
        if not (root / params.questions).is_file():
            raise DatasetError(
                f"The questions file {root / params.questions} does not exist.",
                remedy="Correct dataset.questions in params.yaml: a file inside the dataset's folder.",
            )
        return params.questions
    for folder in folders:
        for name in names:
            if (root / folder / name).is_file():
                return f"{folder}/{name}" if folder else name
    raise DatasetError(
        f"{root} holds no questions of {params.format}: none of {', '.join(names)}"
        + (f", there or in {', '.join(f for f in folders if f)}." if any(folders) else "."),
        remedy=f"Set dataset.root to the benchmark's folder, name the file in dataset.questions, "
        f"or get the benchmark with `docmemo data get {params.format}`.",
    )


def missing_note(documents: Iterable[Document]) -> dict[str, Quirk]:
    """A note on documents that questions name and the folder lacks."""
    missing = sum(document.status == "failed" for document in documents)
    if not missing:
        return {}
    explanation = "Named by questions but not in the folder; its questions fail with that reason and are counted."
    return {"document missing": Quirk(missing, explanation)}
