"""`docmemo models`: the lock of models and versions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(
    help="Lock and check the models that stages use.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _project() -> tuple[Path, Any]:
    """The project's folder and its parameters; plugins in the folder become importable."""
    from docmemo.commands import find_project
    from docmemo.config import load_params

    project = find_project()
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))
    return project, load_params(project / "params.yaml")


@app.command()
def lock() -> None:
    """Write what is installed to models.lock.json and print what changed in it."""
    from docmemo.errors import ModelLockError
    from docmemo.models.lock import LOCK_NAME, check_lock, resolve_lock, write_lock

    project, params = _project()
    path = project / LOCK_NAME
    now = resolve_lock(params)
    try:
        changes = [str(difference) for difference in check_lock(params, path)]
    except ModelLockError:  # missing or damaged: it is written anew
        changes = [f"{role}: {entry['provider']} / {entry['id']}" for role, entry in now.items()]
    write_lock(now, path)
    for change in changes:
        typer.echo(change)
    typer.echo(f"{path}: {len(changes)} of {len(now)} roles changed.", err=True)


@app.command()
def check() -> None:
    """Compare models.lock.json with what is installed; exit 2 if they differ."""
    from docmemo.errors import ModelLockError
    from docmemo.models.lock import LOCK_NAME, check_lock

    project, params = _project()
    path = project / LOCK_NAME
    differences = check_lock(params, path)
    for difference in differences:
        typer.echo(str(difference))
    if differences:
        raise ModelLockError(
            f"{path} does not match what is installed ({len(differences)} roles).",
            remedy="Run `docmemo models lock` to accept what is installed, or install what the lock names.",
        )
    typer.echo(f"{path} matches what is installed.", err=True)
