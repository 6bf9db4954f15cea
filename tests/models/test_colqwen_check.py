"""What a freshly loaded encoder is refused for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from docmemo.errors import ModelLoadError
from docmemo.models.colqwen_check import KNOWN, check_embeddings, check_order, known_pages


class Encoder:
    """Knows the pages by their height: each is an axis, and so is the question to it."""

    def __init__(self, order: tuple[int, int, int] = (0, 1, 2), scale: float = 1.0, noise: float = 0.0) -> None:
        self.order, self.scale, self.noise = order, scale, noise
        self.heights = [page.height for page in known_pages()]

    def embed_images(self, images: Sequence[Image.Image]) -> list[np.ndarray]:
        axes = np.eye(4, dtype=np.float32) * self.scale
        made = [axes[[self.heights.index(image.height)]] for image in images]
        return [np.roll(array, 2) if self.noise and len(images) > 1 else array for array in made]

    def embed_query(self, query: str) -> np.ndarray:
        known = [question for _, question in KNOWN]
        return np.eye(4, dtype=np.float32)[[self.order[known.index(query)]]] * self.scale


def test_the_known_pages_differ_in_size_so_that_a_batch_of_them_is_padded() -> None:
    assert len({page.size for page in known_pages()}) == len(KNOWN)


def test_a_trained_encoder_passes() -> None:
    assert "agree" in check_embeddings(Encoder())
    assert "right order" in check_order(Encoder())


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 0, 0), (2, 2, 2), (0, 2, 1)])
def test_an_encoder_that_ranks_a_wrong_page_first_is_refused(order: tuple[int, int, int]) -> None:
    with pytest.raises(ModelLoadError, match="not those of a trained"):
        check_order(Encoder(order=order))


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="length 1"):
        check_embeddings(Encoder(scale=2.0))


def test_pages_that_change_beside_others_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="differently in a batch"):
        check_embeddings(Encoder(noise=1.0))


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="not finite"):
        check_embeddings(Encoder(scale=float("nan")))
