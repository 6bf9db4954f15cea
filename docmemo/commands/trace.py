"""`docmemo trace QUESTION_ID`: how one question was answered, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from docmemo.evaluation.trace_view import TraceView
    from docmemo.types import AnswerRecord

app = typer.Typer(add_completion=False, rich_markup_mode=None)

ANSWERS = Path("data/answers")
QUESTIONS = Path("data/corpus/questions.jsonl")
PAGES = Path("data/pages")


@app.command()
def trace(
    question_id: Annotated[str | None, typer.Argument(help="A question of the last run; --list prints them.")] = None,
    list_ids: Annotated[bool, typer.Option("--list", help="List the questions with outcome and rounds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON on stdout.")] = False,
    as_html: Annotated[
        bool, typer.Option("--html", help="Write one offline HTML page with charts and print its path.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where --html writes; default: .docmemo/traces/QUESTION_ID.html.")
    ] = None,
) -> None:
    """Show how a question was answered, round by round: queries, pages read, verdicts, the belief of each page."""
    import json

    from docmemo.commands import find_project
    from docmemo.errors import ConfigError

    if as_json and (as_html or out):
        raise ConfigError("--json and --html exclude each other.", remedy="Choose one of them.")
    if question_id is None and not list_ids:
        raise ConfigError(
            "A question id is needed.", remedy="`docmemo trace --list` prints the ids of the last run's questions."
        )
    project = find_project()
    records = read_answers(project)
    if list_ids:
        show_list(records, as_json)
        return
    assert question_id is not None
    view = open_view(project, find_record(records, question_id))
    if as_json:
        values = {
            "question": view.question.model_dump(mode="json") if view.question else None,
            "answer": view.answer.model_dump(mode="json"),
            "trace": view.trace.model_dump(mode="json") if view.trace else None,
        }
        typer.echo(json.dumps(values, ensure_ascii=False, indent=1))
    elif as_html or out:
        typer.echo(write_page(project, view, out))
    else:
        from rich.console import Console

        from docmemo.evaluation.trace_terminal import show

        console = Console(highlight=False, emoji=False)
        show(view, console)


def read_answers(project: Path) -> list[AnswerRecord]:
    """The answers of the last run, in its order.

    Raises:
        ArtifactError: if there is none.
    """
    from docmemo.artifacts import read_jsonl
    from docmemo.errors import ArtifactError
    from docmemo.types import AnswerRecord

    path = project / ANSWERS / "answers.jsonl"
    if not path.is_file():
        raise ArtifactError(f"{path} is not here: nothing has been answered yet.", remedy="Run `dvc repro` first.")
    return list(read_jsonl(path, AnswerRecord))


def find_record(records: list[AnswerRecord], question_id: str) -> AnswerRecord:
    """The record of a question.

    Raises:
        ConfigError: if there is none, with the closest ids.
    """
    import difflib

    from docmemo.errors import ConfigError

    by_id = {record.question_id: record for record in records}
    if question_id in by_id:
        return by_id[question_id]
    folded = {known.casefold(): known for known in by_id}
    close = [folded[name] for name in difflib.get_close_matches(question_id.casefold(), folded, n=3, cutoff=0.5)]
    if not close:  # part of an id, e.g. the document's name
        close = [known for known in by_id if question_id.casefold() in known.casefold()][:3]
    hint = f"Close: {', '.join(close)}. " if close else ""
    raise ConfigError(
        f"The last run has no question {question_id!r}.",
        remedy=f"{hint}`docmemo trace --list` prints all {len(by_id)} ids.",
    )


def open_view(project: Path, record: AnswerRecord) -> TraceView:
    """The question's records and its document's page numbers; what is missing is left out.

    Raises:
        ArtifactError: if a file is there and damaged.
    """
    from docmemo.artifacts import artifact_name, read_jsonl, read_pages
    from docmemo.evaluation.trace_view import TraceView
    from docmemo.qa.trace import read_trace, trace_path
    from docmemo.types import Question

    traces = project / ANSWERS / "traces"
    questions = project / QUESTIONS
    pages = project / PAGES / artifact_name(record.doc_id, ".pages.zip")
    return TraceView(
        answer=record,
        trace=read_trace(traces, record.question_id) if trace_path(traces, record.question_id).is_file() else None,
        question=next((q for q in read_jsonl(questions, Question) if q.question_id == record.question_id), None)
        if questions.is_file()
        else None,
        pages={page.page: page for page in read_pages(pages).pages} if pages.is_file() else {},
    )


def write_page(project: Path, view: TraceView, out: Path | None) -> Path:
    """Write the HTML page and return where it is.

    Raises:
        ConfigError: if `out` cannot be written.
    """
    from docmemo.artifacts import artifact_name
    from docmemo.config import load_params
    from docmemo.errors import ConfigError
    from docmemo.evaluation.trace_page import default_target, write_trace_page
    from docmemo.settings import load_settings

    width = load_params(project / "params.yaml").report.thumbnail_width
    state = project / load_settings().state
    target = out or default_target(state, artifact_name(view.answer.question_id, ""))
    try:
        write_trace_page(target, view, project / PAGES, thumbnail_width=width)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error}.", remedy="Choose another --out.") from error
    return target


def show_list(records: list[AnswerRecord], as_json: bool) -> None:
    """Ids with outcome and rounds, one a line; questions cut to the terminal's width where there is one."""
    import json
    import sys

    if as_json:
        values = [
            {"question_id": r.question_id, "doc_id": r.doc_id, "outcome": r.outcome, "rounds": len(r.rounds)}
            for r in records
        ]
        typer.echo(json.dumps(values, ensure_ascii=False, indent=1))
        return
    from rich.console import Console
    from rich.text import Text

    from docmemo.evaluation.trace_view import clean

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    width = max((len(clean(r.question_id)) for r in records), default=0)
    for r in records:
        rounds = f"{len(r.rounds)} round{' ' if len(r.rounds) == 1 else 's'}"
        line = Text(f"{clean(r.question_id):<{width}}  {r.outcome:<14}  {rounds}  ")
        line.append(clean(r.question), style="dim")
        if sys.stdout.isatty():
            line.truncate(console.width, overflow="ellipsis")
        console.print(line)
