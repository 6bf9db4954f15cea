"""`docmemo review`: a person marks answers right or wrong, and rule and judge are held against that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from docmemo.evaluation.cases import Case

app = typer.Typer(add_completion=False, rich_markup_mode=None)

FOLDER = "review"
"""In the project's state folder, which git ignores."""


@app.command()
def review(
    reviewer: Annotated[
        str, typer.Option("--reviewer", help="Whose marks these are; each reviewer has a file.")
    ] = "",
    n: Annotated[int, typer.Option("--n", help="Answers to draw; all if there are fewer.")] = 300,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other answers.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser", help="Show the answers with page pictures in a browser on this machine.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="Port of --browser; 0 takes a free one.")] = 0,
    result: Annotated[
        bool, typer.Option("--result", help="Print how rule and judge agree with the marks; asks nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --result: as JSON.")] = False,
    marks: Annotated[
        Path | None, typer.Option("--marks", help="Folder of the marks; default: .docmemo/review. It holds no text.")
    ] = None,
) -> None:
    """Check judged answers by hand: mark each right or wrong. Stop at any time; the same command goes on.

    Scores and verdicts are not shown, so that the marks are one's own. Afterwards `docmemo review --result` prints
    the agreement with rule and judge.
    """
    import sys

    from docmemo.commands import find_project
    from docmemo.errors import ConfigError
    from docmemo.evaluation.review import Marks, Session, draw
    from docmemo.settings import load_settings

    project = find_project()
    if as_json and not result:
        raise ConfigError("--json is for --result.", remedy="Add --result, or leave --json out.")
    folder = marks or project / load_settings().state / FOLDER
    cases = read_cases(project)
    if result:
        show_result(cases, folder, reviewer, as_json)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, emoji=False)
    session = Session(draw(cases, n, seed), Marks(folder, reviewer or _me()))
    session.marks.hold()
    try:
        if browser:
            from docmemo.evaluation.review_server import serve

            serve(session, project / "data" / "pages", port, console=console)
        else:
            from docmemo.evaluation.review_terminal import ask

            ask(session, console, sys.stdin)
    except KeyboardInterrupt:
        typer.echo("\nStopped; every mark is kept. The same command goes on.", err=True)
        raise typer.Exit(130) from None
    finally:
        session.marks.release()


def _me() -> str:
    """A name for whoever gives none: the user's own, as far as it can be a file's name."""
    import getpass
    import re

    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in containers
        name = ""
    return re.sub(r"\W", "_", name)[:40] or "reviewer"


def read_cases(project: Path) -> list[Case]:
    """The last run's questions with answers and judgements.

    Raises:
        ArtifactError: if nothing has been judged yet, or a file is damaged.
    """
    from docmemo.artifacts import artifact_name, read_jsonl, read_pages
    from docmemo.errors import ArtifactError
    from docmemo.evaluation.cases import build_cases
    from docmemo.types import AnswerRecord, Document, Judgement, Question

    data = project / "data"
    if not (data / "judgements" / "judgements.jsonl").is_file():
        raise ArtifactError(
            f"{data / 'judgements'} is not here: nothing has been judged yet.", remedy="Run `dvc repro`."
        )
    documents = list(read_jsonl(data / "corpus" / "documents.jsonl", Document))
    scanned = {}
    for document in documents:
        pages = data / "pages" / artifact_name(document.doc_id, ".pages.zip")
        if pages.is_file():
            scanned[document.doc_id] = read_pages(pages).is_scanned
    return build_cases(
        read_jsonl(data / "corpus" / "questions.jsonl", Question),
        read_jsonl(data / "answers" / "answers.jsonl", AnswerRecord),
        read_jsonl(data / "judgements" / "judgements.jsonl", Judgement),
        documents,
        scanned,
    )


def show_result(cases: list[Case], folder: Path, reviewer: str, as_json: bool) -> None:
    """Print the agreement with one reviewer, or with each.

    Raises:
        ConfigError: if nobody has marked anything, or not this reviewer.
    """
    import json

    from docmemo.errors import ConfigError
    from docmemo.evaluation.review import Marks, reviewers
    from docmemo.evaluation.review_result import render, results

    known = reviewers(folder)
    wanted = [reviewer] if reviewer else known
    missing = [name for name in wanted if name not in known]
    if missing or not wanted:
        raise ConfigError(
            f"{missing[0]!r} has no marks in {folder}." if missing else f"There are no marks in {folder}.",
            remedy=f"With marks: {', '.join(known)}." if known else "`docmemo review` asks for them.",
        )
    found = results(cases, {name: Marks(folder, name).standing() for name in wanted})
    if as_json:
        typer.echo(json.dumps(found, indent=1, sort_keys=True))
        return
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    for part in render(found):
        console.print(part)
