from __future__ import annotations

import numpy as np
import pytest

from docmemo.config import RetrievalParams
from docmemo.errors import ArtifactError
from docmemo.retrieval.fusion import z_scores
from docmemo.retrieval.late_interaction import PageVectors, VisualScorer
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.types import PageSet
from tests.retrieval.build import document, page

DOC = document(page(1, "Revenue rose."), page(2, "Employees left."), page(3, "Revenue and employees."))
VISUAL_ONLY = {"page_weight": 0, "window_weight": 0, "bigram_weight": 0, "reference_weight": 0}
AXES = np.eye(4, dtype=np.float32)


class AxisEncoder:
    """A query is the axis it names: "axis 2 ..." looks like a page whose vectors hold axis 2."""

    asked = 0

    def encode(self, query: str) -> np.ndarray:
        self.asked += 1
        return AXES[[int(query.split()[1])]]


def scorer(*axes: int | None) -> VisualScorer:
    """Pages that each show one axis; None for a page that could not be embedded."""
    pages = [None if axis is None else AXES[[axis]] for axis in axes]
    return VisualScorer(lambda: PageVectors.of_pages(pages), AxisEncoder())


def retriever(visual: VisualScorer | None, doc: PageSet = DOC, **params: float) -> PageRetriever:
    index = LexicalIndex.build([p.text for p in doc.pages], doc.language)
    return PageRetriever(doc, index, RetrievalParams(**params), visual)


def test_without_page_images_the_scores_are_the_lexical_ones_bit_for_bit() -> None:
    words = retriever(None)
    assert (
        words.score("revenue", [1, 2, 3]).tobytes()
        == retriever(None, visual_weight=9).score("revenue", [1, 2, 3]).tobytes()
    )


def test_the_visual_score_is_added_as_a_weighted_z_score() -> None:
    query, pages = "axis 1 revenue", [1, 2, 3]
    lexical = retriever(None).score(query, pages)
    both = retriever(scorer(0, 1, 2), visual_weight=0.7).score(query, pages)
    np.testing.assert_allclose(both - lexical, 0.7 * z_scores([0.0, 1.0, 0.0]), atol=1e-12)


def test_with_all_other_weights_at_zero_it_ranks_by_images_alone() -> None:
    scores = retriever(scorer(0, 1, 2), **VISUAL_ONLY).score("axis 1 revenue", [1, 2, 3])
    assert int(np.argmax(scores)) == 1
    assert scores[0] == scores[2]


def test_a_page_that_could_not_be_embedded_counts_as_the_lowest() -> None:
    scores = retriever(scorer(1, None, 2), **VISUAL_ONLY).score("axis 1", [1, 2, 3])
    assert scores[1] == scores[2] < scores[0]


def test_a_document_none_of_whose_pages_could_be_embedded_is_ranked_by_words() -> None:
    found = retriever(scorer(None, None, None)).score("axis 1 revenue", [1, 2, 3])
    np.testing.assert_array_equal(found, retriever(None).score("axis 1 revenue", [1, 2, 3]))


def test_only_pages_in_scope_decide_the_z_scores() -> None:
    scores = retriever(scorer(0, 1, 2), **VISUAL_ONLY).score("axis 1", [1, 3])
    assert scores.tolist() == [0.0, 0.0]


def test_a_weight_of_zero_asks_no_model() -> None:
    encoder = AxisEncoder()
    visual = VisualScorer(lambda: PageVectors.of_pages([AXES[[0]]] * 3), encoder)
    made = retriever(visual, visual_weight=0)
    made.prepare(["axis 1"])
    made.score("axis 1", [1, 2, 3])
    assert encoder.asked == 0


def test_a_prepared_query_is_scored_without_asking_the_model_again() -> None:
    encoder = AxisEncoder()
    made = retriever(VisualScorer(lambda: PageVectors.of_pages([AXES[[0]]] * 3), encoder))
    made.prepare(["axis 1", "axis 2"])
    made.score("axis 1", [1, 2, 3])
    made.score("axis 2", [2])
    assert encoder.asked == 2


def test_several_documents_are_ranked_together() -> None:
    pairs = [(DOC, LexicalIndex.build([p.text for p in DOC.pages], "en"))] * 2
    joint = PageRetriever.joint(pairs, RetrievalParams(**VISUAL_ONLY), scorer(0, 0, 0, 0, 3, 0))
    scores = joint.score("axis 3", joint.pages)
    assert joint.locate(joint.pages[int(np.argmax(scores))]) == ("d.pdf", 2)


def test_vectors_of_another_number_of_pages_are_refused() -> None:
    with pytest.raises(ArtifactError, match=r"2 pages were embedded, the documents have 3.*dvc repro"):
        retriever(scorer(0, 1)).score("axis 1", [1])
