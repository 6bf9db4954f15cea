from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmemo.errors import ArtifactError
from docmemo.retrieval.lexical import LexicalIndex

TEXTS = [
    "The revenue of the company rose in 2019 because of strong sales.",
    "",
    "Employees work in many countries. Employees like the company.",
    "Risk factors concern suppliers and trade.",
]


def bm25(pages: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """BM25 as the textbook writes it (Lucene's variant)."""
    mean = sum(map(len, pages)) / len(pages)
    total = []
    for page in pages:
        score = 0.0
        for term in query:
            df = sum(term in p for p in pages)
            tf = page.count(term)
            idf = math.log(1 + (len(pages) - df + 0.5) / (df + 0.5))
            score += idf * tf / (tf + k1 * (1 - b + b * len(page) / mean)) if tf else 0.0
        total.append(score)
    return total


words = st.lists(st.sampled_from(["ab", "cd", "ef", "gh"]), max_size=8)


@settings(max_examples=50, deadline=None)
@given(st.lists(words, min_size=1, max_size=5), words)
def test_page_scores_are_bm25(pages: list[list[str]], query: list[str]) -> None:
    index = LexicalIndex.build([" ".join(page) for page in pages])
    scores = index.scores(query, k1=1.2, b=0.75).page
    if any(pages):
        np.testing.assert_allclose(scores, bm25(pages, query, 1.2, 0.75), rtol=1e-4, atol=1e-5)
    else:
        assert not scores.any()


def test_each_page_has_its_row_also_without_text() -> None:
    index = LexicalIndex.build(TEXTS, "en")
    assert index.n_pages == 4
    assert len(index.page_tokens(1)) == 0
    assert index.scores(["revenu"]).page.argmax() == 0


def test_windows_cover_every_term_and_never_leave_their_page() -> None:
    texts = [" ".join(f"w{i}" for i in range(n)) for n in (0, 5, 120, 121, 300)]
    index = LexicalIndex.build(texts, window_tokens=120, window_stride=60)
    bounds, first = index.window_bounds
    for row in range(5):
        own = bounds[first[row] : first[row + 1] if row < 4 else None]
        assert own[0][0] == index.offsets[row]
        assert own[-1][1] == index.offsets[row + 1]
        assert all(end - start <= 120 for start, end in own)
        assert all(b[0] <= a[1] for a, b in pairwise(own))


def test_terms_close_together_beat_the_same_terms_far_apart() -> None:
    filler = " ".join(f"filler{i}" for i in range(200))
    index = LexicalIndex.build([f"alpha {filler} beta", f"alpha beta {filler}", filler])
    window = index.scores(["alpha", "beta"]).window
    assert window[1] > window[0] > window[2] == 0


def test_bigrams_want_the_order_of_the_query_and_do_not_span_pages() -> None:
    index = LexicalIndex.build(["net income", "income net", "net", "income tax"])
    assert index.scores(["net", "income"]).bigram.tolist()[1:] == [0, 0, 0]
    assert index.scores(["net", "income"]).bigram[0] > 0
    assert not index.scores(["net", "net"]).bigram.any()


def test_terms_no_page_holds_score_nothing() -> None:
    scores = LexicalIndex.build(TEXTS, "en").scores(["zebra", "unicorn"])
    assert not scores.page.any()
    assert not scores.window.any()
    assert not scores.bigram.any()


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["one"]])
def test_empty_documents_can_be_indexed_and_asked(texts: list[str]) -> None:
    index = LexicalIndex.build(texts)
    assert index.scores(["one", "two"]).page.shape == (len(texts),)
    assert index.scores(["one", "two"]).window.shape == (len(texts),)
    assert LexicalIndex.merge([index, index]).n_pages == 2 * len(texts)


def test_a_rare_term_has_a_higher_idf() -> None:
    index = LexicalIndex.build(["a1 b1", "a1", "a1 c1"])
    assert index.idf_of("b1") > index.idf_of("a1") > 0
    assert index.idf_of("nowhere") == 0


def test_a_saved_index_is_the_same_after_loading(tmp_path: Path) -> None:
    index = LexicalIndex.build(
        ["上海 revenue", "naïve sales", ""], "en", window_tokens=50, window_stride=10, model="lexical"
    )
    index.save(tmp_path / "i.safetensors")
    loaded = LexicalIndex.load(tmp_path / "i.safetensors")
    assert loaded.vocabulary == index.vocabulary
    assert loaded.tokens.tolist() == index.tokens.tolist()
    assert loaded.offsets.tolist() == index.offsets.tolist()
    assert (loaded.language, loaded.model, loaded.window_tokens, loaded.window_stride) == ("en", "lexical", 50, 10)
    assert loaded.to_bytes() == index.to_bytes()


def test_an_empty_index_can_be_saved(tmp_path: Path) -> None:
    LexicalIndex.build([""]).save(tmp_path / "i")
    assert LexicalIndex.load(tmp_path / "i").n_pages == 1


@pytest.mark.parametrize("content", [b"", b"not safetensors at all", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"bad\.safetensors"):
        LexicalIndex.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        LexicalIndex.load(tmp_path / "none")


@settings(max_examples=30, deadline=None)
@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4), words)
def test_a_merged_index_scores_like_one_built_from_all_pages(
    left: list[list[str]], right: list[list[str]], query: list[str]
) -> None:
    texts = [[" ".join(page) for page in pages] for pages in (left, right)]
    merged = LexicalIndex.merge([LexicalIndex.build(t) for t in texts]).scores(query)
    together = LexicalIndex.build(texts[0] + texts[1]).scores(query)
    np.testing.assert_allclose(merged.page, together.page)
    np.testing.assert_allclose(merged.window, together.window)
    np.testing.assert_allclose(merged.bigram, together.bigram)
