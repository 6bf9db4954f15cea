"""Fits a request into the model's context before it is sent.

What is left out, in this order, until the request fits (`Shape` after `Shape`):

1. crops, the least relevant first;
2. resolution: page pictures are brought down from `answer.page_side` to no less than `answer.min_page_side`;
3. page text beside the pictures, a third of it at a time (at the end none where there is a picture, `LEAST_TEXT`
   where not);
4. pages, the worst ranked first; a page left out counts as not read;
5. only when a single page is left: still smaller pictures, the schema, the notes, and the picture itself.

If that is too much as well, nothing is sent. Requests are counted by the model's own estimate, which is on the high
side; so a request that fits here is not refused there. What was left out is recorded (`types.Fitting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from docmemo.errors import ContextLengthError

STEP = 0.85
"""Factor between two sizes of page pictures that are tried."""
LEAST_TEXT = 400
"""Characters of text a page keeps that has no picture."""
LEAST_SIDE = 280
"""Pixels; the smallest long side of the only page left."""
SCHEMA_SHARE = 8
"""The schema takes at most one part in this many of the room, at three characters a token."""
SUMMARY_STEPS = (600, 400, 250, 150, 80)
"""Characters of each candidate's summary that are tried when reranking, after all of them."""


@dataclass(frozen=True)
class Shape:
    """How much of the material a request shows."""

    pages: int
    """The first so many, best first."""
    crops: int
    side: int
    """Pixels of the long side of page pictures."""
    text_chars: int
    """Most characters of each page's text, or of each candidate's summary."""
    schema_chars: int
    pictures: bool = True
    notes: bool = True

    def text_limit(self, with_picture: bool) -> int:
        """Characters of one page's text."""
        return 0 if with_picture and self.text_chars < LEAST_TEXT else self.text_chars


@dataclass(frozen=True)
class Fitted:
    """The shape that fits."""

    shape: Shape
    tokens: int
    wanted: int
    """Tokens of the first shape, which leaves nothing out."""


def schema_chars(room: int) -> int:
    """Characters the schema may take in a request with room for so many tokens."""
    return max(400, 3 * room // SCHEMA_SHARE)


def reading_shapes(first: Shape, min_side: int) -> Iterator[Shape]:
    """Shapes of a read request, each smaller than the one before."""
    shape = first
    yield shape
    while shape.crops:
        shape = replace(shape, crops=shape.crops - 1)
        yield shape
    while shape.pictures and shape.side > min_side:
        shape = replace(shape, side=max(min_side, int(shape.side * STEP)))
        yield shape
    while shape.text_chars > LEAST_TEXT:
        shape = replace(shape, text_chars=max(LEAST_TEXT, shape.text_chars * 2 // 3))
        yield shape
    if shape.pictures:
        shape = replace(shape, text_chars=LEAST_TEXT - 1)
        yield shape
    while shape.pages > 1:
        shape = replace(shape, pages=shape.pages - 1)
        yield shape
    while shape.pictures and shape.side > LEAST_SIDE:
        shape = replace(shape, side=max(LEAST_SIDE, int(shape.side * STEP)))
        yield shape
    shape = replace(shape, schema_chars=0)
    yield shape
    shape = replace(shape, notes=False)
    yield shape
    if shape.pictures:
        yield replace(shape, pictures=False, text_chars=LEAST_TEXT)


def reranking_shapes(first: Shape) -> Iterator[Shape]:
    """Shapes of a rerank request: shorter summaries, then fewer sections, no notes, and at last fewer candidates."""
    shape = first
    yield shape
    for chars in SUMMARY_STEPS:
        if chars < shape.text_chars:
            shape = replace(shape, text_chars=chars)
            yield shape
    for part in (2, 4, 0):
        shape = replace(shape, schema_chars=first.schema_chars // part if part else 0)
        yield shape
    shape = replace(shape, notes=False)
    yield shape
    while shape.pages > 1:
        shape = replace(shape, pages=shape.pages - 1)
        yield shape


def fit(shapes: Iterator[Shape], count: Callable[[Shape], int], room: int, what: str) -> Fitted:
    """The first shape that fits.

    Args:
        shapes: ever smaller ones.
        count: tokens of the request of a shape.
        room: tokens there is room for.
        what: names the request in the error.

    Raises:
        ContextLengthError: if the smallest one does not fit either; nothing was sent.
    """
    wanted = tokens = 0
    shape: Shape | None = None
    for shape in shapes:
        tokens = count(shape)
        wanted = wanted or tokens
        if tokens <= room:
            return Fitted(shape, tokens, wanted)
    raise ContextLengthError(
        f"{what} takes about {tokens} tokens at the least ({wanted} with nothing left out), and the model has room "
        f"for {room}. Nothing was sent.",
        remedy="Use a model with a longer context, or raise its `context` in params.yaml to what the server allows.",
    )
