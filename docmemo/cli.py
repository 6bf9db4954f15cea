"""The command line. Each command lives in docmemo/commands/ and is imported only when it is used."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from docmemo import commands


class LazyGroup(TyperGroup):
    """Finds commands by module name, and ends every DocMemoError with one message and its exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Names of the modules in docmemo/commands/."""
        return sorted(m.name for m in pkgutil.iter_modules(commands.__path__) if not m.name.startswith("_"))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a module, imported now; None if there is no such module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = get_command(importlib.import_module(f"{commands.__name__}.{cmd_name}").app)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print an error of ours without a traceback, unless --debug."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from docmemo.errors import DocMemoError

            if not isinstance(error, DocMemoError):
                raise
            if ctx.params.get("debug"):
                traceback.print_exc()
            print(f"error: {error.message.rstrip()}", file=sys.stderr)  # noqa: T201
            if error.remedy:
                print(error.remedy, file=sys.stderr)  # noqa: T201
            raise typer.Exit(error.exit_code) from error


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Find, cite and measure evidence in long documents."""


def main() -> None:
    """Entry point of the `docmemo` command."""
    app(prog_name="docmemo")


if __name__ == "__main__":
    main()
