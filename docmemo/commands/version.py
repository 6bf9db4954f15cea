"""`docmemo version`."""

from __future__ import annotations

import typer

from docmemo import __version__

app = typer.Typer()


@app.command(help="Print the version.")
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
