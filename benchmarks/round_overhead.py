"""Milliseconds one round costs outside the models, by length of the document.

    python -m benchmarks.round_overhead [--pages data/pages] [--lengths 125 250 500 1000]

The real loop with a reader that returns at once: retrieval, belief, candidates, evidence, crops, records and trace.
Each round asks another query, so nothing is scored twice. With --pages the longest archive there is repeated up to
each length; without, pages of random words are made. The median over questions is printed, and what the loop costs
without retrieval.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval_speed import QUESTIONS, real_pages, synthetic_pages
from docmemo.config import Params
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.qa.evidence import EmbeddedReranker
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.protocols import ReadReply, ReadRequest
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.types import LayoutSet, PageSet, Question, Region, SchemaMemory, Section


class InstantReader:
    """Calls the first page useful and the last irrelevant, and asks another question until it must answer."""

    async def read(self, request: ReadRequest) -> ReadReply:
        """At once."""
        return ReadReply(
            outcome="answer" if request.last_round else "query_update",
            answer="?",
            query=f"{QUESTIONS[request.round % len(QUESTIONS)]} {request.question.question_id}",
            useful=list(request.evidence[:1]),
            irrelevant=list(request.evidence[-1:]),
        )


@dataclass
class TimedRetriever:
    """A retriever that adds up its seconds."""

    inner: PageRetriever
    seconds: float = 0.0

    def score(self, query: str, pages: Sequence[int]) -> NDArray[np.float64]:
        """As PageRetriever.score."""
        start = time.perf_counter()
        scores = self.inner.score(query, pages)
        self.seconds += time.perf_counter() - start
        return scores


def view_of(page_set: PageSet) -> tuple[DocumentView, TimedRetriever]:
    """A view with sections of ten pages and a table on every other page."""
    index = LexicalIndex.build([page.text for page in page_set.pages], "en")
    retriever = TimedRetriever(PageRetriever(page_set, index))
    last = len(page_set.pages)
    sections = [Section(label=f"Part {i}", first_page=i, last_page=min(i + 9, last)) for i in range(1, last + 1, 10)]
    regions = [Region(page=p, kind="table", bbox=(0.1, 0.1, 0.9, 0.4), text=f"Table {p}") for p in range(1, last, 2)]
    view = DocumentView("d", Artifacts(Path(), Path(), Path(), Path()), Params().retrieval)
    view.__dict__.update(
        page_set=page_set,
        index=index,
        retriever=retriever,
        schema=SchemaMemory(doc_id="d", sections=sections),
        layout=LayoutSet(doc_id="d", regions=regions),
    )
    return view, retriever


def measure(page_set: PageSet, questions: int) -> tuple[float, float]:
    """Median milliseconds a round, with retrieval and without."""
    view, retriever = view_of(page_set)
    params = Params()
    loop = Loop(EmbeddedReranker(params), InstantReader(), Policy(params.loop, params.belief))
    whole, outside = [], []

    async def ask(number: int) -> None:
        text = f"{QUESTIONS[number % len(QUESTIONS)]} {number}"
        question = Question(question_id=str(number), doc_id="d", question=text)
        retriever.seconds = 0.0
        start = time.perf_counter()
        record, _ = await loop.answer(question, view)
        seconds = time.perf_counter() - start
        if number >= 0:  # the first ones build the BM25 matrices and read the captions
            whole.append(seconds / len(record.rounds) * 1000)
            outside.append((seconds - retriever.seconds) / len(record.rounds) * 1000)

    async def every() -> None:
        for number in range(-4, questions):
            await ask(number)

    asyncio.run(every())
    return statistics.median(whole), statistics.median(outside)


def main() -> None:
    """Print a line a length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="folder of .pages.zip archives")
    parser.add_argument("--lengths", type=int, nargs="+", default=[125, 250, 500, 1000])
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    print("pages   ms a round   without retrieval   ms a round and 100 pages")
    for length in options.lengths:
        page_set = real_pages(options.pages, length) if options.pages else synthetic_pages(length)
        whole, outside = measure(page_set, options.questions)
        print(f"{length:5d} {whole:12.2f} {outside:19.2f} {whole / length * 100:26.2f}")


if __name__ == "__main__":
    main()
