"""Milliseconds for indexing a page, for loading an index, and for ranking a long document against one question.

    python benchmarks/retrieval_speed.py [--pages data/pages] [--n-pages 500]

With --pages the longest archive there is repeated up to n pages; without, pages of random words are made.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from docmemo.artifacts import read_pages
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.retrieval.snippets import SnippetFinder
from docmemo.types import Line, Page, PageSet

QUESTIONS = (
    "What was the total revenue of the company in 2019 compared with the year before?",
    "According to Figure 4, which group grew fastest?",
    "How many employees are mentioned on page 12?",
    "List the risk factors that concern suppliers and international trade.",
)


def synthetic_pages(n_pages: int) -> PageSet:
    """Pages of 450 words drawn from a Zipf-like vocabulary."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9))) for _ in range(20_000)]
    weights = [1 / (i + 5) for i in range(len(words))]
    pages = []
    for number in range(1, n_pages + 1):
        texts = [" ".join(draw.choices(words, weights, k=10)) for _ in range(45)]
        lines = [
            Line(text=text, bbox=(0.1, y / 50, 0.9, (y + 0.8) / 50), block=y // 5) for y, text in enumerate(texts)
        ]
        pages.append(Page(page=number, text_source="text_layer", lines=lines))
    return PageSet(doc_id="synthetic", sha256="", language="en", pages=pages)


def real_pages(folder: Path, n_pages: int) -> PageSet:
    """The longest document of `folder`, repeated up to `n_pages`."""
    longest = max((read_pages(path) for path in folder.glob("*.pages.zip")), key=lambda s: len(s.pages))
    repeated = (longest.pages * (n_pages // len(longest.pages) + 1))[:n_pages]
    return longest.model_copy(
        update={"pages": [page.model_copy(update={"page": i}) for i, page in enumerate(repeated, 1)]}
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="folder of .pages.zip archives")
    parser.add_argument("--n-pages", type=int, default=500)
    options = parser.parse_args()
    page_set = real_pages(options.pages, options.n_pages) if options.pages else synthetic_pages(options.n_pages)
    n_pages = len(page_set.pages)
    start = time.process_time()
    index = LexicalIndex.build([page.text for page in page_set.pages], "en")
    per_page = (time.process_time() - start) / n_pages * 1000
    print(f"index       {per_page:8.2f} ms CPU a page ({len(index.tokens)} terms)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.safetensors"
        index.save(path)
        print(f"file        {path.stat().st_size / 1024:8.0f} KiB")
        start = time.perf_counter()
        index = LexicalIndex.load(path)
        print(f"load        {(time.perf_counter() - start) * 1000:8.1f} ms")
    retriever = PageRetriever(page_set, index)
    pages = retriever.pages
    start = time.perf_counter()
    retriever.score(QUESTIONS[0], pages)
    print(f"first query {(time.perf_counter() - start) * 1000:8.1f} ms (builds the BM25 matrices)")
    start = time.perf_counter()
    retriever.score(QUESTIONS[1], pages)
    print(f"first ref.  {(time.perf_counter() - start) * 1000:8.1f} ms (reads captions and headings)")
    start = time.perf_counter()
    for i in range(100):
        retriever.score(QUESTIONS[i % len(QUESTIONS)], pages)
    print(f"ranking     {(time.perf_counter() - start) * 10:8.2f} ms a question over {n_pages} pages")
    finder = SnippetFinder(page_set, index)
    start = time.perf_counter()
    for page in pages[:50]:
        finder.snippets(page, QUESTIONS[0])
    print(f"snippets    {(time.perf_counter() - start) * 20:8.2f} ms a page")


if __name__ == "__main__":
    main()
