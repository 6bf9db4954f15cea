"""What the tests of the text steps share: archives of small page sets, and jobs on them."""

from __future__ import annotations

from pathlib import Path

from docmemo.artifacts import PAGES_MEMBER, write_archive
from docmemo.pipeline.step import Job
from docmemo.types import Document, PageSet


def archive(folder: Path, page_set: PageSet, image: bytes = b"x") -> Path:
    """A page archive with one picture."""
    path = folder / "d.pages.zip"
    write_archive(path, PAGES_MEMBER, page_set, [("0001.jpg", image)])
    return path


def job(inputs: dict[str, Path]) -> Job:
    """A job on one document."""
    return Job(Document(doc_id="d.pdf", path="d.pdf", n_pages=2), Path("d.pdf"), inputs)
