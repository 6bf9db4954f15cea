"""The rounds of the embedded reader: do they find more evidence than the first ranking with as many page reads?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.paired import paired_difference
from benchmarks.study_corpus import StudyCorpus, run_loop, slices, study_params
from docmemo.qa.evidence import EmbeddedReader
from docmemo.retrieval.candidates import top_k

POLICIES: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "default": {},
    "never stops early": {"answer": {"clear_margin": 99.0}},
    "stops at 3 sd": {"answer": {"clear_margin": 3.0}},
    "stops at 1.5 sd": {"answer": {"clear_margin": 1.5}},
    "useful: 80% of rare terms": {"answer": {"useful_coverage": 0.8}},
    "useful: all rare terms": {"answer": {"useful_coverage": 1.0}},
    "query: the question alone": {"answer": {"query_terms": 0}},
    "query: one more term": {"answer": {"query_terms": 1}},
    "query: 8 more terms": {"answer": {"query_terms": 8}},
    "no query slot": {"belief": {"query_slots": 0}},
    "k = 4": {"belief": {"prior_strength": 4.0}},
    "r = 3": {"belief": {"radius": 3}},
    "no propagation": {"belief": {"radius": 0}},
    "no belief: re-query, skipping pages seen": {"belief": {"policy": "none", "query_slots": 0}},
    "Thompson at every slot": {"belief": {"policy": "thompson"}},
    "section .25": {"belief": {"section_gain": 0.25}},
    "paper, posterior mean": {"belief": {"reading": "by_belief", "query_slots": 0}, "loop": {"reranked": 5}},
}


def embedded_rows(corpus: StudyCorpus, pages: int) -> list[dict[str, object]]:
    """One row a policy and slice; `static` reads, for each question, as many pages as the rounds did."""
    return [row for name in POLICIES for row in _rows(corpus, name, pages)]


def _rows(corpus: StudyCorpus, name: str, pages: int) -> list[dict[str, object]]:
    params = study_params(POLICIES[name], pages)
    records = run_loop(corpus, params, EmbeddedReader(params), 0)
    values = []
    for question in corpus.questions:
        view, gold = corpus.views[question.doc_id], corpus.gold[question.question_id]
        rounds = records[question.question_id].rounds
        reads = sum(len(r.evidence) for r in rounds)
        scope = view.scope(question)
        static = set(top_k(view.retriever.score(question.question, scope), scope, reads))
        seen = {page for r in rounds for page in r.evidence}
        values.append(
            (len(gold & seen) / len(gold), gold <= seen, len(gold & static) / len(gold), gold <= static, reads)
        )
    recall, all_hit, static_recall, static_all_hit, reads_made = np.asarray(values, dtype=np.float64).T
    documents = np.array([question.doc_id for question in corpus.questions])
    return [
        {
            "reader": "embedded reader",
            "slice": title,
            "questions": int(mask.sum()),
            "policy": name,
            "page_reads": round(float(reads_made[mask].mean()), 2),
            "all_hit": round(float(all_hit[mask].mean()), 4),
            "all_hit_over_static": str(
                paired_difference(all_hit[mask], static_all_hit[mask], documents[mask].tolist())
            ),
            "recall": round(float(recall[mask].mean()), 4),
            "recall_over_static": str(paired_difference(recall[mask], static_recall[mask], documents[mask].tolist())),
        }
        for title, mask in slices(corpus).items()
    ]
