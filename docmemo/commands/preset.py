"""`docmemo preset`: sets of parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Show and apply presets, overlays on params.yaml.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _value(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


@app.command()
def use(name: Annotated[str, typer.Argument(help="Name of a file in presets/, without .yaml.")]) -> None:
    """Write a preset's values into params.yaml, keeping its comments, and print the changed keys."""
    from docmemo.commands import find_project
    from docmemo.presets import apply_preset

    project = find_project()
    changes = apply_preset(name, project)
    for change in changes:
        typer.echo(f"{change.key}: {_value(change.old)} -> {_value(change.new)}")
    message = f"{len(changes)} keys changed." if changes else "nothing to change."
    typer.echo(f"{project / 'params.yaml'}: {message}", err=True)
    if changes:
        typer.echo("Run `docmemo models check`: other backends may need another lock.", err=True)


@app.command()
def show(name: Annotated[str | None, typer.Argument(help="One preset; all when left out.")] = None) -> None:
    """Print presets, what they are for, and what each would change."""
    from docmemo.commands import find_project
    from docmemo.presets import describe, preset_changes, preset_names

    project = find_project()
    names = preset_names(project) if name is None else [name]
    for index, preset in enumerate(names):
        if index:
            typer.echo()
        typer.echo(preset)
        for line in describe(preset, project).splitlines():
            typer.echo(f"  {line}")
        changes = preset_changes(preset, project)
        typer.echo("  Would change:" if changes else "  Would change nothing.")
        for change in changes:
            typer.echo(f"    {change.key}: {_value(change.old)} -> {_value(change.new)}")
    if not names:
        typer.echo(f"{project / 'presets'} holds no presets.", err=True)
