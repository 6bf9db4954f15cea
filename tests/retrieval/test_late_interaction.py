from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from docmemo.errors import ArtifactError
from docmemo.retrieval.late_interaction import PageVectors, VisualScorer, by_columns, fill_missing, maxsim

DIM = 8


def unit(generator: np.random.Generator, n: int, dim: int = DIM) -> np.ndarray:
    made = generator.standard_normal((n, dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def slow_maxsim(query: np.ndarray, page: np.ndarray) -> float:
    """The definition, word by word."""
    total = 0.0
    for q in query.tolist():
        total += max(sum(a * b for a, b in zip(q, p, strict=True)) for p in page.tolist())
    return total


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 12), max_size=12),
    n_query=st.integers(1, 6),
    block=st.integers(1, 40),
    seed=st.integers(0, 1000),
)
def test_it_is_the_naive_sum_of_maxima_whatever_the_block_and_the_empty_pages(
    lengths: list[int], n_query: int, block: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    query = unit(generator, n_query)
    pages = [unit(generator, n) for n in lengths]
    vectors = np.concatenate([*pages, np.zeros((0, DIM), np.float32)])
    offsets = np.cumsum([0, *lengths])
    found = maxsim(query, vectors, offsets, block)
    np.testing.assert_allclose(maxsim(query, by_columns(vectors), offsets, block), found, atol=1e-5)
    assert found.shape == (len(lengths),)
    for page, value in zip(pages, found, strict=True):
        if len(page):
            assert value == pytest.approx(slow_maxsim(query, page), abs=1e-5)
        else:
            assert np.isnan(value)


def test_the_layout_in_memory_changes_no_number() -> None:
    vectors = unit(np.random.default_rng(3), 2500).astype(np.float16)
    np.testing.assert_array_equal(by_columns(vectors), vectors.astype(np.float32))
    assert by_columns(vectors).flags.f_contiguous


def test_a_page_that_holds_the_query_itself_scores_its_length() -> None:
    query = unit(np.random.default_rng(0), 5)
    other = unit(np.random.default_rng(1), 7)
    scores = PageVectors.of_pages([other, np.concatenate([other, query])]).scores(query)
    assert scores[1] == pytest.approx(5.0, abs=1e-2)
    assert scores[0] < scores[1]


def test_a_page_without_vectors_takes_the_lowest_score_of_the_others() -> None:
    assert fill_missing(np.array([3.0, np.nan, 1.0])).tolist() == [3.0, 1.0, 1.0]
    assert fill_missing(np.array([np.nan, np.nan])).tolist() == [0.0, 0.0]


def test_merged_documents_score_as_each_does_alone() -> None:
    generator = np.random.default_rng(2)
    parts = [
        PageVectors.of_pages([unit(generator, 3), None], {"revision": "r"}),
        PageVectors.of_pages([None]),
        PageVectors.of_pages([unit(generator, 4), unit(generator, 1)], {"revision": "r"}),
    ]
    query = unit(generator, 2)
    joint = PageVectors.merge(parts)
    expected = np.concatenate([part.scores(query) for part in parts])
    assert joint.n_pages == 5
    np.testing.assert_allclose(joint.scores(query), expected, atol=1e-6)


def test_documents_embedded_by_different_models_are_not_searched_together() -> None:
    parts = [PageVectors.of_pages([np.ones((1, DIM), np.float16)], {"revision": name}) for name in "ab"]
    with pytest.raises(ArtifactError, match="different models"):
        PageVectors.merge(parts)


def test_a_query_of_another_model_is_refused() -> None:
    pages = PageVectors.of_pages([np.ones((1, DIM), np.float16)])
    with pytest.raises(ArtifactError, match="dimension 4"):
        pages.scores(np.ones((1, 4), np.float32))


def test_a_file_without_vectors_is_an_error_that_says_what_to_run(tmp_path: Path) -> None:
    save_file({"tokens": np.zeros(1, np.int32)}, tmp_path / "f")
    with pytest.raises(ArtifactError, match=r"no page vectors.*dvc repro embed"):
        PageVectors.load(tmp_path / "f")
    (tmp_path / "g").write_bytes(b"not safetensors")
    with pytest.raises(ArtifactError, match="cannot be read"):
        PageVectors.load(tmp_path / "g")


class CountingEncoder:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, query: str) -> np.ndarray:
        self.asked.append(query)
        return unit(np.random.default_rng(len(query)), 3)


def test_a_query_is_embedded_once_and_the_vectors_are_loaded_at_the_first() -> None:
    loads, encoder = [], CountingEncoder()

    def load() -> PageVectors:
        loads.append(1)
        return PageVectors.of_pages([unit(np.random.default_rng(5), 4)])

    scorer = VisualScorer(load, encoder)
    assert not loads
    first = scorer.scores("one")
    assert scorer.scores("one") is first
    scorer.scores("three")
    assert (encoder.asked, len(loads)) == (["one", "three"], 1)


def test_threads_get_the_same_scores() -> None:
    scorer = VisualScorer(lambda: PageVectors.of_pages([unit(np.random.default_rng(5), 4)] * 3), CountingEncoder())
    expected = scorer.scores("q0")
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(scorer.scores("q0"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(np.array_equal(scores, expected) for scores in found)
