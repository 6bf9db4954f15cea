"""`docmemo accept [REV]`: which run later ones are compared with."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def accept(
    revision: Annotated[str, typer.Argument(help="The run: branch, tag, hash or experiment.")] = "HEAD",
    ref: Annotated[
        str, typer.Option("--ref", envvar="DOCMEMO_ACCEPTED_REF", help="The git ref that names the accepted run.")
    ] = "refs/docmemo/accepted",
    show: Annotated[bool, typer.Option("--show", help="Only print which run is accepted.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Also add the run to metrics/history.csv.")] = False,
) -> None:
    """Accept a run: scheduled re-evaluations compare with it from now on.

    Moves a git ref and no branch, and touches no file unless --record is given. While nothing was accepted, main
    counts as accepted. `git push origin REF` shares it.
    """
    from docmemo.commands import find_project
    from docmemo.errors import ConfigError
    from docmemo.evaluation.history import HISTORY, append_history
    from docmemo.evaluation.history_page import figure
    from docmemo.evaluation.revisions import Repository
    from docmemo.evaluation.run_history import FIGURES, accepted, history_row, make_run
    from docmemo.evaluation.run_metrics import load_run

    repository = Repository(find_project())
    if not ref.startswith("refs/") or ref.startswith(("refs/heads/", "refs/tags/")):
        raise ConfigError(f"{ref} is no ref of this project's own.", remedy="Name one such as refs/docmemo/accepted.")
    if show:
        before = accepted(repository, ref)
        typer.echo(f"{before.sha} {before.date[:10]} {before.subject}")
        if before.name != ref:
            typer.echo(f"Nothing was accepted yet: {before.name} counts.", err=True)
        revision = before.sha
    metrics = load_run(repository, revision)
    run = make_run(metrics.revision, "commit", metrics.scores, metrics.provenance)
    if not show:
        repository.run("update-ref", "--create-reflog", "-m", "docmemo accept", ref, run.revision.sha)
        typer.echo(f"{ref} is now {run.revision.sha[:10]} {run.revision.date[:10]} {run.revision.subject}", err=True)
    for name, text in FIGURES.items():
        if run.figures[name].value is not None:
            typer.echo(f"{text}: {figure(run.figures[name])}")
    if record:
        added = append_history(repository.project / HISTORY, history_row(run))
        typer.echo(f"{HISTORY}: {'a line added' if added else 'its last line is this run already'}.", err=True)
