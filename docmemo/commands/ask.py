"""`docmemo ask FILE... "question"`: evidence and an answer from one's own documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from docmemo.config import Params
    from docmemo.qa.adhoc import AdhocAnswer
    from docmemo.types import RoundRecord

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def ask(
    items: Annotated[
        list[str],
        typer.Argument(metavar="FILE... QUESTION", help="PDFs or folders of page images, then the question."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    pages: Annotated[int, typer.Option(min=1, help="Most pages to show.")] = 5,
    params_file: Annotated[
        Path | None, typer.Option("--params", help="Parameters; default: the project's params.yaml, if there is one.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Let a model answer: address of its OpenAI-compatible server.")
    ] = "",
    model: Annotated[str, typer.Option(metavar="NAME", help="The model there; default: the server's only one.")] = "",
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="Environment variable with the server's key.")
    ] = "",
    no_images: Annotated[
        bool, typer.Option("--no-images", help="The model takes no images: show it the text of pages only.")
    ] = False,
    context: Annotated[
        int | None, typer.Option(min=1024, help="Tokens the model takes; default: what its server says.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=10, help="Most rounds of search.")] = None,
) -> None:
    """Find the pages that hold the evidence for a question, with snippets to check, in any PDF.

    With --base-url or --model a language model reads the pages and answers, with citations.
    """
    import asyncio
    import logging
    from contextlib import ExitStack

    from rich.console import Console

    from docmemo.errors import ConfigError, ContextLengthError, ImageInputError
    from docmemo.settings import load_settings

    if len(items) < 2 or not items[-1].strip():
        raise ConfigError(
            "A file and a question are needed.",
            remedy='Example: docmemo ask report.pdf "What was the revenue in 2023?"',
        )
    *names, question = items
    if _is_file(question):
        raise ConfigError(
            f"The last argument, {question}, is a file; the question comes last.",
            remedy='Example: docmemo ask report.pdf "What was the revenue in 2023?"',
        )
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    messages = Console(stderr=True, highlight=False, emoji=False)
    params, settings = _params(params_file), load_settings()
    if rounds is not None:
        params = params.model_copy(update={"loop": params.loop.model_copy(update={"rounds": rounds})})
    if base_url or model:
        from docmemo.commands._ask_model import with_model

        params, settings = with_model(params, settings, base_url, model, api_key_env, not no_images, context)
        chosen = params.answer.reader_model
        messages.print(
            f"asking {chosen.id} ({chosen.context} tokens{'' if chosen.images else ', text only'})", markup=False
        )
    elif api_key_env or no_images or context is not None:
        raise ConfigError(
            "--api-key-env, --no-images and --context say how a model is asked, and no model is named.",
            remedy="Add --base-url URL.",
        )

    from docmemo.qa.adhoc import ask as run

    def say(text: str) -> None:
        messages.print(text, markup=False)

    def on_round(record: RoundRecord) -> None:
        read = ", ".join(map(str, record.evidence))
        status.update(f"round {record.round}: read pages {read} ...")

    files = [Path(name) for name in dict.fromkeys(names)]
    with ExitStack() as stack:
        status = stack.enter_context(messages.status(f"reading {len(files)} file{'s' if len(files) > 1 else ''} ..."))
        work = run(
            files, question, params, settings, lambda text: messages.print(text, markup=False), stack, on_round
        )
        try:
            answer = asyncio.run(work)
        except ImageInputError as error:
            raise ImageInputError(error.message, remedy=f"{error.remedy} Here: --no-images.") from error
        except ContextLengthError as error:
            raise ContextLengthError(error.message, remedy=f"{error.remedy} Here: --context TOKENS.") from error
        status.stop()
        if as_json:
            import json

            typer.echo(json.dumps(as_dict(answer), ensure_ascii=False, indent=1))
        else:
            show(answer, Console(highlight=False, emoji=False), pages)


def _is_file(text: str) -> bool:
    """Whether a text is the path of a file; a long question is none."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _params(path: Path | None) -> Params:
    from docmemo.commands import find_project
    from docmemo.config import Params, load_params
    from docmemo.errors import ConfigError

    if path is not None:
        return load_params(path)
    try:
        return load_params(find_project() / "params.yaml")
    except ConfigError:
        if any((folder / "params.yaml").exists() for folder in (Path.cwd(), *Path.cwd().parents)):
            raise
        return Params()


