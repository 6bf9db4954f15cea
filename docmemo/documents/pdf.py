"""Opening a document: a PDF, one image file, or a folder of page images, told apart by content, not by name.

MuPDF is imported inside functions, so that a parent process that only hands out work never loads it.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

from docmemo.errors import (
    DocumentError,
    EmptyDocumentError,
    PasswordProtectedError,
    UnreadableDocumentError,
)
from docmemo.fingerprint import digest, digest_file
from docmemo.types import Box, Outline

Kind = Literal["pdf", "images"]

IMAGE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".jp2", ".ppm"}
)

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"\x00\x00\x00\x0cjP  ", "jp2"),
    (b"P6", "pnm"),
    (b"P5", "pnm"),
)

_OTHER: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive or an Office file (docx, pptx, xlsx)"),
    (b"\xd0\xcf\x11\xe0", "an old Office file (doc, ppt, xls)"),
    (b"{\\rtf", "a rich text file"),
    (b"%!PS", "a PostScript file"),
    (b"<!DOCTYPE", "a web page"),
    (b"<!doctype", "a web page"),
    (b"<html", "a web page"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
)

_COPY_AGAIN = "Get the file again from its source, or try `qpdf IN.pdf OUT.pdf` to repair it."


_silenced: list[bool] = []


def mupdf() -> ModuleType:
    """The pymupdf module, silenced, and without its layout model (which costs every worker a second and 200 MB)."""
    if "pymupdf" not in sys.modules:
        # importing pymupdf imports pymupdf.layout, which loads its models; a None entry makes that an ImportError
        sys.modules["pymupdf.layout"] = None  # type: ignore[assignment]
        try:
            importlib.import_module("pymupdf")
        finally:
            del sys.modules["pymupdf.layout"]
    module: Any = importlib.import_module("pymupdf")
    if not _silenced:
        module.TOOLS.mupdf_display_errors(False)
        module.TOOLS.mupdf_display_warnings(False)
        module.set_messages(pylogging=True, pylogging_name="docmemo.mupdf", pylogging_level=logging.DEBUG)
        _silenced.append(True)
    return cast(ModuleType, module)


def parser_errors() -> tuple[type[Exception], ...]:
    """What MuPDF and its binding raise on broken input."""
    return (
        mupdf().mupdf.FzErrorBase,
        RuntimeError,
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
    )


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sorts "page2.png" before "page10.png"; the name itself breaks ties."""
    parts = re.findall(r"\d+|\D+", name.lower())
    return [(0, int(p), "") if p.isascii() and p.isdigit() else (1, 0, p) for p in parts], name


def _folder_and_pattern(path: Path) -> tuple[Path, str]:
    """A folder of page images and which of its files are meant: `scans/17_*` are some of those in `scans`."""
    return (path.parent, path.name) if "*" in path.name and not path.is_dir() else (path, "*")


def image_files(path: Path) -> list[Path]:
    """The page images of a folder in natural order; hidden and other files do not count.

    Args:
        path: the folder, or the folder and a pattern (`*`, `?`, `[0-9]`) where several documents share it.
    """
    folder, pattern = _folder_and_pattern(path)
    try:
        found = [p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file()]
        found = [p for p in found if fnmatchcase(p.name, pattern)]
    except OSError as error:
        raise UnreadableDocumentError(f"The folder {folder.name!r} cannot be read: {error.strerror}.") from error
    return sorted((p for p in found if not p.name.startswith(".")), key=lambda p: natural_key(p.name))


def digest_source(path: Path, kind: Kind) -> str:
    """sha256 of the file's bytes; for page images that of the ordered list of (name, sha256).

    Raises:
        UnreadableDocumentError: if it cannot be read.
    """
    try:
        if kind == "images":
            return digest([[p.name, digest_file(p)] for p in image_files(path)])
        return digest_file(path)
    except OSError as error:
        raise UnreadableDocumentError(
            f"{path.name!r} cannot be read: {error.strerror or error}.",
            remedy="Check that the file exists and that you may read it.",
        ) from error


