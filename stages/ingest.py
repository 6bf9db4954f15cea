"""Opens every document of the dataset and brings its questions into one schema: dataset -> data/corpus."""

from __future__ import annotations

from pathlib import Path

from docmemo.datasets.ingest import ingest
from docmemo.documents.pdf import Kind
from docmemo.pipeline.inspection import look_at
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.runner import seed
from docmemo.store import Store
from stages.common import CORPUS, FOLDERS, StageContext, log, stage_main


def run(context: StageContext) -> None:
    """Write the manifest."""
    settings = context.settings
    seed(Store(settings.store_dir), [folder for folder in FOLDERS.values() if folder.is_dir()])
    with WorkPool(settings.workers, settings.page_timeout) as pool:

        def inspect(path: Path, kind: Kind) -> tuple[int, str]:
            return pool.call(look_at, path, kind, timeout=settings.page_timeout)

        summary = ingest(context.params.dataset, Path.cwd(), CORPUS, inspect, jobs=max(1, settings.workers))
    log.info(
        "ingest: %d documents (%d failed), %d pages, %d questions",
        summary.n_documents,
        summary.n_documents_failed,
        summary.n_pages,
        summary.n_questions,
    )
    for name, quirk in summary.quirks.items():
        log.info("ingest: %s: %d. %s", name, quirk.count, quirk.explanation)


if __name__ == "__main__":
    stage_main("ingest", [CORPUS], run)
