"""The body that the per-document stages share."""

from __future__ import annotations

from pathlib import Path

from docmemo.errors import DocMemoError, IncompleteRunError
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.runner import Summary, jobs_for, run_step, seed
from docmemo.pipeline.step import Step
from docmemo.store import Store
from stages.common import FOLDERS, StageContext, log, read_documents, write_timings


def run_offline(step: Step, context: StageContext) -> Summary:
    """Run `step` over the manifest's documents into its folder.

    Raises:
        IncompleteRunError: if a model did not do its part of some documents and that is not accepted, or the run was
            stopped since no other request would fare better. Everything finished is kept.
    """
    settings = context.settings
    store = Store(settings.store_dir)
    seed(store, [folder for folder in FOLDERS.values() if folder.is_dir()])
    upstream = {name: FOLDERS[name] for name in step.needs}
    root = Path(context.params.dataset.root)
    jobs, failed = jobs_for(read_documents(), root, upstream)
    bar, advance = context.progress(step.name, len(jobs))
    with bar, WorkPool(settings.workers, settings.page_timeout) as pool:
        try:
            summary = run_step(
                step,
                jobs,
                FOLDERS[step.name],
                store=store,
                pool=pool,
                parallel=settings.workers,
                failed_before=failed,
                progress=advance,
            )
        except DocMemoError as error:
            if not error.stops_run:
                raise
            raise IncompleteRunError(
                f"The run was stopped: {error.message}",
                remedy=f"{error.remedy} Everything finished is kept; `dvc repro` then does just the rest.",
            ) from error
    write_timings(step.name, summary.seconds)
    log.info("%s", summary.line(step.name))
    if summary.incomplete:
        log.warning(
            "%s: pages of %s were given up (see above) and are missing from this run. DVC takes the stage as done; "
            "`dvc repro -f -s %s` tries just these documents again, then `dvc repro` goes on.",
            step.name,
            ", ".join(summary.incomplete[:5]) + (" and others" if len(summary.incomplete) > 5 else ""),
            step.name,
        )
    if summary.waiting:
        from stages.failures import report_failures

        report_failures(summary.waiting, settings.accept_failures, step.name, "documents")
    return summary