def sniff(head: bytes, suffix: str) -> str:
    """MuPDF's file type for a file that starts with `head` (about 2 kB).

    Raises:
        UnreadableDocumentError: if it is neither a PDF nor an image; says what it looks like.
    """
    if b"%PDF-" in head[:1100]:
        return "pdf"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if suffix.lower() == ".pdf" and re.search(rb"\d+ \d+ obj\b", head):
        return "pdf"  # lost its header; MuPDF repairs such files
    stripped = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    what = next((name for magic, name in _OTHER if stripped.startswith(magic)), "")
    if not what:
        control = sum(b < 9 or 13 < b < 32 for b in head)
        what = "plain text" if head and control == 0 else "none of the formats known here"
    raise UnreadableDocumentError(
        f"The file is not a PDF or an image; it looks like {what}.",
        remedy="Convert it to PDF, or remove it from the dataset.",
    )


def _open_file(path: Path) -> Any:
    """A pymupdf.Document with at least one page and no password in the way."""
    pymupdf = mupdf()
    try:
        size = path.stat().st_size
        with path.open("rb") as handle:
            head = handle.read(2048)
    except OSError as error:
        raise UnreadableDocumentError(
            f"The file cannot be read: {error.strerror or error}.",
            remedy="Check that the file exists and that you may read it.",
        ) from error
    if size == 0:
        raise EmptyDocumentError("The file is empty (0 bytes).", remedy="Get the file again from its source.")
    filetype = sniff(head, path.suffix)
    failures: tuple[type[Exception], ...] = (*parser_errors(), OSError)
    try:
        if filetype == "webp":
            document = pymupdf.open(stream=_as_png(path), filetype="png")
        else:
            document = pymupdf.open(str(path), filetype=filetype)
        if document.needs_pass:
            raise PasswordProtectedError(
                "The document needs a password to be opened.",
                remedy="Remove the password with `qpdf --password=... --decrypt IN.pdf OUT.pdf`.",
            )
        n_pages = document.page_count
    except DocumentError:
        raise
    except failures as error:
        reason = " ".join(str(error).split()).removesuffix(".").replace(str(path), path.name)
        raise UnreadableDocumentError(f"The file is damaged or truncated: {reason}.", remedy=_COPY_AGAIN) from error
    if n_pages == 0:
        raise EmptyDocumentError("The document has no pages.", remedy="Remove it from the dataset.")
    return document


def _as_png(path: Path) -> bytes:
    """An image MuPDF does not read, by way of Pillow."""
    import io

    from PIL import Image

    with Image.open(path) as image:
        out = io.BytesIO()
        image.convert("RGB").save(out, "PNG")
    return out.getvalue()


class Source:
    """An open document. Pages are 1-based. Belongs to one process and one thread (MuPDF is not thread-safe)."""

    def __init__(self, path: Path, kind: Kind) -> None:
        """Open `path`.

        Raises:
            PasswordProtectedError, EmptyDocumentError, UnreadableDocumentError: each with a remedy.
        """
        self.path = path
        self.kind = kind
        self._files: list[Path] = []
        self._document: Any = None
        self._image: tuple[int, Any] | None = None
        if kind == "images":
            self._files = image_files(path)
            if not self._files:
                raise EmptyDocumentError(
                    f"The folder {path.name!r} has no page images.",
                    remedy=f"Page images end in {', '.join(sorted(IMAGE_SUFFIXES))}.",
                )
            self.n_pages = len(self._files)
        else:
            self._document = _open_file(path)
            self.n_pages = int(self._document.page_count)

    @property
    def is_pdf(self) -> bool:
        """Whether pages are PDF pages; otherwise each is one picture."""
        return self._document is not None and bool(self._document.is_pdf)

    def page(self, number: int) -> Any:
        """The pymupdf.Page of a 1-based page number. Only the last page asked for of an image folder stays valid.

        Raises:
            DocumentError: for an image file that cannot be opened.
            Exception: one of `parser_errors()` for a damaged PDF page.
        """
        if not 1 <= number <= self.n_pages:
            raise IndexError(f"page {number} of {self.n_pages}")
        if self._document is not None:
            return self._document[number - 1]
        if self._image is None or self._image[0] != number:
            if self._image is not None:
                self._image[1].close()
                self._image = None
            self._image = (number, _open_file(self._files[number - 1]))
        return self._image[1][0]

    def label(self, number: int) -> str:
        """The PDF's own label of a page; '' when it has none or it cannot be read."""
        if not self.is_pdf:
            return ""
        try:
            return " ".join(str(self._document[number - 1].get_label() or "").split())
        except parser_errors():
            return ""

    def outline(self) -> list[Outline]:
        """The bookmarks that lead to a page of this document; a broken outline gives what could be read."""
        if not self.is_pdf:
            return []
        try:
            entries = self._document.get_toc(simple=True)
        except parser_errors():
            return []
        return clean_outline([(e[0], e[1], e[2]) for e in entries], self.n_pages)

    def close(self) -> None:
        """Close the files."""
        for document in (self._document, self._image[1] if self._image else None):
            if document is not None:
                with contextlib.suppress(*parser_errors()):
                    document.close()
        self._document = self._image = None


