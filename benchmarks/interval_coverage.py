"""How often the intervals of docmemo/evaluation/intervals.py hold the truth, by simulation.

`python -m benchmarks.interval_coverage` draws datasets of 10, 37 and 135 documents whose questions share their
document's difficulty, takes the 95% interval of each, and counts. `--compare` adds the percentile bootstrap over
documents and the t interval without logit. No figure of it is a result of DocMemo.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from docmemo.evaluation.agreement import agreement, kappa
from docmemo.evaluation.intervals import Interval, difference_interval, mean_interval, ratio_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Method = Callable[[Floats, Ints], tuple[float | None, float | None]]
"""Scores and documents of the questions, both shape (questions,), to the interval."""

DOCUMENTS = (10, 37, 135)
MEANS = (0.1, 0.5, 0.9)
CORRELATIONS = (0.05, 0.15)
"""Of two questions about one document: moderate and strong."""
STRESS = (0.3,)
"""More than we aim at: a document is nearly all right or all wrong."""
SIZES = ("uniform", "benchmark")
SCORES = ("binary", "anls", "f1")
AIM = (0.93, 0.97)


@dataclass(frozen=True)
class Cell:
    """One kind of dataset."""

    documents: int
    mean: float
    correlation: float
    sizes: str
    scores: str

    def __str__(self) -> str:
        return (
            f"{self.documents:>3} documents, mean {self.mean}, correlation {self.correlation}, "
            f"{self.sizes}, {self.scores}"
        )


def sizes(kind: str, documents: int, random: np.random.Generator) -> Ints:
    """Questions a document: 1 to 20 alike, as in MMLongBench-Doc (mean 9, 3 to 18 mostly), or of a slice (1 to 3)."""
    if kind == "uniform":
        return random.integers(1, 21, documents)
    if kind == "slice":
        return random.integers(1, 4, documents)
    return np.clip(random.negative_binomial(15, 15 / 24, documents), 1, 20).astype(np.int64)


def rates(mean: float, correlation: float, documents: int, random: np.random.Generator) -> Floats:
    """Each document's own rate: beta with this mean and, between its questions, this correlation."""
    spread = 1 / correlation - 1
    return random.beta(mean * spread, (1 - mean) * spread, documents)


def draw(cell: Cell, random: np.random.Generator) -> tuple[Floats, Ints]:
    """Scores 0..1 and documents of one dataset, both shape (questions,).

    binary: right or wrong. anls: right answers get 1, one in ten of them .5 to 1. f1: half as binary, half spread
    over 0..1 around the document's rate.
    """
    counts = sizes(cell.sizes, cell.documents, random)
    owner = np.repeat(np.arange(cell.documents), counts)
    n = len(owner)
    top = 0.975 if cell.scores == "anls" else 1.0  # mean score of a right answer
    rate = rates(cell.mean / top, cell.correlation, cell.documents, random)[owner]
    right = (random.random(n) < rate).astype(float)
    if cell.scores == "anls":
        return right * np.where(random.random(n) < 0.1, random.uniform(0.5, 1, n), 1.0), owner
    if cell.scores == "f1":
        inside = np.clip(rate, 1e-6, 1 - 1e-6)
        return np.where(random.random(n) < 0.5, right, random.beta(2 * inside, 2 * (1 - inside))), owner
    return right, owner


def ours(values: Floats, owner: Ints) -> tuple[float | None, float | None]:
    """`intervals.mean_interval`."""
    found = mean_interval(values.tolist(), owner.tolist())
    return found.low, found.high


def bootstrap(values: Floats, owner: Ints) -> tuple[float, float]:
    """Percentiles of 1,000 resamples of documents."""
    n = int(owner.max()) + 1
    y, x = np.bincount(owner, values, n), np.bincount(owner, minlength=n)
    chosen = np.random.default_rng(0).integers(0, n, (1000, n))
    means = y[chosen].sum(axis=1) / x[chosen].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def plain_t(values: Floats, owner: Ints) -> tuple[float, float]:
    """The same variance without floor and logit."""
    n = int(owner.max()) + 1
    y, x = np.bincount(owner, values, n), np.bincount(owner, minlength=n)
    mean = float(y.sum() / x.sum())
    error = float(np.sqrt((n - 1) / n * np.sum(((y.sum() - y) / (x.sum() - x) - mean) ** 2)))
    half = float(special.stdtrit(n - 1, 0.975)) * error
    return mean - half, mean + half


def coverage(cell: Cell, methods: Sequence[Method], runs: int, seed: int) -> list[float]:
    """Share of datasets whose interval holds the cell's mean, for each method."""
    random = np.random.default_rng([seed, cell.documents, round(100 * cell.mean), round(100 * cell.correlation)])
    hits = [0] * len(methods)
    for _ in range(runs):
        values, owner = draw(cell, random)
        for i, method in enumerate(methods):
            low, high = method(values, owner)
            hits[i] += low is not None and high is not None and low - 1e-12 <= cell.mean <= high + 1e-12
    return [hit / runs for hit in hits]


def cells(correlations: Sequence[float], kinds: Sequence[str] = SIZES) -> Iterator[Cell]:
    """All kinds of datasets with these correlations and numbers of questions."""
    for found in itertools.product(DOCUMENTS, MEANS, correlations, kinds, SCORES):
        yield Cell(*found)


