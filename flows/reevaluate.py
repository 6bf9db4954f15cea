"""Scheduled re-evaluation: has a model changed, and are the answers better or worse for it?

One run checks a revision out beside the working tree, resolves the model lock there, stops if nothing changed, else
runs `dvc repro` for what depends on the change, compares the figures with the last accepted run, and puts the result
on a branch `reevaluate/<date>`. A significant regression marks the run as failed. docs/reevaluation.md says more.

    python -m flows.reevaluate                             one run now
    python -m flows.reevaluate --serve --cron "0 6 * * 1"  Mondays at six, and whenever --notify is used
    python -m flows.reevaluate --notify                    say that a model has changed

Without PREFECT_API_URL, `--serve` starts a Prefect server with its UI at http://127.0.0.1:4200, unless one runs
there already.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from docmemo.commands import find_project
from docmemo.errors import BusyError, DocMemoError
from docmemo.evaluation.compare import Comparison, compare
from docmemo.evaluation.compare_page import write_comparison_page
from docmemo.evaluation.compare_text import markdown, verdict
from docmemo.evaluation.headline import markdown as headline
from docmemo.evaluation.revisions import Repository, Revision
from docmemo.evaluation.run_history import ACCEPTED_REF, accepted
from docmemo.evaluation.run_metrics import PROVENANCE, QUESTIONS, IncomparableError, load_run
from docmemo.models.lock import LOCK_NAME
from docmemo.settings import load_settings
from flows.prefect_env import configure
from flows.reproduce import IncompleteError, UnresolvedError, reproduce, resolve_models, stale_stages
from flows.worktree import Workshop, commit_results

os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO")
os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "true")
configure(load_settings())

from prefect import flow, get_run_logger, task  # noqa: E402 the environment comes first
from prefect.artifacts import create_markdown_artifact  # noqa: E402
from prefect.cache_policies import NO_CACHE  # noqa: E402
from prefect.client.orchestration import get_client  # noqa: E402
from prefect.client.schemas.objects import State  # noqa: E402
from prefect.states import Completed, Failed  # noqa: E402

EVENT = "docmemo.model.changed"
"""The event that starts a run between two ticks of the schedule."""
FOLDER = "reevaluate"
RESULTS = [LOCK_NAME, "dvc.lock", "metrics"]
NOTHING, SKIPPED, REGRESSION = "Nothing changed", "Skipped", "Regression"
INCOMPARABLE, INCOMPLETE, UNDECIDED = "Cannot compare", "Incomplete", "Undecided"
FIRST_WAIT = 30.0
"""Seconds until incomplete results are tried again; doubles each time."""


T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """What is out of date in a checkout."""

    models: list[str]
    """Roles whose lock entry changed, in words."""
    stages: list[str]
    """Stages that would run."""


@task(name="look for changes", cache_policy=NO_CACHE, persist_result=False)
def look_for_changes(project: Path, end: float, api_url: str) -> Found:
    """Resolve the model lock in the checkout and ask DVC what that puts out of date."""
    models = _patiently(lambda: resolve_models(project, api_url), end)
    return Found(models, stale_stages(project, api_url))


@task(name="dvc repro", cache_policy=NO_CACHE, persist_result=False)
def run_pipeline(project: Path, workshop: Workshop, end: float, api_url: str) -> list[str]:
    """Run what is out of date; incomplete results are tried again while there is patience."""
    ran: list[str] = []

    def attempt() -> None:
        ran.extend(reproduce(project, workshop.folder / "repro.log", workshop.note_process, api_url).stages)

    _patiently(attempt, end)
    return list(dict.fromkeys(ran))


def _patiently(work: Callable[[], T], end: float) -> T:
    """Do the work, again after a while when an error says that this may help, until `end` (time.monotonic)."""
    wait = FIRST_WAIT
    while True:
        try:
            return work()
        except (IncompleteError, UnresolvedError) as error:
            left = end - time.monotonic()
            if left <= 0:
                raise
            get_run_logger().warning("%s Trying again in %.0f s.", error.message, min(wait, left))
            time.sleep(min(wait, left))
            wait *= 2


@task(name="compare", cache_policy=NO_CACHE, persist_result=False)
def compare_with_accepted(
    repository: Repository,
    base: Revision,
    target: Revision,
    project: Path,
    metrics: list[str],
    threshold: float,
    alpha: float,
) -> Comparison:
    """The checkout's figures against the accepted run's."""
    before, after = load_run(repository, base.sha), load_run(Repository(project), None)
    before = replace(before, revision=base)
    after = replace(after, revision=Revision(f"{target.label}, evaluated now"))
    return compare(before, after, metrics=metrics, threshold=threshold, alpha=alpha)


@flow(name="reevaluate", flow_run_name="reevaluate {ref}", validate_parameters=True)
def reevaluate(
    ref: str = "main",
    metric: list[str] | None = None,
    threshold: float = 0.0,
    alpha: float = 0.05,
    patience: float = 600.0,
    repository: str | None = None,
    accepted_ref: str = ACCEPTED_REF,
    keep: bool = False,
) -> State[Any]:
    """Run again what a changed model or revision puts out of date, and compare with the last accepted run.

    Args:
        ref: what is evaluated: branch, tag or commit.
        metric: figures that decide (`docmemo compare --metric`); by default accuracy.
        threshold: a regression has fallen by more than this share of 1.
        alpha: significance level.
        patience: seconds in which a model that is not there is asked again, and questions that failed for it.
        repository: the project's folder; by default the working folder.
        accepted_ref: the git ref of the accepted run; while it does not exist, main.
        keep: leave the checkout there.
    """
    project = find_project(Path(repository) if repository else None)
    repo = Repository(project)
    workshop = Workshop(repo, (project / load_settings().state / FOLDER).absolute())
    try:
        with workshop.held():
            base, target = accepted(repo, accepted_ref), repo.resolve(ref)
            with workshop.checkout(target, keep) as checkout:
                return _evaluate(repo, workshop, checkout, base, target, metric or [], threshold, alpha, patience)
    except BusyError as error:
        return Completed(name=SKIPPED, message=str(error))
    except DocMemoError as error:
        names = {IncompleteError: INCOMPLETE, UnresolvedError: INCOMPLETE, IncomparableError: INCOMPARABLE}
        name = names.get(type(error), "Failed")
        _publish(f"**{name}.** {_code(error.message)}\n\n{_code(error.remedy)}\n", name)
        return Failed(name=name, message=str(error))


def _evaluate(
    repo: Repository,
    workshop: Workshop,
    project: Path,
    base: Revision,
    target: Revision,
    metrics: list[str],
    threshold: float,
    alpha: float,
    patience: float,
) -> State[Any]:
    log, api_url, end = get_run_logger(), _api_url(), time.monotonic() + patience
    found = look_for_changes(project, end, api_url)
    if not found.stages and _same_figures(repo, base, target):
        message = f"Nothing changed since {base.label}: the same models, code, parameters and documents."
        _publish(f"**{NOTHING}.** {message}\n", NOTHING)
        return Completed(name=NOTHING, message=message)
    for line in found.models:
        log.info("model changed: %s", line)
    stages = run_pipeline(project, workshop, end, api_url) if found.stages else []
    comparison = compare_with_accepted(repo, base, target, project, metrics, threshold, alpha)
    summary = verdict(comparison)
    about = [f"Model changed: {line}" for line in found.models] + [f"Stages that ran: {', '.join(stages) or 'none'}"]
    today = datetime.datetime.now().astimezone().date().isoformat()
    text = "\n".join([f"Re-evaluation of {target.label}: {summary}", "", *about])
    made = commit_results(repo, project, RESULTS, text, f"{FOLDER}/{today}")
    branch = made[0] if made else ""
    page = workshop.folder / "comparisons" / f"{(branch or today).replace('/', '-')}.html"
    write_comparison_page(page, comparison)
    about += [f"Figures: branch {branch}" if branch else "Figures: as committed", f"Page: {page}"]
    listing = "".join(f"- {_code(line)}\n" for line in about)
    _publish(f"{listing}\n{markdown(comparison)}", summary)
    create_markdown_artifact(
        headline(comparison.b.scores, evidence_finder=comparison.b.evidence_finder),
        key="headline",
        description="Headline figures of this run",
    )
    log.info(summary)
    if comparison.regressions:
        return Failed(name=REGRESSION, message=summary)
    return Completed(name=UNDECIDED if summary.startswith(UNDECIDED) else "Completed", message=summary)


def _same_figures(repo: Repository, a: Revision, b: Revision) -> bool:
    """Whether two revisions hold the same run; figures that were committed and never accepted are compared."""
    wanted = [(revision.sha, path) for revision in (a, b) for path in (QUESTIONS, PROVENANCE)]
    contents = list(repo.read_many(wanted).values())
    return a.sha == b.sha or contents[:2] == contents[2:]


def _code(text: str) -> str:
    """Text as Markdown that shows it as it is."""
    return "\n".join("`" + line.replace("`", "'") + "`" + "  " for line in text.splitlines() if line.strip())


def _publish(text: str, description: str) -> None:
    create_markdown_artifact(text, key="reevaluation", description=description[:200])


def _api_url() -> str:
    """The Prefect API of this run, which may be a server that Prefect started for it alone."""
    with get_client(sync_client=True) as client:
        return str(client.api_url)


def exit_code(state: State[Any]) -> int:
    """The exit status of a run: 0, 1 regression, 3 cannot compare, 75 try again later, 2 anything else."""
    if state.is_completed():
        return 0
    known = {REGRESSION: 1, INCOMPARABLE: IncomparableError.exit_code, INCOMPLETE: IncompleteError.exit_code}
    return known.get(state.name or "", DocMemoError.exit_code)


if __name__ == "__main__":
    from flows.reevaluate_cli import main

    main()
