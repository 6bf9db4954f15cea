"""Commands of `docmemo`: one module a command or group, of the same name, holding a typer app called `app`.

`docmemo.cli` finds the modules by name and imports one only when it is used, so they import heavy parts inside
their functions.
"""

from __future__ import annotations

from pathlib import Path

PROJECT_FILE = "params.yaml"


def find_project(start: Path | None = None) -> Path:
    """The project's root: the current folder, or the nearest one above it, that holds params.yaml.

    Raises:
        ConfigError: if there is none.
    """
    from docmemo.errors import ConfigError

    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise ConfigError(
        f"No {PROJECT_FILE} in {here} or above it.", remedy="Change to the project's folder and run again."
    )
