"""`docmemo doctor`: what a run with these parameters needs, looked at one by one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from docmemo.config import Params
    from docmemo.models.doctor import Finding
    from docmemo.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MARKS = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "problem": "[red]problem[/]"}


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Check machine, installation, model lock and servers, these by small real requests. Exit 1 on a problem."""
    import json
    import logging

    from rich.console import Console

    from docmemo.commands import find_project
    from docmemo.config import load_params
    from docmemo.models.doctor import worst
    from docmemo.settings import load_settings

    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    project = find_project()
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))  # plugins in the project's folder
    params, settings = load_params(project / "params.yaml"), load_settings()
    with Console(stderr=True).status("looking ...") as status:
        findings = _look(params, settings, project, lambda what: status.update(f"looking at {what} ..."))
    result = worst(findings)
    if as_json:
        listed = [vars(finding) for finding in findings]
        typer.echo(json.dumps({"status": result, "findings": listed}, ensure_ascii=False, indent=1))
    else:
        _show(findings, Console(highlight=False, emoji=False, soft_wrap=True))
    raise typer.Exit(1 if result == "problem" else 0)


def _look(params: Params, settings: Settings, project: Path, tell: Any) -> list[Finding]:
    from docmemo.models.doctor import Finding, check_role
    from docmemo.models.doctor_machine import check_install, check_layout, check_lock, check_machine
    from docmemo.models.lock import served_roles

    tell("the machine")
    findings = [*check_machine(params, settings), *check_install(params), *check_layout(params, settings)]
    roles = served_roles(params)
    servers: list[Finding] = []
    for role in roles:
        tell(f"the server of {role}")
        servers += check_role(role, params, settings)
    reached = [f.part for f in servers if f.what == "server" and f.status == "ok"]
    tell("the lock")
    findings += check_lock(params, project, reached)
    if not roles:
        servers = [Finding("servers", "roles", "ok", "no role is played by a model behind a server: nothing to ask")]
    return findings + servers


def _show(findings: list[Finding], console: Any) -> None:
    from rich.markup import escape

    part = ""
    for finding in findings:
        if finding.part != part:
            part = finding.part
            console.print(f"[bold]{escape(part)}[/]")
        console.print(f"  {_MARKS[finding.status]}  {escape(finding.what)}: {escape(finding.message)}")
        if finding.remedy:
            console.print(f"           {escape(finding.remedy)}")
