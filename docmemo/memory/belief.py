"""Page belief memory: a Beta distribution a page (docs/design.md, section 2). Pure functions over arrays.

Arrays cover the pages in scope, in ascending page order; `pages` holds their 1-based numbers, all inside the
question's page window, so nothing can spread past it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docmemo.types import Section

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Belief:
    """Beta(a_i, b_i) for each page in scope; arrays of shape (n_pages,)."""

    a: Floats
    b: Floats

    @property
    def mean(self) -> Floats:
        """Posterior means mu_i = a_i / (a_i + b_i): a relevance confidence, not a probability of an answer."""
        return np.asarray(self.a / (self.a + self.b), dtype=np.float64)

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations."""
        total = self.a + self.b
        return np.asarray(np.sqrt(self.a * self.b / (total**2 * (total + 1.0))), dtype=np.float64)


def prior(similarity: Floats, strength: float) -> Belief:
    """a_i = 1 + k c_i, b_i = 1 + k (1 - c_i).

    Args:
        similarity: c_i of the first round, in [0, 1], shape (n_pages,).
        strength: k, the prior's weight in pseudo-observations.
    """
    c = np.asarray(similarity, dtype=np.float64)
    if c.size and (not np.isfinite(c).all() or c.min() < 0.0 or c.max() > 1.0):
        raise ValueError("similarity must lie in [0, 1]")
    return Belief(1.0 + strength * c, 1.0 + strength * (1.0 - c))


def update(
    belief: Belief,
    pages: Sequence[int],
    useful: Collection[int],
    irrelevant: Collection[int],
    *,
    radius: int = 0,
    decay: float = 0.5,
    documents: Sequence[int] | None = None,
    sections: Sequence[int] | None = None,
    section_gain: float = 0.0,
) -> Belief:
    """Posterior after one round of feedback.

    a_i += 1[i in U], b_i += 1[i in V]; for i in U and 0 < |j - i| <= r: a_j += g^|j-i| (overlaps add up). Negative
    feedback never propagates. A page in both sets counts as neutral; a page outside the scope is ignored.

    Args:
        belief: arrays of shape (n_pages,).
        pages: page numbers of these arrays.
        useful: U.
        irrelevant: V.
        radius: r in pages; 0 switches propagation off.
        decay: g in [0, 1].
        documents: which document each page is of, where the scope spans several; nothing spreads from one to another.
        sections: number of each page's section, -1 for none (`section_numbers`).
        section_gain: added to a_j of the other pages of a useful page's section, once for each useful page.
    """
    number = np.asarray(pages, dtype=np.int64)
    document = np.zeros_like(number) if documents is None else np.asarray(documents, dtype=np.int64)
    section = np.full_like(number, -1) if sections is None else np.asarray(sections, dtype=np.int64)
    both = set(useful) & set(irrelevant)
    scope = set(pages)
    a, b = belief.a.copy(), belief.b.copy()
    for page in sorted((set(useful) - both) & scope):
        distance = np.abs(number - page)
        here = document == document[number == page]
        near = (distance <= radius) & here
        a += np.where(distance == 0, 1.0, np.where(near, decay**distance, 0.0))
        if section_gain > 0.0:
            same = (section == section[number == page]) & (section >= 0) & here & (distance > 0)
            a += np.where(same, section_gain, 0.0)
    down = sorted((set(irrelevant) - both) & scope)
    b += np.isin(number, np.asarray(down, dtype=np.int64)).astype(np.float64)
    return Belief(a, b)


def generator(seed: int, question_id: str, round_number: int) -> np.random.Generator:
    """The random generator of one round of one question: the same whatever ran before or beside it."""
    text = f"{seed}\x1f{question_id}\x1f{round_number}".encode()
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text).digest()[:16], "big")))


def thompson(belief: Belief, rng: np.random.Generator) -> Floats:
    """One draw th_i ~ Beta(a_i, b_i) a page, shape (n_pages,)."""
    return np.asarray(rng.beta(belief.a, belief.b), dtype=np.float64)


def upper(belief: Belief, confidence: float) -> Floats:
    """Upper bound th_i = min(1, mean_i + confidence * sd_i), shape (n_pages,)."""
    return np.minimum(1.0, belief.mean + confidence * belief.sd)


def section_numbers(pages: Sequence[int], sections: Sequence[Section], longest: int) -> list[int]:
    """The number of the section each page belongs to, -1 for none.

    A page belongs to the shortest section around it (the later one of equals). Sections of one page and sections of
    more than `longest` pages are no sections here: the one says nothing about other pages, the other too much.
    """
    number = np.asarray(pages, dtype=np.int64)
    found = np.full(number.shape, -1, dtype=np.int64)
    length = {i: s.last_page - s.first_page + 1 for i, s in enumerate(sections)}
    for i in sorted(length, key=lambda i: (-length[i], i)):
        if 2 <= length[i] <= longest:
            found[(sections[i].first_page <= number) & (number <= sections[i].last_page)] = i
    return [int(i) for i in found]


def mix(similarity: Floats, draw: Floats, weight: float) -> Floats:
    """score_i = (1 - l) c_i + l th_i."""
    return np.asarray((1.0 - weight) * similarity + weight * draw, dtype=np.float64)