def clean_outline(entries: Sequence[tuple[int, str, int]], n_pages: int) -> list[Outline]:
    """Outline from (level, title, page): an entry without a page takes that of its first child, or is dropped."""
    cleaned = []
    for i, (level, title, page) in enumerate(entries):
        text = " ".join(str(title).replace("\x00", "").split())
        target = page
        for later, _, inner in entries[i + 1 :]:
            if 1 <= target <= n_pages or later <= level:
                break
            target = inner
        if text and 1 <= target <= n_pages:
            cleaned.append(Outline(level=max(1, int(level)), title=text, page=int(target)))
    return cleaned


_cached: tuple[tuple[str, str, int, int], Source] | None = None


def cached_source(path: Path, kind: Kind) -> Source:
    """The document, kept open by this process until it asks for another one."""
    global _cached
    try:
        stat = (_folder_and_pattern(path)[0] if kind == "images" else path).stat()
    except OSError as error:
        raise UnreadableDocumentError(f"The file cannot be read: {error.strerror or error}.") from error
    key = (str(path), kind, stat.st_mtime_ns, stat.st_size)
    if _cached is not None and _cached[0] == key:
        return _cached[1]
    if _cached is not None:
        _cached[1].close()
        _cached = None
    source = Source(path, kind)
    _cached = (key, source)
    return source


@contextlib.contextmanager
def open_source(path: Path, kind: Kind) -> Iterator[Source]:
    """The document, closed afterwards."""
    source = Source(path, kind)
    try:
        yield source
    finally:
        source.close()


def inspect_document(path: Path, kind: Kind) -> int:
    """Number of pages of a document that can be used.

    Raises:
        PasswordProtectedError, EmptyDocumentError, UnreadableDocumentError: each with its remedy.
    """
    with open_source(path, kind) as source:
        errors: tuple[type[Exception], ...] = (*parser_errors(), DocumentError)
        last: Exception | None = None
        for number in sorted({1, source.n_pages, (source.n_pages + 1) // 2}):
            try:
                source.page(number)
            except errors as error:
                last = error
            else:
                return source.n_pages
        raise UnreadableDocumentError(
            f"The file says it has {source.n_pages} pages, but none can be read: {last}.", remedy=_COPY_AGAIN
        )


def displayed_box(page: Any, box: Sequence[float]) -> Box | None:
    """A box in points of the unrotated page as fractions of the displayed page; None if it lies outside of it."""
    rect = mupdf().Rect(*box) * page.rotation_matrix
    width, height = page.rect.width, page.rect.height
    if width <= 0 or height <= 0:
        return None
    x0, x1 = sorted((rect.x0 / width, rect.x1 / width))
    y0, y1 = sorted((rect.y0 / height, rect.y1 / height))
    if not (x0 < 1 and y0 < 1 and x1 > 0 and y1 > 0):  # also false for NaN
        return None
    return (
        round(max(0.0, x0), 5),
        round(max(0.0, y0), 5),
        round(min(1.0, x1), 5),
        round(min(1.0, y1), 5),
    )