def as_dict(answer: AdhocAnswer) -> dict[str, Any]:
    """The answer for machines."""
    record = answer.record
    citations = []
    for citation in record.citations:
        file, page = answer.locate(citation.page)
        citations.append(
            {
                "file": file,
                "page": page,
                "label": citation.label,
                "bbox": list(citation.bbox) if citation.bbox else None,
                "quote": citation.quote,
            }
        )
    cited = dict.fromkeys(citation.page for citation in record.citations)
    return {
        "question": record.question,
        "outcome": record.outcome,
        "answer": record.answer,
        "full_answer": record.full_answer,
        "confidence": record.confidence,
        "confidence_score": record.confidence_score,
        "reason": record.reason,
        "pages": [dict(zip(("file", "page"), answer.locate(page), strict=True)) for page in cited],
        "citations": citations,
        "rounds": len(record.rounds),
        "queries": [r.query for r in record.rounds],
        "usage": record.usage.model_dump(mode="json"),
        "failed_files": [{"file": f.path, "reason": f.reason} for f in answer.failed],
    }


def _marked(text: str, question: str, language: str) -> Text:
    """A snippet with the question's terms in bold."""
    from rich.text import Text

    from docmemo.evaluation.trace_view import clean
    from docmemo.retrieval.tokenize import analyzer, query_terms

    shown = Text(clean(" ".join(text.split())))
    wanted = set(query_terms(question, language))
    words = {word for word, term in analyzer(language).words(shown.plain) if term in wanted}
    shown.highlight_words(sorted(words, key=len, reverse=True), style="bold yellow", case_sensitive=False)
    return shown


def show(answer: AdhocAnswer, console: Console, most: int) -> None:
    """The answer for people: pages best first, with their snippets."""
    from rich.markup import escape
    from rich.padding import Padding

    from docmemo.evaluation.trace_view import clean

    record = answer.record
    quotes: dict[int, list[str]] = {}
    for citation in record.citations:
        quotes.setdefault(citation.page, []).extend([citation.quote] if citation.quote else [])
    if record.outcome == "not_answerable":
        console.print("[bold]Nothing found.[/] ", end="")
        console.print(record.reason, markup=False)
        _show_spend(answer, console)
        return
    several = answer.several
    for rank, (page, texts) in enumerate(list(quotes.items())[:most], 1):
        file, number = answer.locate(page)
        printed = answer.page(page).printed or answer.page(page).label
        name = f"page {number}" + (f" (printed {printed})" if printed and printed != str(number) else "")
        where = clean(f"{file}, {name}" if several else name)
        console.print(f"[bold]{rank}. {escape(where)}[/]")
        for text in texts:
            console.print(Padding(_marked(text, record.question, answer.view.index.language), (0, 0, 0, 3)))
    if len(quotes) > most:
        console.print(f"[dim]{len(quotes) - most} more pages were read; --pages {len(quotes)} shows them.[/]")
    console.print()
    label = "Low-confidence extract" if record.confidence == "low" else "Answer"
    console.print(f"[bold]{label}:[/] {escape(clean(record.answer or ''))}")
    if record.full_answer and record.full_answer != record.answer:
        console.print(Padding(clean(record.full_answer), (0, 0, 0, 3)), markup=False)
    if record.confidence_score is not None:
        check = "Check the pages above." if quotes else "It cites no page, so there is nothing to check it by."
        console.print(f"[dim]The model's own confidence: {record.confidence_score:.0%}. {check}[/]")
    if record.confidence == "low":
        console.print("[dim]The embedded stack finds evidence; it does not read it. Check the pages above.[/]")
    _show_spend(answer, console)


def _show_spend(answer: AdhocAnswer, console: Console) -> None:
    """What the answer cost, where a model was asked."""
    from docmemo.evaluation.trace_view import spend_words

    record = answer.record
    if record.usage.calls:
        rounds = f"{len(record.rounds)} round{'' if len(record.rounds) == 1 else 's'}"
        console.print(f"[dim]{rounds}; {spend_words(record.usage)}[/]")
