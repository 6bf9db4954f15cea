"""How much faster exact MaxSim is here than colpali-engine's `score_multi_vector`, with the same scores.

One query of 25 vectors against 1,000 pages of 700 vectors of 128 numbers. `score_multi_vector` gets the pages as it
wants them, a list of float32 tensors; ours gets them as they lie in memory after a document was opened: one float32
array with offsets, column by column. `opening` is what making that of the stored float16 took, once a document. Both
run on the CPU with the threads torch and numpy take by themselves. On a busy machine seconds and even their ratios
vary, so the two are timed in turns, and processor seconds stand beside those of the clock. Needs the extra `colqwen`.

`python -m benchmarks.maxsim_speed [--pages 1000] [--tokens 700] [--turns 5]`
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from docmemo.models.colqwen import import_torch
from docmemo.retrieval.late_interaction import Floats32, by_columns, maxsim

REQUIRED_RATIO = 8.0
TOLERANCE = 1e-4


def unit_rows(generator: np.random.Generator, n: int, dim: int = 128) -> Floats32:
    """Random vectors of length 1, shape (n, dim)."""
    made = generator.standard_normal((n, dim), dtype=np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """(wall seconds, processor seconds of all threads) of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def measure(n_pages: int, n_tokens: int, n_query: int, turns: int) -> dict[str, Any]:
    """Seconds of each turn, their ratios, and the largest difference of a score."""
    torch = import_torch()
    processor = importlib.import_module("colpali_engine.models").ColQwen2_5_Processor
    generator = np.random.default_rng(0)
    query, vectors = unit_rows(generator, n_query), unit_rows(generator, n_pages * n_tokens)
    offsets = np.arange(n_pages + 1, dtype=np.int64) * n_tokens
    stored, columns = vectors.astype(np.float16), by_columns(vectors)
    opening, _ = timed(lambda: by_columns(stored))
    queries = [torch.from_numpy(query)]
    pages = [torch.from_numpy(vectors[a : a + n_tokens]) for a in offsets[:-1]]

    def theirs() -> Any:
        return processor.score_multi_vector(queries, pages, device="cpu").numpy()[0]

    def ours() -> Any:
        return maxsim(query, columns, offsets)

    difference = float(np.abs(ours() - theirs()).max())  # and both are warm
    taken = [(timed(theirs), timed(ours)) for _ in range(turns)]
    return {
        "pages": n_pages,
        "tokens_a_page": n_tokens,
        "query_tokens": n_query,
        "threads": torch.get_num_threads(),
        "largest_difference": difference,
        "opening": round(opening, 3),
        "wall": summary([(a[0], b[0]) for a, b in taken]),
        "processor": summary([(a[1], b[1]) for a, b in taken]),
    }


def summary(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Seconds of both in each turn, the ratio of each turn, and the median ratio."""
    ratios = [theirs / ours for theirs, ours in pairs]
    return {
        "score_multi_vector": [round(theirs, 3) for theirs, _ in pairs],
        "maxsim": [round(ours, 3) for _, ours in pairs],
        "ratios": [round(ratio, 1) for ratio in ratios],
        "median_ratio": round(statistics.median(ratios), 1),
    }


def main() -> None:
    """Print the figures as JSON; exit 1 if the scores differ or the ratio is too small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=700)
    parser.add_argument("--query", type=int, default=25)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    found = measure(arguments.pages, arguments.tokens, arguments.query, arguments.turns)
    print(json.dumps(found, indent=1))
    if found["largest_difference"] > TOLERANCE or found["wall"]["median_ratio"] < REQUIRED_RATIO:
        sys.exit(f"wanted: equal to {TOLERANCE:g}, and at least {REQUIRED_RATIO:g} times as fast")


if __name__ == "__main__":
    main()
