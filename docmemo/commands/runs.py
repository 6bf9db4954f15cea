"""`docmemo runs`: the project's runs over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def runs(
    revision: Annotated[list[str] | None, typer.Argument(help="Whose history; default: HEAD.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The history of all branches and tags.")] = False,
    most: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many runs.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write one offline HTML page with plots.")] = None,
) -> None:
    """List the commits that changed metrics/scores.json, and DVC's experiments, with their headline figures.

    Everything is read from git: no DVC remote or cache is needed.
    """
    import json

    from docmemo.commands import find_project
    from docmemo.errors import ConfigError
    from docmemo.evaluation.history_page import print_runs, write_history_page
    from docmemo.evaluation.revisions import Repository
    from docmemo.evaluation.run_history import runs as list_runs

    repository = Repository(find_project())
    start = [repository.resolve(name).sha for name in revision or []] or ["HEAD"]
    found = list_runs(repository, start, everything=everything)[:most]
    if as_json:
        typer.echo(json.dumps([run.as_dict() for run in found], ensure_ascii=False, indent=1))
    elif not found:
        typer.echo("No commit here holds metrics/scores.json: nothing was run, or its figures were not committed.")
    else:
        from rich.console import Console

        print_runs(found, Console(highlight=False, emoji=False))
    if repository.is_shallow:
        typer.echo("This clone is shallow: `git fetch --unshallow` brings older runs.", err=True)
    if html:
        try:
            write_history_page(html, found)
        except OSError as error:
            raise ConfigError(f"{html} cannot be written: {error}.", remedy="Choose another --html.") from error
        typer.echo(f"runs: {html}", err=True)