def difference_coverage(
    documents: int, changed: float, better: float, kind: str, runs: int, seed: int
) -> tuple[float, float]:
    """Coverage of `difference_interval`, and the share of datasets where no question differs.

    Args:
        documents: how many.
        changed: share of questions whose result changes; each document has its own rate (correlation .1).
        better: share of the changes for the better; each document has its own (correlation .15).
        kind: of `sizes`.
        runs, seed: datasets drawn.
    """
    random = np.random.default_rng([seed, documents, round(100 * changed), round(100 * better)])
    truth, hits, equal = changed * (2 * better - 1), 0, 0
    for _ in range(runs):
        owner = np.repeat(np.arange(documents), sizes(kind, documents, random))
        flipped = random.random(len(owner)) < rates(changed, 0.1, documents, random)[owner]
        up = random.random(len(owner)) < rates(better, 0.15, documents, random)[owner]
        found = difference_interval((flipped * np.where(up, 1.0, -1.0)).tolist(), owner.tolist())
        equal += found.low is None
        hits += _holds(found, truth)
    return hits / max(runs - equal, 1), equal / runs


def f1_coverage(documents: int, correlation: float, runs: int, seed: int) -> float:
    """Coverage of F1 as a ratio of sums: one question in five unanswerable, nine in ten answered."""
    random = np.random.default_rng([seed, documents, round(100 * correlation)])
    truth, hits = 2 * 0.8 * 0.45 / (0.8 + 0.9), 0
    for _ in range(runs):
        owner = np.repeat(np.arange(documents), sizes("benchmark", documents, random))
        n = len(owner)
        answerable, answered = random.random(n) < 0.8, random.random(n) < 0.9
        right = answerable & answered & (random.random(n) < rates(0.5, correlation, documents, random)[owner])
        found = ratio_interval((2.0 * right).tolist(), (answerable.astype(float) + answered).tolist(), owner.tolist())
        hits += _holds(found, truth)
    return hits / runs


def kappa_coverage(documents: int, error: float, runs: int, seed: int) -> tuple[float, float]:
    """Coverage of Cohen's kappa, and the share of datasets without disagreement, where there is no interval.

    Half of the answers are right; a rater errs in `error` of them, each document at its own rate (correlation .1).
    """
    random = np.random.default_rng([seed, documents, round(1000 * error)])
    truth = kappa(np.array([0.5 * (1 - error), 0.5 * error, 0.5 * error, 0.5 * (1 - error)]))
    assert truth is not None
    hits = none = 0
    for _ in range(runs):
        owner = np.repeat(np.arange(documents), sizes("benchmark", documents, random))
        person = random.random(len(owner)) < 0.5
        wrong = random.random(len(owner)) < rates(error, 0.1, documents, random)[owner]
        found = agreement((person ^ wrong).tolist(), person.tolist(), owner.tolist()).kappa
        none += found.low is None
        hits += _holds(found, truth)
    return hits / max(runs - none, 1), none / runs


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low is not None and interval.high is not None and interval.low <= truth <= interval.high


def print_means(title: str, found: Sequence[tuple[Cell, list[float]]], names: Sequence[str]) -> None:
    """Lowest, mean and highest coverage by number of documents, and every kind of dataset outside the aim."""
    print(f"\n{title}")
    for documents in DOCUMENTS:
        for i, name in enumerate(names):
            own = [figures[i] for cell, figures in found if cell.documents == documents]
            print(f"  {documents:>3} documents, {name:<10} {min(own):.3f} to {max(own):.3f}, mean {np.mean(own):.3f}")
    for cell, figures in found:
        if not AIM[0] <= figures[0] <= AIM[1]:
            print(f"  outside {AIM[0]:.0%} to {AIM[1]:.0%}: {cell}: {figures[0]:.3f}")


def main() -> None:
    """Print the tables of docs/decisions/0005-intervals.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000, help="datasets a kind (10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", action="store_true", help="other methods too; slow")
    chosen = parser.parse_args()
    methods: dict[str, Method] = {"ours": ours}
    if chosen.compare:
        methods |= {"plain t": plain_t, "bootstrap": bootstrap}
    for title, kinds in (
        ("means and graded scores", cells(CORRELATIONS)),
        ("the same with correlation .3", cells(STRESS)),
        ("slices: 1 to 3 questions a document", cells(CORRELATIONS, ["slice"])),
    ):
        found = [(cell, coverage(cell, list(methods.values()), chosen.runs, chosen.seed)) for cell in kinds]
        print_means(title, found, list(methods))
    print("\npaired differences (share of datasets where nothing differs and there is no interval)")
    for documents, changed, better, kind in itertools.product(DOCUMENTS, (0.05, 0.15, 0.3), (0.5, 0.7, 0.9), SIZES):
        hit, equal = difference_coverage(documents, changed, better, kind, chosen.runs, chosen.seed)
        what = f"{documents:>3} documents, {changed:.0%} change, {better:.0%} of it up, {kind}"
        print(f"  {what:<58} {hit:.3f} ({equal:.3f})")
    print("\nF1, and Cohen's kappa (share of datasets without disagreement and so without interval)")
    for documents in DOCUMENTS:
        print(
            f"  {documents:>3} documents, F1   ",
            *(f"{f1_coverage(documents, c, chosen.runs, chosen.seed):.3f}" for c in CORRELATIONS),
        )
        for error in (0.04, 0.1, 0.2):
            hit, none = kappa_coverage(documents, error, chosen.runs, chosen.seed)
            print(f"  {documents:>3} documents, kappa {1 - 2 * error:.2f} {hit:.3f} ({none:.3f})")


if __name__ == "__main__":
    main()
