"""What is left out of a request that is too long, and in which order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.errors import ContextLengthError
from docmemo.qa.fitting import LEAST_TEXT, Shape, fit, reading_shapes, reranking_shapes

FULL = Shape(pages=5, crops=5, side=1600, text_chars=6000, schema_chars=4000)


def cost(shape: Shape) -> int:
    """Some measure of a request: every part costs."""
    pictures = shape.pages * (shape.side // 32) ** 2 if shape.pictures else 0
    text = shape.pages * shape.text_limit(with_picture=shape.pictures) // 4
    return pictures + text + 1000 * shape.crops + shape.schema_chars // 4 + 300 * shape.notes


def test_crops_go_first_then_resolution_then_text_then_pages():
    shapes = list(reading_shapes(FULL, 900))
    assert [s.crops for s in shapes[:6]] == [5, 4, 3, 2, 1, 0]
    assert all(s.side == 1600 and s.text_chars == 6000 for s in shapes[:6])
    smaller = [s for s in shapes if s.crops == 0 and s.text_chars == 6000]
    assert [s.side for s in smaller] == [1600, 1360, 1156, 982, 900]
    text = [s for s in shapes if s.side == 900 and s.pages == 5]
    assert [s.text_limit(with_picture=True) for s in text] == [6000, 4000, 2666, 1777, 1184, 789, 526, LEAST_TEXT, 0]
    assert [s.pages for s in shapes if s.side == 900 and s.text_chars < LEAST_TEXT] == [5, 4, 3, 2, 1]
    assert all(s.pages == 1 for s in shapes if s.side < 900 or not s.schema_chars or not s.notes or not s.pictures)


def test_without_pictures_a_page_keeps_some_text_to_the_end():
    shapes = list(reading_shapes(FULL.__class__(5, 0, 1600, 6000, 4000, pictures=False), 900))
    assert {s.side for s in shapes} == {1600}
    assert min(s.text_limit(with_picture=False) for s in shapes) == LEAST_TEXT


@given(st.integers(1, 12), st.integers(0, 9), st.integers(300, 3000), st.integers(0, 20_000), st.booleans())
def test_every_shape_is_smaller_than_the_one_before(pages, crops, side, text, pictures):
    first = Shape(pages, crops, side, text, 4000, pictures)
    for shapes in (reading_shapes(first, min(900, side)), reranking_shapes(first)):
        before = list(shapes)
        for larger, smaller in pairwise(before[:-1] if before[0].pictures else before):
            assert cost(smaller) <= cost(larger)
        assert before[-1].pages == 1


def test_the_first_shape_that_fits_is_taken_with_both_sizes():
    fitted = fit(reading_shapes(FULL, 900), cost, room=22_000, what="q")
    assert (fitted.shape.crops, fitted.shape.side) == (0, 1600)
    assert (fitted.wanted, fitted.tokens) == (cost(FULL), cost(fitted.shape))
    assert fitted.tokens <= 22_000 < cost(next(s for s in reading_shapes(FULL, 900) if s.crops == 1))


def test_nothing_is_left_out_where_all_of_it_fits():
    assert fit(reading_shapes(FULL, 900), cost, 10**6, "q").shape == FULL


def test_too_much_even_at_the_least_is_an_error_with_the_figures():
    with pytest.raises(ContextLengthError, match=r"q1 takes about 1\d\d tokens at the least.* has room for 50"):
        fit(reading_shapes(FULL, 900), cost, room=50, what="q1")


def test_when_reranking_summaries_are_shortened_before_sections_and_candidates_go():
    shapes = list(reranking_shapes(Shape(20, 0, 0, 1200, 4000, pictures=False)))
    assert [s.text_chars for s in shapes[:6]] == [1200, 600, 400, 250, 150, 80]
    assert [s.schema_chars for s in shapes[5:9]] == [4000, 2000, 1000, 0]
    assert [(s.notes, s.pages) for s in shapes[8:11]] == [(True, 20), (False, 20), (False, 19)]
