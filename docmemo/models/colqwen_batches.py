"""From page pictures to vectors, batch by batch: what a bad page, a full GPU or numbers that are not finite cost.

Knows the model by two methods only, so all of this is tested without torch.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

Floats32 = NDArray[np.float32]


class DeviceMemoryError(Exception):
    """A batch did not fit the device's memory."""


class PageModel(Protocol):
    """What embeds page pictures."""

    def embed_images(self, images: Sequence[Image.Image]) -> list[Floats32]:
        """One array (n_tokens, dim) a picture, without padding; the pictures are one batch.

        Raises:
            DeviceMemoryError: if the batch is too large.
        """

    def free_memory(self) -> None:
        """Give unused device memory back after a batch that was too large."""


@dataclass(frozen=True)
class BadPage:
    """Why a page has no vectors."""

    reason: str
    retryable: bool
    """Whether the page itself may be fine: memory, or an error of the model's."""


@dataclass
class Encoded:
    """Vectors of one document's pages."""

    vectors: dict[int, NDArray[np.float16]] = field(default_factory=dict)
    """Page to its array (n_tokens, dim)."""
    failures: dict[int, BadPage] = field(default_factory=dict)
    batch_size: int = 1
    """Pages a batch that were really used, the same for the whole document."""


class _BatchTooLargeError(Exception):
    """This batch size does not fit, a smaller one may."""


def encode_pages(model: PageModel, pages: Sequence[int], picture: Callable[[int], bytes], batch_size: int) -> Encoded:
    """Embed pages in order, `batch_size` at a time.

    A batch that does not fit the device's memory halves the batch size, and the document begins anew, since
    embeddings vary slightly with the batch size. A page that does not fit alone, cannot be decoded, or comes out
    with numbers that are not finite is a failure, and the others go on.

    Args:
        model: the encoder.
        pages: page numbers, ascending.
        picture: the encoded picture of a page.
        batch_size: pages a batch at most.
    """
    while True:
        try:
            return _encode(model, pages, picture, batch_size)
        except _BatchTooLargeError:
            model.free_memory()
            batch_size = max(1, batch_size // 2)


def _encode(model: PageModel, pages: Sequence[int], picture: Callable[[int], bytes], batch_size: int) -> Encoded:
    encoded = Encoded(batch_size=batch_size)
    batch: dict[int, Image.Image] = {}
    for page in pages:
        try:
            batch[page] = _decode(picture(page))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            encoded.failures[page] = BadPage(f"its picture cannot be read: {_describe(error)}", retryable=False)
        if len(batch) == batch_size:
            _embed(model, batch, encoded)
            batch = {}
    if batch:
        _embed(model, batch, encoded)
    return encoded


def _decode(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except UnidentifiedImageError as error:
        raise ValueError("not a picture") from error


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _embed(model: PageModel, batch: Mapping[int, Image.Image], encoded: Encoded) -> None:
    """Embed one batch; if the model stumbles over it, each of its pages alone, to find the one to blame."""
    try:
        _keep(batch, model.embed_images(list(batch.values())), encoded)
        return
    except DeviceMemoryError as error:
        if len(batch) > 1:
            raise _BatchTooLargeError from error
        model.free_memory()
        (page,) = batch
        encoded.failures[page] = BadPage("the device's memory is too small for it", retryable=True)
        return
    except (RuntimeError, ValueError, IndexError) as error:
        if len(batch) == 1:
            (page,) = batch
            passing = isinstance(error, RuntimeError)  # others say that the picture is of no use (a thin strip)
            encoded.failures[page] = BadPage(f"the model failed on it: {_describe(error)}", retryable=passing)
            return
    for page, image in batch.items():
        _embed(model, {page: image}, encoded)


def _keep(batch: Mapping[int, Image.Image], arrays: Sequence[Floats32], encoded: Encoded) -> None:
    for page, array in zip(batch, arrays, strict=True):
        if array.size == 0 or not np.isfinite(array).all():
            encoded.failures[page] = BadPage("its embedding holds numbers that are not finite", retryable=False)
        else:
            encoded.vectors[page] = array.astype(np.float16)
