"""The command line of `python -m flows.reevaluate`: one run, a schedule, or the event that starts a run."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from rich.console import Console

from docmemo.commands import find_project
from docmemo.errors import DocMemoError
from docmemo.evaluation.run_history import ACCEPTED_REF
from docmemo.settings import load_settings
from flows import reevaluate as module
from flows.local_server import PORT, is_up, local_server

NAME = "scheduled"
CRON = "0 6 * * 1"


def main(arguments: list[str] | None = None) -> None:
    """Run once, serve, or notify; ends with the run's exit status."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    parameters = {
        "ref": options.ref,
        "metric": options.metric,
        "threshold": options.threshold,
        "alpha": options.alpha,
        "patience": options.patience,
        "repository": str(find_project()) if options.repository is None else options.repository,
        "accepted_ref": options.accepted_ref,
        "keep": options.keep,
    }
    try:
        check_server()
        if options.notify:
            notify(console, options.port)
        elif options.serve:
            serve(parameters, options, console)
        else:
            state = module.reevaluate(**parameters, return_state=True)
            message = (state.message or "").removeprefix(f"{state.name}: ")
            console.print(f"{state.name}: {message}".rstrip(": "), markup=False)
            sys.exit(module.exit_code(state))
    except DocMemoError as error:
        console.print(f"error: {error}", markup=False)
        sys.exit(error.exit_code)


def check_server() -> None:
    """Make sure that the Prefect server the user named answers.

    Raises:
        DocMemoError: if it does not.
    """
    url = os.environ.get("PREFECT_API_URL", "")
    if url and not is_up(url):
        raise DocMemoError(
            f"No Prefect server answers at {url} (PREFECT_API_URL).", remedy="Start it, or unset the variable."
        )


def serve(parameters: dict[str, Any], options: argparse.Namespace, console: Console) -> None:
    """Run by the clock and by the event, until interrupted; starts a Prefect server if there is none."""
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.events import DeploymentEventTrigger
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.types.entrypoint import EntrypointType

    log = load_settings().state.absolute() / "prefect-server.log"
    with local_server(log, options.port) as (url, started):
        # Runs are processes of their own: they find the server by the environment.
        os.environ["PREFECT_API_URL"] = url
        console.print(f"Prefect UI: {url.removesuffix('/api')}{' (started here)' if started else ''}", markup=False)
        when = {"interval": options.every} if options.every else {"cron": options.cron}
        with temporary_settings({PREFECT_API_URL: url}):
            module.reevaluate.serve(
                name=NAME,
                **when,
                triggers=[DeploymentEventTrigger(name=f"reevaluate on {module.EVENT}", expect={module.EVENT})],
                parameters=parameters,
                global_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
                entrypoint_type=EntrypointType.MODULE_PATH,
            )


def notify(console: Console, port: int) -> None:
    """Tell the Prefect server that a model has changed.

    Raises:
        DocMemoError: if there is no server.
    """
    from prefect.events import emit_event
    from prefect.settings import PREFECT_API_URL, temporary_settings

    url = os.environ.get("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
    if not is_up(url):
        raise DocMemoError(
            f"No Prefect server answers at {url}.", remedy="Start one: `python -m flows.reevaluate --serve`."
        )
    with temporary_settings({PREFECT_API_URL: url}):
        emit_event(module.EVENT, resource={"prefect.resource.id": "docmemo.models"})
    console.print(f"{module.EVENT}: sent to {url}", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows.reevaluate",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--serve", action="store_true", help="run by a schedule and by the event, until interrupted")
    mode.add_argument("--notify", action="store_true", help="send the event that starts a run")
    parser.add_argument("--cron", default=CRON, help=f'when to run with --serve; default "{CRON}"')
    parser.add_argument("--every", type=float, metavar="SECONDS", help="run at this interval in place of --cron")
    parser.add_argument("--port", type=int, default=PORT, help=f"of the local Prefect server; default {PORT}")
    parser.add_argument("--ref", default="main", help="what is evaluated; default main")
    parser.add_argument("--metric", action="append", help="figure that decides; may be repeated; default accuracy")
    parser.add_argument(
        "--threshold", type=float, default=0.0, help="a regression has fallen by more than this share"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level; default 0.05")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to ask failed questions again")
    parser.add_argument("--repository", help="the project's folder; default: the working folder's")
    parser.add_argument("--accepted-ref", default=ACCEPTED_REF, help="the git ref of the accepted run")
    parser.add_argument("--keep", action="store_true", help="leave the checkout there")
    return parser
