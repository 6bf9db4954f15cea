"""Where the benchmarks are published, under which licence, and which of a home's files are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from docmemo.errors import DatasetError

Format = Literal["mmlongbench", "longdocurl", "papertab", "papertext"]


@dataclass(frozen=True)
class Home:
    """One benchmark and its public repository."""

    name: Format
    """The dataset format that reads it."""
    title: str
    contents: str
    """Documents and questions as published."""
    licence: str
    repo: str
    """Data set repository on the Hugging Face Hub."""
    revision: str
    """Commit or branch that is taken unless another one is asked for."""
    files: tuple[str, ...]
    """Patterns of the repository's files that are needed."""
    size: str
    """Of the download."""
    pages: Literal["pdf", "images"] = "pdf"
    """What its documents are: PDFs, or page images with PDFs only for those that have none."""

    @property
    def url(self) -> str:
        """Its page."""
        return f"https://huggingface.co/datasets/{self.repo}"


_UDA = "qinchuanhui/UDA-QA"
_UDA_REVISION = "d4367103fe8fe86b3bb76c66be8eafc4fb4117b2"

HOMES: dict[str, Home] = {
    home.name: home
    for home in (
        Home(
            name="mmlongbench",
            title="MMLongBench-Doc",
            contents="135 PDFs, 1,091 questions",
            licence="CC BY-NC 4.0",
            repo="yubo2333/MMLongBench-Doc",
            revision="2ff6aa9237fc777b6627dc57a486e9225ac5fb86",
            files=("data/*.parquet", "documents/*.pdf", "samples.json"),
            size="0.7 GB",
        ),
        Home(
            name="longdocurl",
            title="LongDocURL",
            contents="396 documents of page images, 2,325 questions",
            licence="Apache 2.0 (questions); the pages belong to their publishers",
            repo="dengchao/LongDocURL",
            revision="main",
            files=("LongDocURL_public.jsonl", "png_files_p*.tar.gz"),
            size="5.1 GB",
            pages="images",
        ),
        Home(
            name="papertab",
            title="PaperTab of UDA",
            contents="307 PDFs, 393 questions",
            licence="CC BY-SA 4.0",
            repo=_UDA,
            revision=_UDA_REVISION,
            files=("extended_qa_info/paper_tab_qa.json", "src_doc_files/paper_docs.zip"),
            size="0.9 GB",
        ),
        Home(
            name="papertext",
            title="PaperText of UDA",
            contents="1,087 PDFs, 2,804 questions",
            licence="CC BY-SA 4.0",
            repo=_UDA,
            revision=_UDA_REVISION,
            files=("extended_qa_info/paper_text_qa.json", "src_doc_files/paper_docs.zip"),
            size="0.9 GB, the same papers as PaperTab",
        ),
    )
}
"""Format to its home. A commit is pinned where one is known, so that a run can be repeated."""


def get_home(name: str, *, pdf: bool = False) -> Home:
    """The home of a benchmark.

    Args:
        name: the benchmark's format.
        pdf: take PDFs where the benchmark is made of page images: half the size, and their text needs no OCR. The
            pages are the same, since its authors made the images of them.

    Raises:
        DatasetError: naming the known ones, if there is none of that name.
    """
    if name not in HOMES:
        raise DatasetError(f"There is no benchmark {name!r}.", remedy=f"Known benchmarks: {', '.join(HOMES)}.")
    home = HOMES[name]
    if not pdf or home.pages == "pdf":
        return home
    contents = home.contents.replace("documents of page images", "PDFs")
    return replace(
        home, contents=contents, files=("LongDocURL_public.jsonl", "pdf_files.tar.gz"), size="2.6 GB", pages="pdf"
    )
