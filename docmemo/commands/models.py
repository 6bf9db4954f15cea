"""`docmemo models`: the lock of models and versions, and servers of one's own."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from docmemo.models.serve_plan import Plan

app = typer.Typer(
    help="Lock, check and serve the models that stages use.",
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


class ServerKind(StrEnum):
    """What serves a model."""

    vllm = "vllm"
    llamacpp = "llamacpp"


def _command(what: Plan, kind: ServerKind, mmproj: str | None, address: tuple[str, int], options: Any) -> list[str]:
    """The command that serves a plan; weights on the hub are fetched for llama.cpp."""
    from dataclasses import replace

    from docmemo.errors import ConfigError
    from docmemo.models import serve_plan
    from docmemo.settings import load_settings

    if kind is ServerKind.vllm:
        if mmproj:
            raise ConfigError("--mmproj is for llama.cpp.", remedy="Leave it out, or add --backend llamacpp.")
        return serve_plan.vllm_command(what, serve_plan.find_vllm(load_settings().vllm), *address, options.extra)
    serve_plan.need_xllamacpp()
    local = replace(what, source=serve_plan.weights(what.source, "--model"))
    encoder = serve_plan.weights(mmproj, "--mmproj") if mmproj else None
    return serve_plan.llamacpp_command(
        local, *address, mmproj=encoder, parallel=options.parallel, extra=options.extra
    )


@app.command(context_settings={"allow_extra_args": True})
def serve(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="summarizer, schema, reranker, reasoner or judge.")],
    backend: Annotated[ServerKind, typer.Option(help="What serves it.")] = ServerKind.vllm,
    model: Annotated[
        str | None,
        typer.Option(help="Weights: a folder or name on the hub (vLLM); a GGUF file or REPO:FILE (llama.cpp)."),
    ] = None,
    mmproj: Annotated[str | None, typer.Option(help="llama.cpp: GGUF file or REPO:FILE that reads images.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    parallel: Annotated[int, typer.Option(min=1, help="llama.cpp: requests at once; memory grows with it.")] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until it must be ready, downloads included.")] = 1800,
    print_command: Annotated[bool, typer.Option("--print-command", help="Print the command and end.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the server's log as it comes.")] = False,
) -> None:
    """Serve the model of ROLE as params.yaml needs it, until Ctrl-C. Options after `--` go to the server."""
    from types import SimpleNamespace

    from rich.console import Console

    from docmemo.models.lock import served_roles
    from docmemo.models.serve import Server, ended_by_signals, environment_lines, need_port, shown
    from docmemo.models.serve_plan import plan
    from docmemo.settings import load_settings

    project, params = _project()
    what = plan(role, params, model)
    options = SimpleNamespace(parallel=parallel, extra=list(context.args))
    command = _command(what, backend, mmproj, (host, port), options)
    if print_command:
        typer.echo(shown(command))
        return
    need_port(host, port)
    settings = load_settings()
    messages = Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)
    log_file = (
        (settings.state if settings.state.is_absolute() else project / settings.state) / "servers" / f"{role}.log"
    )
    images = f"up to {what.images} images" if what.images and (mmproj or backend is ServerKind.vllm) else "no images"
    messages.print(f"serving {what.name} for {', '.join(what.roles)}: {what.context} tokens, {images}")
    if backend is ServerKind.llamacpp and what.images and not mmproj:
        messages.print("without --mmproj it takes no images, so a role that shows pages fails at its first request")
    echo = messages.print if verbose else lambda _: None
    try:
        with ended_by_signals(), Server(command, host, port, log_file, settings, echo) as server:
            with messages.status("starting ...") as status:
                seconds = server.wait_until_healthy(timeout, lambda line: status.update(f"starting ... {line[:100]}"))
            messages.print(f"ready after {seconds:.0f} s at {server.base_url} (log: {log_file}); Ctrl-C ends it")
            if role not in served_roles(params):
                messages.print(
                    f"no stage asks it with these parameters; `docmemo ask --base-url {server.base_url}` does"
                )
            for line in environment_lines(what, server.base_url):
                typer.echo(line)
            sys.stdout.flush()
            server.wait()
    except KeyboardInterrupt:
        messages.print("ended")
