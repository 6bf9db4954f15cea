"""Digests of what a step reads of a page archive, so that a new image does not make text be worked on anew."""

from __future__ import annotations

from docmemo.fingerprint import digest
from docmemo.types import PageSet


def texts_digest(page_set: PageSet) -> str:
    """Of the pages' texts in order, and nothing else."""
    return digest([page.text for page in page_set.pages])


def lines_digest(page_set: PageSet) -> str:
    """Of everything but the images: texts, boxes, sizes, numbers, outline, language.

    Left out: the document's own digest and the images, which no text step reads.
    """
    images = {"image", "image_width", "image_height"}
    return digest(page_set.model_dump(mode="json", exclude={"sha256": True, "pages": {"__all__": images}}))
