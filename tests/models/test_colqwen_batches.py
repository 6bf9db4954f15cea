from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from docmemo.models.colqwen_batches import DeviceMemoryError, encode_pages


def picture(shade: int) -> bytes:
    """A grey page; its shade tells pages apart."""
    data = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, shade, shade)).save(data, "PNG")
    return data.getvalue()


class FakeModel:
    """Vectors that hold the page's shade and the size of its batch; `fits` is the most pages its memory takes."""

    def __init__(self, fits: int = 99, bad: int | None = None, broken: int | None = None) -> None:
        self.fits, self.bad, self.broken = fits, bad, broken
        self.batches: list[list[int]] = []
        self.freed = 0

    def embed_images(self, images: Sequence[Image.Image]) -> list[np.ndarray]:
        shades = [image.getpixel((0, 0))[0] for image in images]
        self.batches.append(shades)
        if len(shades) > self.fits:
            raise DeviceMemoryError("full")
        if self.broken in shades:
            raise RuntimeError("shape mismatch")
        made = [np.full((2, 3), shade + len(shades) / 100, np.float32) for shade in shades]
        for shade, array in zip(shades, made, strict=True):
            if shade == self.bad:
                array[1, 2] = np.nan
        return made

    def free_memory(self) -> None:
        self.freed += 1


def encode(model: FakeModel, n: int = 5, size: int = 4, **other: bytes):
    pictures = {page: picture(page) for page in range(1, n + 1)} | {int(k[1:]): v for k, v in other.items()}
    return encode_pages(model, list(pictures), lambda page: pictures[page], size)


def test_pages_go_in_order_in_batches_of_the_size_asked_for() -> None:
    model = FakeModel()
    encoded = encode(model)
    assert model.batches == [[1, 2, 3, 4], [5]]
    assert (list(encoded.vectors), encoded.batch_size, encoded.failures) == ([1, 2, 3, 4, 5], 4, {})
    assert encoded.vectors[1].dtype == np.float16


def test_too_little_memory_halves_the_batch_for_the_whole_document() -> None:
    model = FakeModel(fits=1)
    encoded = encode(model, n=5)
    assert encoded.batch_size == 1
    assert model.batches == [[1, 2, 3, 4], [1, 2], [1], [2], [3], [4], [5]]
    assert model.freed == 2
    assert all(np.allclose(encoded.vectors[page], page + 0.01, rtol=1e-3) for page in range(1, 6))


def test_pages_embedded_before_the_memory_ran_out_are_embedded_again_in_the_smaller_batches() -> None:
    class FillsUp(FakeModel):
        def embed_images(self, images: Sequence[Image.Image]) -> list[np.ndarray]:
            self.fits = 2 if len(self.batches) else 4
            return super().embed_images(images)

    model = FillsUp()
    encoded = encode(model, n=8)
    assert encoded.batch_size == 2
    assert all(np.allclose(encoded.vectors[page], page + 0.02, rtol=1e-3) for page in range(1, 9))


def test_a_page_too_large_alone_is_a_failure_that_may_pass_and_the_rest_goes_on() -> None:
    class OneIsHuge(FakeModel):
        def embed_images(self, images: Sequence[Image.Image]) -> list[np.ndarray]:
            self.fits = 0 if any(image.getpixel((0, 0))[0] == 3 for image in images) else 99
            return super().embed_images(images)

    encoded = encode(OneIsHuge())
    assert sorted(encoded.vectors) == [1, 2, 4, 5]
    assert "memory" in encoded.failures[3].reason
    assert encoded.failures[3].retryable


def test_a_picture_that_cannot_be_read_costs_that_page() -> None:
    encoded = encode(FakeModel(), p2=b"no picture", p4=picture(4)[:20])
    assert sorted(encoded.vectors) == [1, 3, 5]
    assert sorted(encoded.failures) == [2, 4]
    assert not any(bad.retryable for bad in encoded.failures.values())


def test_numbers_that_are_not_finite_never_become_vectors() -> None:
    encoded = encode(FakeModel(bad=3))
    assert sorted(encoded.vectors) == [1, 2, 4, 5]
    assert "not finite" in encoded.failures[3].reason


def test_an_error_of_the_model_is_traced_to_its_page() -> None:
    encoded = encode(FakeModel(broken=2))
    assert sorted(encoded.vectors) == [1, 3, 4, 5]
    assert "shape mismatch" in encoded.failures[2].reason
    assert encoded.failures[2].retryable


@pytest.mark.parametrize("size", [1, 3, 7])
def test_no_page_is_lost_or_doubled(size: int) -> None:
    model = FakeModel()
    assert sorted(encode(model, n=7, size=size).vectors) == [1, 2, 3, 4, 5, 6, 7]
    assert max(len(batch) for batch in model.batches) == size


def test_a_document_without_pages_has_no_vectors() -> None:
    assert encode(FakeModel(), n=0).vectors == {}
