"""CPU and wall seconds a page of the offline steps, and the peak memory of the parent.

`python -m benchmarks.offline_speed --documents DIR [--workers 2]` takes every PDF of a folder through render, layout,
embed, summarize and schema with an empty store, text documents and scans apart, and prints one table.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from docmemo.artifacts import read_pages
from docmemo.config import Params
from docmemo.documents.pdf import digest_source, inspect_document, mupdf
from docmemo.models.lock import resolve_lock
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.layout import LayoutStep
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.runner import Summary, run_step
from docmemo.pipeline.schema import SchemaStep
from docmemo.pipeline.step import Job, Step
from docmemo.pipeline.summarize import SummarizeStep
from docmemo.store import Store
from docmemo.types import Document


def cpu_seconds() -> float:
    """CPU of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed(step: Step, jobs: list[Job], out: Path, store: Store, workers: int) -> tuple[float, float, Summary]:
    """CPU and wall seconds of one step over the jobs; the pool's start is included."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    with WorkPool(workers, 300.0) as pool:
        summary = run_step(step, jobs, out, store=store, pool=pool, parallel=max(1, workers))
    return cpu_seconds() - cpu, time.perf_counter() - wall, summary


def measure(documents: list[Document], root: Path, work: Path, workers: int) -> dict[str, tuple[float, float]]:
    """Step to (CPU, wall) seconds over these documents."""
    params = Params()
    models = resolve_lock(params)
    steps: list[Step] = [
        RenderStep(params.render, models),
        LayoutStep(params.layout, models),
        EmbedStep(params.embed, models),
        SummarizeStep(params.summarize, models),
        SchemaStep(params.schema_, models),
    ]
    store = Store(work / "store")
    made: dict[str, dict[str, Path]] = defaultdict(dict)
    seconds = {}
    for step in steps:
        out = work / step.name
        jobs = [Job(d, root / d.path, {need: made[d.doc_id][need] for need in step.needs}) for d in documents]
        cpu, wall, _ = timed(step, jobs, out, store, workers)
        seconds[step.name] = (cpu, wall)
        for document in documents:
            made[document.doc_id][step.name] = out / f"{document.doc_id}{step.suffix}"
    return seconds


def is_scan(path: Path) -> bool:
    """Whether most of a PDF's pages have no text layer to speak of."""
    with mupdf().open(path) as document:
        empty = sum(len(page.get_text().strip()) < 30 for page in document)
        return empty * 2 > int(document.page_count)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, required=True, help="folder of PDFs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=int, default=None, help="only the first N documents of each kind")
    arguments = parser.parse_args()
    groups: dict[str, list[Document]] = {"text": [], "scanned": []}
    for path in sorted(arguments.documents.glob("*.pdf")):
        pages = inspect_document(path, "pdf")
        group = groups["scanned" if is_scan(path) else "text"]
        if arguments.limit is None or len(group) < arguments.limit:
            group.append(Document(doc_id=path.name, path=path.name, n_pages=pages, sha256=digest_source(path, "pdf")))
    print(f"{'documents':10} {'pages':>6} {'step':10} {'CPU s/page':>11} {'wall s/page':>12}")
    for name, documents in groups.items():
        if not documents:
            continue
        n_pages = sum(d.n_pages for d in documents)
        with tempfile.TemporaryDirectory() as folder:
            seconds = measure(documents, arguments.documents, Path(folder), arguments.workers)
            ocr = sum(
                page.text_source == "ocr"
                for d in documents
                for page in read_pages(Path(folder) / "render" / f"{d.doc_id}.pages.zip").pages
            )
        for step, (cpu, wall) in seconds.items():
            print(f"{name:10} {n_pages:6} {step:10} {cpu / n_pages:11.4f} {wall / n_pages:12.4f}")
        total_cpu, total_wall = (sum(s[i] for s in seconds.values()) for i in (0, 1))
        print(f"{name:10} {n_pages:6} {'all':10} {total_cpu / n_pages:11.4f} {total_wall / n_pages:12.4f}")
        if ocr:
            cpu, wall = seconds["render"]
            print(f"{name:10} {ocr:6} {'OCR pages':10} {cpu / ocr:11.4f} {wall / ocr:12.4f}   (render / OCR pages)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the parent: {peak:.0f} MB")


if __name__ == "__main__":
    main()
