"""Vectors of pages and queries, and their scores beside colpali-engine's own."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from docmemo.errors import ModelError, ModelUnavailableError
from docmemo.models.colqwen import ColQwen, import_torch
from docmemo.models.colqwen_batches import DeviceMemoryError, encode_pages
from docmemo.retrieval.late_interaction import PageVectors, maxsim


def page(number: int, width: int = 200, height: int = 260) -> Image.Image:
    made = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(made)
    for row in range(8):
        draw.text((10, 20 + 28 * row), f"Page {number}, line {row}: {number * 100 + row} units")
    draw.rectangle((20, 60, 20 + 15 * number, 120), fill=(30 * number % 255, 90, 120))
    return made


def data(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


PAGES = {number: page(number, 150 + 60 * (number % 3), 200 + 40 * (number % 4)) for number in range(1, 8)}


def test_vectors_have_length_one_and_no_padding(model: ColQwen) -> None:
    batch = list(PAGES.values())
    together = model.embed_images(batch)
    assert len({len(array) for array in together}) > 1, "pages of different sizes"
    for image, array in zip(batch, together, strict=True):
        assert array.shape == model.embed_images([image])[0].shape
        np.testing.assert_allclose(np.linalg.norm(array, axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_batch_size_changes_vectors_no_more_than_rounding_does(model: ColQwen, size: int) -> None:
    encoded = encode_pages(model, list(PAGES), lambda number: data(PAGES[number]), size)
    alone = encode_pages(model, list(PAGES), lambda number: data(PAGES[number]), 1)
    assert encoded.batch_size == size
    for number in PAGES:
        np.testing.assert_allclose(
            encoded.vectors[number].astype(np.float32), alone.vectors[number].astype(np.float32), atol=2e-3
        )


def test_padding_that_is_not_finite_reaches_neither_vectors_nor_scores(
    model: ColQwen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attention over rows that are padding alone gives NaN with some versions of torch."""
    torch = import_torch()
    forward = model._model.forward

    def with_nan(*arguments: Any, **inputs: Any) -> Any:
        output = forward(*arguments, **inputs).clone()
        output[~inputs["attention_mask"].bool()] = torch.nan
        return output

    clean = model.embed_images(list(PAGES.values()))
    monkeypatch.setattr(model._model, "forward", with_nan)
    dirty = model.embed_images(list(PAGES.values()))
    for a, b in zip(clean, dirty, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_page_whose_own_vectors_are_not_finite_is_recorded_and_the_others_are_kept(
    model: ColQwen, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = import_torch()
    forward = model._model.forward

    def second_is_nan(*arguments: Any, **inputs: Any) -> Any:
        output = forward(*arguments, **inputs).clone()
        if len(output) > 1:
            output[1, -1] = torch.nan
        return output

    monkeypatch.setattr(model._model, "forward", second_is_nan)
    encoded = encode_pages(model, [1, 2, 3], lambda number: data(PAGES[number]), 3)
    assert sorted(encoded.vectors) == [1, 3]
    assert "not finite" in encoded.failures[2].reason


def test_a_query_that_is_not_finite_is_an_error(model: ColQwen, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = model._model.forward
    monkeypatch.setattr(model._model, "forward", lambda *a, **inputs: forward(*a, **inputs) * float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        model.embed_query("hello")


class SmallMemory:
    """A model whose device takes `fits` pages at once; says so as torch does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, model: ColQwen, fits: int) -> None:
        torch = import_torch()
        forward = model._model.forward
        self.sizes: list[int] = []

        def limited(*arguments: Any, **inputs: Any) -> Any:
            self.sizes.append(len(inputs["input_ids"]))
            if self.sizes[-1] > fits:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
            return forward(*arguments, **inputs)

        monkeypatch.setattr(model._model, "forward", limited)


def test_out_of_memory_halves_the_batch_until_it_fits(model: ColQwen, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SmallMemory(monkeypatch, model, fits=1)
    encoded = encode_pages(model, list(PAGES), lambda number: data(PAGES[number]), 4)
    assert (encoded.batch_size, sorted(encoded.vectors), encoded.failures) == (1, list(PAGES), {})
    assert memory.sizes == [4, 2, *[1] * 7]


def test_a_batch_on_a_full_cpu_is_told_apart_from_an_error_of_the_model(
    model: ColQwen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str) -> None:
        def forward(*_: Any, **__: Any) -> Any:
            raise RuntimeError(text)

        monkeypatch.setattr(model._model, "forward", forward)

    fail("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")
    with pytest.raises(DeviceMemoryError):
        model.embed_images([PAGES[1]])
    with pytest.raises(ModelUnavailableError, match="no memory left on cpu"):
        model.embed_query("hello")
    fail("The size of tensor a (3) must match the size of tensor b (4)")
    with pytest.raises(RuntimeError, match="size of tensor"):
        model.embed_images([PAGES[1]])


def test_scores_equal_those_of_colpali_engine(model: ColQwen) -> None:
    torch = import_torch()
    from colpali_engine.models import ColQwen2_5_Processor

    vectors = model.embed_images(list(PAGES.values()))
    queries = [model.embed_query(text) for text in ("units on page 3", "a blue rectangle", "x")]
    expected = [
        ColQwen2_5_Processor.score_multi_vector(
            [torch.from_numpy(query) for query in queries], [torch.from_numpy(array)], device="cpu"
        ).numpy()[:, 0]
        for array in vectors  # a page a call: beside a longer page its padding would count as vectors
    ]
    offsets = np.cumsum([0, *map(len, vectors)])
    found = [maxsim(query, np.concatenate(vectors), offsets) for query in queries]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-4)


def test_scores_of_pages_of_one_length_equal_those_of_colpali_engine_in_one_call() -> None:
    torch = import_torch()
    from colpali_engine.models import ColQwen2_5_Processor

    generator = np.random.default_rng(0)
    pages = [rows(generator, 40) for _ in range(150)]
    queries = [rows(generator, 12), rows(generator, 30)]
    expected = ColQwen2_5_Processor.score_multi_vector(
        [torch.from_numpy(query) for query in queries], [torch.from_numpy(array) for array in pages], device="cpu"
    ).numpy()
    offsets = np.cumsum([0, *map(len, pages)])
    found = [maxsim(query, np.concatenate(pages), offsets) for query in queries]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def rows(generator: np.random.Generator, n: int) -> np.ndarray:
    """Random vectors of length 1."""
    made = generator.standard_normal((n, 128)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_scores_of_stored_vectors_differ_from_them_by_float16_only(model: ColQwen) -> None:
    vectors = model.embed_images(list(PAGES.values()))
    query = model.embed_query("units on page 3")
    exact = maxsim(query, np.concatenate(vectors), np.cumsum([0, *map(len, vectors)]))
    stored = PageVectors.of_pages(vectors).scores(query)
    np.testing.assert_allclose(stored, exact, rtol=1e-3)
    assert np.argsort(stored).tolist() == np.argsort(exact).tolist()


def test_a_picture_too_thin_for_the_model_costs_that_page(model: ColQwen) -> None:
    pictures = {1: data(PAGES[1]), 2: data(Image.new("RGB", (2100, 4), "white")), 3: data(PAGES[3])}
    encoded = encode_pages(model, list(pictures), pictures.__getitem__, 3)
    assert sorted(encoded.vectors) == [1, 3]
    assert "aspect ratio" in encoded.failures[2].reason
    assert not encoded.failures[2].retryable


@pytest.mark.parametrize(
    "query", ["", "x", "Was kostet das? 日本語 العربية", "long " * 300, "<|image_pad|> on <|video_pad|>"]
)
def test_any_query_has_finite_vectors(model: ColQwen, query: str) -> None:
    vectors = model.embed_query(query)
    assert vectors.shape[1] == 128
    assert np.isfinite(vectors).all()
