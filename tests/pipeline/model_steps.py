"""What the tests of the steps that ask a model share: documents with pictures of their pages, and running a step."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image

from docmemo.artifacts import PAGES_MEMBER, write_archive
from docmemo.config import Params, parse_params
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.runner import Summary, run_step
from docmemo.pipeline.step import Job, Step
from docmemo.store import Store
from docmemo.types import Document, Page, PageSet
from tests.retrieval.build import document, page

ENTRY = {"provider": "openai_compatible", "id": "scripted"}
TOPICS = ("shipyards", "lighthouses", "breakwaters", "pilots", "ferries", "tides")


def picture(number: int, size: tuple[int, int] = (300, 400)) -> bytes:
    """A page's JPEG, different for every page."""
    data = io.BytesIO()
    Image.new("RGB", size, (number * 20 % 256, 90, 160)).save(data, "JPEG")
    return data.getvalue()


def text_page(number: int, topic: str) -> Page:
    """A page about a topic."""
    return page(
        number,
        f"The {topic} of the harbour were counted {number * 100} times in the year before last.",
        f"Nobody knows why the {topic} were counted so often in the harbour.",
        image=f"{number:04}.jpg",
        image_width=300,
        image_height=400,
    )


def write_pages(path: Path, page_set: PageSet, size: tuple[int, int] = (300, 400)) -> Path:
    """A page archive with a picture a page."""
    pictures = [(p.image, picture(p.page, size)) for p in page_set.pages if p.image]
    write_archive(path, PAGES_MEMBER, page_set, pictures)
    return path


def pages_of(doc_id: str, n_pages: int, first: int = 1) -> PageSet:
    """A document whose pages are about different topics."""
    return document(*(text_page(n, TOPICS[(n + first) % len(TOPICS)]) for n in range(1, n_pages + 1)), doc_id=doc_id)


def job(path: Path, page_set: PageSet, **inputs: Path) -> Job:
    """A job on a page archive."""
    doc = Document(doc_id=page_set.doc_id, path=page_set.doc_id, n_pages=len(page_set.pages))
    return Job(doc, Path(page_set.doc_id), {"render": path, **inputs})


def params(**sections: dict[str, Any]) -> Params:
    """Parameters with both offline roles played by the scripted model."""
    model = {"id": "scripted", "max_tokens": 512}
    values: dict[str, Any] = {
        "summarize": {"backend": "vlm", "model": model},
        "schema": {"backend": "vlm", "model": model},
    }
    for name, section in sections.items():
        values[name] |= section
    return parse_params(values)


def run(step: Step, jobs: list[Job], folder: Path) -> Summary:
    """Run a step over some documents, with the store at `folder`/store and the artifacts in `folder`/out."""
    with WorkPool(0, 30.0) as pool:
        return run_step(step, jobs, folder / "out", store=Store(folder / "store"), pool=pool, parallel=2)
