"""`docmemo compare A [B]`: what got better or worse between two runs, and whether that is noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from docmemo.evaluation.compare import Comparison

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="The run to compare with: branch, tag, hash, HEAD~1, or an experiment.")],
    b: Annotated[str | None, typer.Argument(help="The run in question; default: the working tree.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Figure that decides (may be repeated): accuracy, judge, rule, f1, recall, .."),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", help="A regression has fallen by more than this share, e.g. 0.02.")
    ] = 0.0,
    alpha: Annotated[float, typer.Option("--alpha", help="Significance level; intervals cover 1 - alpha.")] = 0.05,
    right: Annotated[float, typer.Option("--right", help="Least score that counts as right in flips.")] = 0.5,
    show: Annotated[int, typer.Option("--show", help="Flipped questions listed in each direction.", min=0)] = 40,
    answers: Annotated[
        bool, typer.Option("--answers", help="Add answers and pages of flipped questions, where they are cached.")
    ] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write one offline HTML page.")] = None,
) -> None:
    """Compare two runs on the same questions: figures, slices, flipped questions, cost.

    Reads metrics/ of both from git. Ends with 1 when a figure that decides has significantly fallen, with 3 when the
    two cannot be compared (other dataset, scorer or judge, or no figures), else with 0.
    """
    import json
    from dataclasses import replace

    from docmemo.commands import find_project
    from docmemo.errors import ConfigError
    from docmemo.evaluation.compare import compare as compare_runs
    from docmemo.evaluation.compare_answers import answers_of, chosen
    from docmemo.evaluation.compare_text import markdown, print_comparison
    from docmemo.evaluation.revisions import Repository
    from docmemo.evaluation.run_metrics import load_run

    if as_json and as_markdown:
        raise ConfigError("--json and --markdown exclude each other.", remedy="Choose one of them.")
    repository = Repository(find_project())
    runs = load_run(repository, a), load_run(repository, b)
    found = compare_runs(*runs, metrics=metric or [], threshold=threshold, alpha=alpha, right=right)
    if answers:
        found = replace(found, answers=chosen(found.flipped, *(answers_of(repository, r.revision) for r in runs)))
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=1))
    elif as_markdown:
        typer.echo(markdown(found, show), nl=False)
    else:
        from rich.console import Console

        print_comparison(found, Console(highlight=False, emoji=False), show)
    if html:
        write_page(html, found)
    raise typer.Exit(found.exit_code)


def write_page(target: Path, found: Comparison) -> None:
    """Write the comparison as an HTML page and say where it is.

    Raises:
        ConfigError: if the file cannot be written.
    """
    from docmemo.errors import ConfigError
    from docmemo.evaluation.compare_page import write_comparison_page

    try:
        write_comparison_page(target, found)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error}.", remedy="Choose another --html.") from error
    typer.echo(f"comparison: {target}", err=True)
