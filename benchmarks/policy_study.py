"""Which selection policy serves best: the real loop over MMLongBench-Doc documents with a simulated reader.

    python -m benchmarks.policy_study --pages data/pages --dataset ../shared/datasets/mmlongbench \
        --out docs/decisions/0003-selection-policy.csv

Every way gets the same page reads, rounds x pages a round; `static` reads the best of the first ranking, all at once.
Figures are cumulative over the rounds: recall is |gold pages read| / |gold pages|, all-hit is 1 when all were read;
"last" is 1 when all gold pages are in front of the reader in its last round. Both are averaged over seeds a question
first; differences are paired by question, with 95% intervals clustered by document (benchmarks/paired.py), which
speak for other documents. Those named by_seed are over seeds: these documents, other errors of the reader.

All figures are of the simulated reader (benchmarks/simulated_reader.py), except with --embedded, which studies the
rounds of the embedded reader instead. None belongs into metrics/.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.embedded_study import embedded_rows
from benchmarks.paired import chosen_on_one_half, difference_over_seeds, paired_difference
from benchmarks.simulated_reader import SimulatedReader
from benchmarks.study_corpus import StudyCorpus, load_corpus, run_loop, slices, study_params
from docmemo.types import AnswerRecord

Way = Mapping[str, Mapping[str, Any]]
"""An overlay on the sections loop and belief."""

CHOSEN = "chosen: mean, unread first, query slot"
STATIC = "static, top 9 of the first ranking"
REQUERY = "re-query, skipping pages seen"
LITERAL: dict[str, Any] = {"reading": "by_belief", "query_slots": 0}

MAIN: dict[str, Way] = {
    REQUERY: {"loop": {"ablation": "requery"}, "belief": {"query_slots": 0}},
    CHOSEN: {},
    "no query slot": {"belief": {"query_slots": 0}},
    "upper bound, mean + 1 sd": {"belief": {"policy": "ucb"}},
    "one exploratory slot": {"belief": {"policy": "explore_one"}},
    "Thompson at every slot": {"belief": {"policy": "thompson"}},
    "paper, posterior mean": {"loop": {"reranked": 5}, "belief": {"policy": "mean", **LITERAL}},
    "paper, Thompson": {"loop": {"reranked": 5}, "belief": {"policy": "thompson", **LITERAL}},
}
PARAMETERS: dict[str, Way] = {
    "two query slots": {"belief": {"query_slots": 2}},
    "k = 2": {"belief": {"prior_strength": 2.0}},
    "k = 4": {"belief": {"prior_strength": 4.0}},
    "r = 0 (no propagation)": {"belief": {"radius": 0}},
    "r = 1": {"belief": {"radius": 1}},
    "r = 3": {"belief": {"radius": 3}},
    "g = 0.3": {"belief": {"decay": 0.3}},
    "g = 0.7": {"belief": {"decay": 0.7}},
    "l = 0, .1, .2": {"belief": {"schedule": [0.0, 0.1, 0.2]}},
    "l = 0, .5, .7": {"belief": {"schedule": [0.0, 0.5, 0.7]}},
    "l = 0, 1": {"belief": {"schedule": [0.0, 1.0]}},
    "5 pages reranked": {"loop": {"reranked": 5}},
    "section .1": {"belief": {"section_gain": 0.1}},
    "section .25": {"belief": {"section_gain": 0.25}},
    "section .25, no propagation": {"belief": {"section_gain": 0.25, "radius": 0}},
}
READERS: dict[str, dict[str, Any]] = {
    ".9/.8": {"right_gold": 0.9, "right_other": 0.8},
    ".75/.65": {"right_gold": 0.75, "right_other": 0.65},
    ".6/.5": {"right_gold": 0.6, "right_other": 0.5},
    ".9/.8, stubborn": {"right_gold": 0.9, "right_other": 0.8, "stubborn": True},
    ".9/.8, knows what is missing": {"right_gold": 0.9, "right_other": 0.8, "hint": 0.5},
}
"""Good, medium and bad; a good one that repeats its errors, and one whose query often names what is missing."""


@dataclass(frozen=True)
class Figures:
    """One value a question, averaged over seeds; each of shape (questions,)."""

    recall: NDArray[np.float64]
    all_hit: NDArray[np.float64]
    last: NDArray[np.float64]
    reads: NDArray[np.float64]
    by_seed: NDArray[np.float64]
    """all_hit of each seed, shape (seeds, questions)."""


def figures_of(corpus: StudyCorpus, records: Mapping[str, AnswerRecord]) -> Figures:
    """Figures of one run."""
    rows = []
    for question in corpus.questions:
        gold, rounds = corpus.gold[question.question_id], records[question.question_id].rounds
        seen = {page for r in rounds for page in r.evidence}
        last = gold <= set(rounds[-1].evidence)
        rows.append((len(gold & seen) / len(gold), gold <= seen, last, sum(len(r.evidence) for r in rounds)))
    recall, all_hit, last_hit, reads = np.asarray(rows, dtype=np.float64).T
    return Figures(recall, all_hit, last_hit, reads, all_hit[None, :])


def mean_figures(runs: Sequence[Figures]) -> Figures:
    """The mean over seeds."""
    recall, all_hit, last, reads = (
        np.mean([getattr(run, name) for run in runs], axis=0) for name in ("recall", "all_hit", "last", "reads")
    )
    return Figures(recall, all_hit, last, reads, np.concatenate([run.by_seed for run in runs]))


def study(corpus: StudyCorpus, seeds: int, pages: int, task: tuple[str, str]) -> Figures:
    """One way with one reader over all seeds."""
    reader, way = task
    runs: list[Figures] = []
    for seed in range(seeds):
        made = SimulatedReader(corpus.gold, seed=seed, **READERS[reader])
        if way == STATIC:
            overlay: Way = {"loop": {"rounds": 1, "evidence": 3 * pages, "reranked": 3 * pages}}
        else:
            overlay = {**MAIN, **PARAMETERS}[way]
        params = study_params(overlay, pages)
        if way == STATIC and runs:  # the same for every seed
            runs.append(runs[0])
        else:
            runs.append(figures_of(corpus, run_loop(corpus, params, made, seed)))
    return mean_figures(runs)


def rows_of(
    corpus: StudyCorpus, reader: str, ways: Mapping[str, Figures], documents: NDArray[Any]
) -> Iterable[dict[str, object]]:
    """One row a way and slice of the documents."""
    for name, mask in slices(corpus).items():
        for way, found in ways.items():
            row: dict[str, object] = {
                "reader": f"simulated reader {reader}",
                "slice": name,
                "questions": int(mask.sum()),
                "documents": len(set(documents[mask])),
                "way": way,
                "recall": round(float(found.recall[mask].mean()), 4),
                "all_hit": round(float(found.all_hit[mask].mean()), 4),
                "all_hit_in_last_round": round(float(found.last[mask].mean()), 4),
                "page_reads": round(float(found.reads[mask].mean()), 2),
            }
            for title, base in (("over_static", STATIC), ("over_requery", REQUERY), ("over_chosen", CHOSEN)):
                for metric in ("all_hit", "recall") if base == STATIC else ("all_hit",):
                    difference = paired_difference(
                        getattr(found, metric)[mask], getattr(ways[base], metric)[mask], documents[mask].tolist()
                    )
                    row[f"{metric}_{title}"] = str(difference)
                seeds = [w.by_seed[:, mask].mean(axis=1) for w in (found, ways[base])]
                row[f"all_hit_{title}_by_seed"] = str(difference_over_seeds(*seeds))
            yield row


def print_table(rows: Sequence[dict[str, object]], slice_name: str) -> None:
    """The Markdown table of one slice."""
    columns = [
        "way",
        "all_hit",
        "recall",
        "all_hit_over_static",
        "all_hit_over_requery",
        "all_hit_over_static_by_seed",
    ]
    for reader in dict.fromkeys(row["reader"] for row in rows):
        chosen = [row for row in rows if row["slice"] == slice_name and row["reader"] == reader]
        if chosen:
            print(f"\n{reader}, {slice_name}, {chosen[0]['questions']} questions\n")
            print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
            for row in chosen:
                print(f"| {' | '.join(str(row[column]) for column in columns)} |")


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """All rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def simulated_rows(corpus: StudyCorpus, seeds: int, pages: int, workers: int) -> list[dict[str, object]]:
    """All readers and ways; parameters with the good and the bad reader only."""
    tasks = [(reader, way) for reader in READERS for way in (STATIC, *MAIN)]
    tasks += [(reader, way) for reader in (".9/.8", ".6/.5") for way in PARAMETERS]
    work = partial(study, corpus, seeds, pages)
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        found = dict(zip(tasks, pool.map(work, tasks), strict=True))
    documents = np.array([question.doc_id for question in corpus.questions])
    rows: list[dict[str, object]] = []
    text = slices(corpus)["text"]
    for reader in READERS:
        ways = {way: figures for (name, way), figures in found.items() if name == reader}
        rows += rows_of(corpus, reader, ways, documents)
        candidates = {w: f.all_hit[text] for w, f in ways.items() if w not in (STATIC, REQUERY)}
        gain, picked = chosen_on_one_half(candidates, ways[STATIC].all_hit[text], documents[text].tolist())
        print(
            f"simulated reader {reader}: chosen on half of the documents, {100 * gain:+.1f} points over static on the"
        )
        print(f"other half (mean of 200 splits; picked: {picked})")
    return rows


def main() -> None:
    """Run the study, print the tables, write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, required=True, help="folder of .pages.zip archives")
    parser.add_argument("--dataset", type=Path, required=True, help="folder with samples.json (MMLongBench-Doc)")
    parser.add_argument("--schemas", type=Path, help="folder of schema artifacts; else made from the pages alone")
    parser.add_argument("--out", type=Path, required=True, help="CSV of all rows")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pages-a-round", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--embedded", action="store_true", help="study the rounds of the embedded reader instead")
    options = parser.parse_args()
    if options.out.resolve().is_relative_to(Path("metrics").resolve()):
        sys.exit("These figures do not belong into metrics/: choose another --out.")
    corpus = load_corpus(options.pages, options.dataset, options.schemas)
    if options.embedded:
        rows = embedded_rows(corpus, options.pages_a_round)
        for row in rows:
            print(" | ".join(str(value) for value in row.values()))
    else:
        rows = simulated_rows(corpus, options.seeds, options.pages_a_round, options.workers)
        for name in ("text", "text, multi-page"):
            print_table(rows, name)
    write_csv(options.out, rows)


if __name__ == "__main__":
    main()
