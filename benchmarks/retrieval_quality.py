"""Recall@k and all-hit@k of page retrieval, over questions that have evidence pages.

recall@k = |evidence pages in the top k| / |evidence pages|, averaged over questions; all-hit@k = share of questions
with all evidence pages in the top k. Split into text documents and scanned ones (more than half of the pages without
a text layer; with --scanned-suffix by the document's name instead, as DESIGN.md's figures are).

    python benchmarks/retrieval_quality.py --pages data/pages --dataset ../shared/datasets/mmlongbench
"""

from __future__ import annotations

import argparse
import ast
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from docmemo.artifacts import artifact_name, read_pages
from docmemo.config import EmbedParams, RetrievalParams
from docmemo.retrieval.candidates import top_k
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.retrieval.tokenize import document_language

CUTOFFS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Row:
    """One question's result: recall and all-hit at each cutoff."""

    scanned: bool
    recall: list[float]
    all_hit: list[float]


def load_retriever(archive: Path, embed: EmbedParams, retrieval: RetrievalParams) -> tuple[PageRetriever, bool]:
    """(retriever, whether the document is scanned) from a page archive."""
    page_set = read_pages(archive)
    texts = [page.text for page in page_set.pages]
    index = LexicalIndex.build(
        texts,
        document_language(texts, page_set.language),
        window_tokens=embed.window_tokens,
        window_stride=embed.window_stride,
    )
    return PageRetriever(page_set, index, retrieval), page_set.is_scanned


def evaluate(
    samples: list[dict[str, Any]], pages: Path, retrieval: RetrievalParams, scanned_suffix: str = ""
) -> list[Row]:
    """Rank all pages for each question that has evidence pages and whose document is there."""
    retrievers: dict[str, tuple[PageRetriever, bool]] = {}
    rows = []
    for sample in samples:
        gold = set(ast.literal_eval(str(sample["evidence_pages"])))
        doc_id = sample["doc_id"]
        archive = pages / artifact_name(doc_id, ".pages.zip")
        if not gold or not archive.exists():
            continue
        if doc_id not in retrievers:
            retrievers[doc_id] = load_retriever(archive, EmbedParams(), retrieval)
        retriever, scanned = retrievers[doc_id]
        if scanned_suffix:
            scanned = Path(doc_id).stem.endswith(scanned_suffix)
        scope = retriever.pages
        ranked = top_k(retriever.score(sample["question"], scope), scope, max(CUTOFFS))
        hits = [gold & set(ranked[:k]) for k in CUTOFFS]
        rows.append(Row(scanned, [len(h) / len(gold) for h in hits], [float(h == gold) for h in hits]))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, required=True, help="folder of .pages.zip archives")
    parser.add_argument("--dataset", type=Path, required=True, help="folder with samples.json (MMLongBench-Doc)")
    parser.add_argument("--params", default="{}", help="JSON overlay on the retrieval section, e.g. '{\"b\": 0.5}'")
    parser.add_argument("--scanned-suffix", default="", help='names of scanned documents end so, e.g. "_95"')
    options = parser.parse_args()
    samples = json.loads((options.dataset / "samples.json").read_text(encoding="utf-8"))
    start = time.perf_counter()
    retrieval = RetrievalParams.model_validate_json(options.params)
    rows = evaluate(samples, options.pages, retrieval, options.scanned_suffix)
    if not rows:
        raise SystemExit("No question has both evidence pages and a page archive.")
    head = " ".join(f"{f'@{k}':>6}" for k in CUTOFFS)
    print(f"{'documents':10} {'questions':>9}   recall {head}   all-hit {head}")
    slices = {"text": [r for r in rows if not r.scanned], "scanned": [r for r in rows if r.scanned], "all": rows}
    for name, chosen in slices.items():
        if chosen:
            recall = " ".join(f"{x:6.3f}" for x in np.mean([r.recall for r in chosen], axis=0))
            all_hit = " ".join(f"{x:6.3f}" for x in np.mean([r.all_hit for r in chosen], axis=0))
            print(f"{name:10} {len(chosen):9d}          {recall}           {all_hit}")
    print(f"{time.perf_counter() - start:.1f} s with indexing")


if __name__ == "__main__":
    main()
