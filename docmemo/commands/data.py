"""`docmemo data`: benchmarks brought to where a run reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from docmemo.datasets.homes import Home
    from docmemo.datasets.ingest import IngestSummary
    from docmemo.datasets.install import Installed

app = typer.Typer(
    help="Get benchmarks and list them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_SHOWN = 5

FOLDER = Path("data/benchmarks")
"""Where benchmarks go, relative to the project."""


def _say(text: str) -> None:
    typer.echo(text, err=True)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="mmlongbench, longdocurl, papertab or papertext.")],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A local copy, unpacked or as published; left out, it is downloaded."),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="The folder to put it in; data/benchmarks/NAME.")] = None,
    questions: Annotated[
        str | None, typer.Option(help="A file of questions in the copy, to take only those and their documents.")
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="LongDocURL: its PDFs, half the size and with their text, for page images.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="Commit, tag or branch to download; left out, the one known here.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Put it in the place of what is there.")] = False,
) -> None:
    """Bring a benchmark into place, check it, and print how a run uses it."""
    from docmemo.commands import find_project
    from docmemo.datasets.homes import get_home
    from docmemo.datasets.hub import download
    from docmemo.datasets.install import install, refuse_place
    from docmemo.errors import DatasetError

    home = get_home(name, pdf=pdf)
    if source is not None and revision is not None:
        raise DatasetError("--revision is about a download, and --from names a local copy.", remedy="Give one.")
    place = to if to is not None else find_project() / FOLDER / home.name
    _say(f"{home.title} ({home.contents}) has a licence of its own: {home.licence}. Its page: {home.url}")
    note = None
    if source is None:
        refuse_place(place, None, replace)
        _say(f"downloading {home.size}")
        source, commit = download(home, revision)
        note = {"repository": home.url, "commit": commit, "licence": home.licence}
        _say(f"commit {commit}")
    result = install(home, source, place, questions=questions, replace=replace, note=note, say=_say)
    _report(home, result, questions)


def _report(home: Home, result: Installed, questions: str | None) -> None:
    """What is in place, on stdout, with the command that uses it."""
    failed = [document for document in result.dataset.documents if document.status == "failed"]
    for document in failed[:_SHOWN]:
        _say(f"{document.doc_id}: {document.reason}")
    if len(failed) > _SHOWN:
        _say(f"... and {len(failed) - _SHOWN} more documents are missing.")
    summary = _inspect(home, result, questions)
    root = _shown(result.root)
    typer.echo(
        f"{root}: {summary.n_documents} documents ({summary.n_documents_failed} failed), "
        f"{summary.n_pages} pages, {summary.n_questions} questions"
    )
    typer.echo(f"  files: {result.linked} linked, {result.copied} copied, {result.unpacked} unpacked")
    typer.echo(f"  digest: {summary.digest}")
    typer.echo(f"  scorer: {summary.scorer}")
    for name, quirk in summary.quirks.items():
        typer.echo(f"  {name}: {quirk.count}. {quirk.explanation}")
    chosen = questions if questions is not None else "null"
    typer.echo("Run it:")
    typer.echo(
        f"  dvc exp run -S dataset.root={root} -S dataset.format={home.name} "
        f"-S dataset.questions={chosen} -S dataset.limit=null"
    )
    typer.echo("or in params.yaml:")
    typer.echo(f"  dataset:\n    root: {root}\n    format: {home.name}\n    questions: {chosen}\n    limit: null")


def _shown(root: Path) -> str:
    """The folder as params.yaml would name it: relative to the project where it is inside, otherwise absolute."""
    from docmemo.commands import find_project
    from docmemo.errors import ConfigError

    absolute = root.absolute()
    try:
        project = find_project().absolute()
    except ConfigError:  # --to outside of any project
        return str(absolute)
    return absolute.relative_to(project).as_posix() if absolute.is_relative_to(project) else str(absolute)


def _inspect(home: Home, result: Installed, questions: str | None) -> IngestSummary:
    """What ingest would say of it; the digest is the one a run records."""
    import tempfile

    from docmemo.config import DatasetParams
    from docmemo.datasets.ingest import ingest
    from docmemo.documents.pdf import Kind
    from docmemo.pipeline.inspection import look_at
    from docmemo.pipeline.pool import WorkPool
    from docmemo.settings import load_settings

    settings = load_settings()
    root = result.root.absolute()
    params = DatasetParams(root=str(root), format=home.name, questions=questions)
    _say(f"opening {len(result.dataset.documents)} documents")
    with tempfile.TemporaryDirectory() as out, WorkPool(settings.workers, settings.page_timeout) as pool:

        def inspect(path: Path, kind: Kind) -> tuple[int, str]:
            return pool.call(look_at, path, kind, timeout=settings.page_timeout)

        return ingest(params, root, Path(out), inspect, jobs=max(1, settings.workers))


@app.command("list")
def list_() -> None:
    """Print the benchmarks, their licences, and where they are here."""
    from docmemo.commands import find_project
    from docmemo.config import load_params
    from docmemo.datasets.homes import HOMES
    from docmemo.errors import DocMemoError

    project = find_project()
    try:
        dataset = load_params(project / "params.yaml").dataset
    except DocMemoError as error:  # a broken params.yaml hides nothing of the benchmarks
        _say(str(error))
        dataset = None
    for home in HOMES.values():
        place = project / FOLDER / home.name
        here = FOLDER / home.name if place.is_dir() else None
        used = f"; params.yaml uses {dataset.root}" if dataset is not None and dataset.format == home.name else ""
        where = f"here: {here.as_posix()}" if here else f"not here: docmemo data get {home.name} [--from FOLDER]"
        typer.echo(f"{home.name}: {home.title}, {home.contents}, {home.size} to download")
        typer.echo(f"  licence: {home.licence}")
        typer.echo(f"  home: {home.url}")
        typer.echo(f"  {where}{used}")
