"""What a freshly loaded encoder is tried on: three small pages and a question to each.

Under transformers 5 a checkpoint can load with weights at random and only print a table, and attention over padding
can give NaN; neither may reach the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from docmemo.errors import ModelError, ModelLoadError
from docmemo.models.colqwen_batches import Floats32

KNOWN = (
    (
        ("Rainfall in the valley", "January 81 mm", "February 64 mm", "March 112 mm", "Wettest month: March"),
        "Which month had the most rain in the valley?",
    ),
    (
        ("Interest rates of the bank", "Savings 1.5 per cent", "Mortgage 3.9 per cent"),
        "What interest does the bank ask for a mortgage?",
    ),
    (
        (
            "Timetable of the ferry",
            "Departs 08:15",
            "Departs 11:40",
            "Crossing: 35 minutes",
            "Bicycles free",
            "No dogs",
        ),
        "How long does the ferry take to cross?",
    ),
)
"""Lines of a page, and a question that this page answers."""
AGREEMENT = 0.95
"""Mean cosine of a page's vectors made alone and in a batch; real embeddings vary slightly with the batch."""


class Encoder(Protocol):
    """What is tried out."""

    def embed_images(self, images: Sequence[Image.Image]) -> list[Floats32]:
        """One array (n_tokens, dim) a picture."""

    def embed_query(self, query: str) -> Floats32:
        """Array (n_tokens, dim) of a query."""


def known_pages() -> list[Image.Image]:
    """The pictures; of different sizes, so that a batch of them has padding."""
    pages = []
    for lines, _ in KNOWN:
        page = Image.new("RGB", (448, 84 * len(lines)), "white")
        draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=30)
        for i, line in enumerate(lines):
            draw.text((16, 20 + 80 * i), line, fill="black", font=font)
        pages.append(page)
    return pages


def score(query: Floats32, page: Floats32) -> float:
    """MaxSim of one query and one page."""
    return float((query @ page.T).max(axis=1).sum())


def _query(encoder: Encoder, text: str) -> Floats32:
    try:
        return encoder.embed_query(text)
    except ModelError as error:
        raise ModelLoadError(f"The model cannot embed a known query: {error}") from error


def check_embeddings(encoder: Encoder) -> str:
    """Finite vectors of length 1, the same alone and in a batch up to rounding; what was found, in words.

    Raises:
        ModelLoadError: if not so.
    """
    pages = known_pages()
    together = encoder.embed_images(pages)
    alone = [encoder.embed_images([page])[0] for page in pages]
    for array in (*together, *alone, *(_query(encoder, text) for _, text in KNOWN)):
        if not array.size or not np.isfinite(array).all():
            raise ModelLoadError("The model's embedding of a known page or query holds numbers that are not finite.")
        if not np.allclose(np.linalg.norm(array, axis=1), 1.0, atol=0.02):
            raise ModelLoadError("The model's vectors of a known page or query do not have length 1.")
    if any(a.shape != b.shape for a, b in zip(together, alone, strict=True)):
        raise ModelLoadError("A known page has another number of vectors in a batch than alone.")
    agreement = min(float((a * b).sum(axis=1).mean()) for a, b in zip(together, alone, strict=True))
    if agreement < AGREEMENT:
        raise ModelLoadError(
            f"Known pages come out differently in a batch than alone (mean cosine {agreement:.3f}, at least "
            f"{AGREEMENT} is asked).",
            remedy="Install the versions in constraints.txt.",
        )
    return f"batch and single agree (mean cosine {agreement:.4f})"


def check_order(encoder: Encoder) -> str:
    """Each known question ranks its own page first; what was found, in words.

    Raises:
        ModelLoadError: if not, which is what weights at random look like.
    """
    pages = [encoder.embed_images([page])[0] for page in known_pages()]
    for i, (_, query) in enumerate(KNOWN):
        vectors = _query(encoder, query)
        scores = [score(vectors, page) for page in pages]
        if int(np.argmax(scores)) != i:
            raise ModelLoadError(
                f"The model ranks a wrong page first for {query!r} (scores {', '.join(f'{s:.2f}' for s in scores)}): "
                "its weights are not those of a trained ColQwen2.5.",
                remedy="Download the model again, or install the versions in constraints.txt.",
            )
    return "known pages in the right order"
