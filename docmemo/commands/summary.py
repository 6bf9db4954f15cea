"""`docmemo summary`: the headline of the last run."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def summary() -> None:
    """Print the headline figures of metrics/scores.json and where the report is."""
    import json

    from rich.console import Console

    from docmemo.commands import find_project
    from docmemo.config import load_params
    from docmemo.errors import ArtifactError
    from docmemo.evaluation.terminal import print_headline

    project = find_project()
    path = project / "metrics" / "scores.json"
    try:
        scores = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read: {error}.", remedy="Run `dvc repro` first.") from error
    params = load_params(project / "params.yaml")
    print_headline(scores, Console(highlight=False), evidence_finder=params.answer.reader == "embedded")
    report = project / "metrics" / "report.html"
    if report.exists():
        typer.echo(f"\nreport: {report}")
    else:
        typer.echo("\nreport: not here; `dvc repro` makes it")
