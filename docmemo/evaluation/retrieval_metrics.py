"""Page metrics of one question, and feedback metrics of many. Pure functions over page numbers (1-based).

Gold pages are taken as given and as a set: a page that the document does not have counts as missed. All
metrics are over questions that have gold evidence pages; for others they do not exist (`ValueError`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RoundFeedback:
    """What the reader said in one round about the pages it was shown, and the question's gold pages."""

    read: frozenset[int]
    useful: frozenset[int]
    irrelevant: frozenset[int]
    gold: frozenset[int]


@dataclass(frozen=True)
class FeedbackQuality:
    """Feedback against gold, pooled over rounds and questions; a ratio is None when its denominator is 0."""

    useful_precision: float | None
    """Gold pages among the pages called useful."""
    useful_recall: float | None
    """Pages called useful among the gold pages read."""
    irrelevant_precision: float | None
    """Pages that are not gold among the pages called irrelevant."""
    irrelevant_recall: float | None
    """Pages called irrelevant among the pages read that are not gold."""
    gold_called_irrelevant: int
    """Times a gold page was called irrelevant."""


def recall(gold: Iterable[int], found: Iterable[int]) -> float:
    """Share of the gold pages that are among `found`.

    Raises:
        ValueError: if there are no gold pages.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError("recall needs gold evidence pages")
    return len(wanted.intersection(found)) / len(wanted)


def all_hit(gold: Iterable[int], found: Iterable[int]) -> float:
    """1.0 when every gold page is among `found`, else 0.0. Raises ValueError as `recall`."""
    return float(recall(gold, found) == 1.0)


def recall_at_k(gold: Iterable[int], ranking: Sequence[int], k: int) -> float:
    """`recall` of the first k pages of a ranking, best first."""
    return recall(gold, ranking[:k])


def all_hit_at_k(gold: Iterable[int], ranking: Sequence[int], k: int) -> float:
    """`all_hit` of the first k pages of a ranking, best first."""
    return all_hit(gold, ranking[:k])


def pages_read(rounds: Sequence[Sequence[int]], t: int) -> set[int]:
    """Distinct pages read in rounds 1..t. A question that stopped before round t keeps what it had read."""
    return {page for pages in rounds[:t] for page in pages}


def recall_at_round(gold: Iterable[int], rounds: Sequence[Sequence[int]], t: int) -> float:
    """`recall` of all pages read up to round t (1-based); `rounds` holds the pages read in each round."""
    return recall(gold, pages_read(rounds, t))


def all_hit_at_round(gold: Iterable[int], rounds: Sequence[Sequence[int]], t: int) -> float:
    """`all_hit` of all pages read up to round t (1-based)."""
    return all_hit(gold, pages_read(rounds, t))


def feedback_quality(rounds: Iterable[RoundFeedback]) -> FeedbackQuality:
    """Pool the rounds of all questions; only pages that were read in the round count."""
    useful = useful_gold = irrelevant = irrelevant_gold = gold_read = other_read = 0
    for item in rounds:
        named_useful, named_irrelevant = item.useful & item.read, item.irrelevant & item.read
        useful += len(named_useful)
        useful_gold += len(named_useful & item.gold)
        irrelevant += len(named_irrelevant)
        irrelevant_gold += len(named_irrelevant & item.gold)
        gold_read += len(item.read & item.gold)
        other_read += len(item.read - item.gold)
    return FeedbackQuality(
        useful_precision=_ratio(useful_gold, useful),
        useful_recall=_ratio(useful_gold, gold_read),
        irrelevant_precision=_ratio(irrelevant - irrelevant_gold, irrelevant),
        irrelevant_recall=_ratio(irrelevant - irrelevant_gold, other_read),
        gold_called_irrelevant=irrelevant_gold,
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
