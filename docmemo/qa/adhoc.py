"""Questions about files that are in no dataset: render, index, answer, with finished work taken from the store.

No Prefect, no DVC, no manifest. Layout costs half a second a page; so it is made only where crops of tables and
figures can help (a reader that sees pictures) and the files are short (`LAYOUT_PAGES`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from docmemo.config import Params, RetrievalParams
from docmemo.documents.pdf import digest_source, image_files, inspect_document
from docmemo.errors import DocumentError, PageError
from docmemo.models.lock import resolve_role
from docmemo.pipeline.backends import schema_step, summarize_step
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.layout import LayoutStep
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.runner import ensure
from docmemo.pipeline.step import Job, Step
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.qa.images import Picture
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.parts import limited, make_reader, make_reranker
from docmemo.retrieval.encoders import query_encoder
from docmemo.retrieval.late_interaction import PageVectors
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.settings import Settings
from docmemo.store import Store
from docmemo.types import (
    AnswerRecord,
    Document,
    LayoutSet,
    Page,
    PageCrop,
    PageSet,
    Question,
    RoundRecord,
    SchemaMemory,
    Section,
)

LAYOUT_PAGES = 40
"""Most pages of all files together whose layout is made: some 20 seconds on one core."""


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be used."""

    path: str
    reason: str


@dataclass
class AdhocAnswer:
    """The answer and what it was drawn from."""

    record: AnswerRecord
    view: DocumentView
    failed: list[FailedFile]
    computed: dict[str, bool]
    """File to whether anything had to be computed for it."""

    def locate(self, page: int) -> tuple[str, int]:
        """File and page of a page number in the record."""
        if isinstance(self.view, JointView):
            return self.view.locate(page)
        return self.view.doc_id, page

    @property
    def several(self) -> bool:
        """Whether several files were searched."""
        return isinstance(self.view, JointView)

    def page(self, page: int) -> Page:
        """The page's record."""
        return self.view.by_number[page]


class JointView(DocumentView):
    """Several documents as one: pages are numbered through, and know where they come from."""

    def __init__(self, views: Sequence[DocumentView], retrieval: RetrievalParams) -> None:
        first = views[0]
        super().__init__(" + ".join(v.doc_id for v in views), first.artifacts, retrieval, first.query_encoder)
        self.views = list(views)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """(index of the view, page in it) of each joint page, in order."""
        return [(i, page.page) for i, view in enumerate(self.views) for page in view.page_set.pages]

    @cached_property
    def page_set(self) -> PageSet:
        """All pages, numbered 1..N."""
        pages: list[Page] = []
        for view in self.views:
            for page in view.page_set.pages:
                pages.append(page.model_copy(update={"page": len(pages) + 1}))
        first = self.views[0].page_set
        return PageSet(doc_id=self.doc_id, sha256="", language=first.language, pages=pages)

    @cached_property
    def index(self) -> LexicalIndex:
        """Joint lexical statistics."""
        return LexicalIndex.merge([view.index for view in self.views])

    @cached_property
    def retriever(self) -> PageRetriever:
        """Scores the pages of all documents together."""
        pairs = [(view.page_set, view.index) for view in self.views]
        return PageRetriever.joint(pairs, self.retrieval, self.visual)

    def page_vectors(self) -> PageVectors:
        """The vectors of all documents' page images."""
        return PageVectors.merge([view.page_vectors() for view in self.views])

    @cached_property
    def summaries(self) -> dict[int, str]:
        """Page summaries by joint page."""
        places = enumerate(self._places, 1)
        return {joint: self.views[i].summaries.get(page, "") for joint, (i, page) in places}

    @cached_property
    def _starts(self) -> list[int]:
        """Joint pages before each document's first one."""
        starts = [0]
        for view in self.views[:-1]:
            starts.append(starts[-1] + len(view.page_set.pages))
        return starts

    @cached_property
    def schema(self) -> SchemaMemory:
        """The documents' sections one after the other."""
        joint = SchemaMemory(doc_id=self.doc_id)
        for view, start in zip(self.views, self._starts, strict=True):
            for s in view.schema.sections:
                moved = {"first_page": s.first_page + start, "last_page": s.last_page + start}
                joint.sections.append(Section(label=s.label, level=s.level, **moved))
            joint.carries |= {page + start: kinds for page, kinds in view.schema.carries.items()}
        return joint

    @cached_property
    def layout(self) -> LayoutSet:
        """The regions of all documents."""
        joint = LayoutSet(doc_id=self.doc_id)
        for view, start in zip(self.views, self._starts, strict=True):
            joint.regions += [r.model_copy(update={"page": r.page + start}) for r in view.layout.regions]
        return joint

    def page_picture(self, page: int) -> Picture | None:
        """The picture of a joint page."""
        view, number = self._places[page - 1]
        return self.views[view].page_picture(number)

    def crop_picture(self, crop: PageCrop) -> Picture | None:
        """The picture of a table or figure on a joint page."""
        view, number = self._places[crop.page - 1]
        return self.views[view].crop_picture(crop.model_copy(update={"page": number}))

    def source(self, page: int) -> str:
        """The file of a joint page, and the page in it."""
        view, number = self._places[page - 1]
        return f"{Path(self.views[view].doc_id).name}, its page {number}"

    def documents_of(self, pages: Sequence[int]) -> list[int]:
        """Index of the document each page is of."""
        return [self._places[page - 1][0] for page in pages]

    def citation_label(self, page: int) -> str:
        """How the page calls itself in its own document."""
        view, number = self._places[page - 1]
        return self.views[view].citation_label(number)

    def locate(self, page: int) -> tuple[str, int]:
        """File and page of a joint page number."""
        view, number = self._places[page - 1]
        return self.views[view].doc_id, number


def _kind(path: Path) -> Literal["pdf", "images"]:
    return "images" if path.is_dir() else "pdf"


def _look(path: Path) -> Document:
    """The manifest entry of one file.

    Raises:
        DocumentError: if it cannot be used.
    """
    if not path.exists():
        raise DocumentError("there is no such file.", remedy="Check the path.")
    kind = _kind(path)
    if kind == "images" and not image_files(path):
        raise DocumentError(
            "the folder holds no page images.", remedy="Name a PDF, or a folder of PNG or JPEG pages."
        )
    n_pages = inspect_document(path, kind)
    return Document(doc_id=path.name, path=path.name, kind=kind, sha256=digest_source(path, kind), n_pages=n_pages)


def _steps(params: Params, settings: Settings, with_layout: bool) -> dict[str, Step]:
    roles = ["renderer", "ocr", "embedder", "summarizer", "schema", *(["layout"] if with_layout else [])]
    models = {role: resolve_role(params, role) for role in roles}
    layout: dict[str, Step] = {"layout": LayoutStep(params.layout, models)} if with_layout else {}
    return {
        "render": RenderStep(params.render, models),
        **layout,
        "embed": EmbedStep(params.embed, models),
        "summarize": summarize_step(params, models, settings),
        "schema": schema_step(params, models, settings),
    }


@dataclass
class Preparer:
    """Brings files through the offline steps."""

    params: Params
    store: Store
    pool: WorkPool
    folder: Path
    """Where artifacts of this call are put."""
    say: Callable[[str], None]
    settings: Settings
    with_layout: bool = False

    def __post_init__(self) -> None:
        self._steps = _steps(self.params, self.settings, self.with_layout)
        self._encoder = query_encoder(self.params, {"embedder": resolve_role(self.params, "embedder")}, self.settings)
        self.computed: dict[str, bool] = {}

    def view(self, path: Path, document: Document, number: int) -> DocumentView:
        """The view of one file.

        Raises:
            DocumentError: if it cannot be used.
        """
        made: dict[str, Path] = {}
        for name, step in self._steps.items():
            inputs = {need: made[need] for need in step.needs if need in made}
            target = self.folder / f"{number}{step.suffix if name != 'schema' else '.schema.json'}"
            if name == "render" and document.n_pages > 20:
                self.say(f"{path.name}: {document.n_pages} pages")
            ensured = ensure(step, Job(document, path, inputs), target, self.store, self.pool)
            for remark in ensured.remarks():
                self.say(f"{path.name}, {remark}")
            self.computed[path.name] = self.computed.get(path.name, False) or ensured.computed
            made[name] = target
        artifacts = Artifacts(
            made["render"], made["embed"], made["summarize"], made["schema"], layout=made.get("layout")
        )
        return DocumentView(str(path), artifacts, self.params.retrieval, self._encoder)


def _wants_layout(params: Params, documents: Sequence[Document], say: Callable[[str], None]) -> bool:
    """Whether crops help and are cheap enough."""
    if params.answer.reader != "vlm" or not params.answer.reader_model.images or params.loop.crops == 0:
        return False
    pages = sum(document.n_pages for document in documents)
    if pages > LAYOUT_PAGES:
        say(f"{pages} pages: tables and figures are shown as part of their pages only, without enlarged crops.")
    return pages <= LAYOUT_PAGES


def open_files(
    files: Sequence[Path], params: Params, settings: Settings, say: Callable[[str], None], folder: Path, store: Store
) -> tuple[DocumentView, list[FailedFile], dict[str, bool]]:
    """The view of all files that can be used, those that cannot, and what had to be computed.

    Raises:
        DocumentError: if no file can be used.
    """
    failed: list[FailedFile] = []
    good: list[tuple[Path, Document]] = []
    for path in files:
        try:
            good.append((path, _look(path)))
        except DocumentError as error:
            failed.append(FailedFile(str(path), str(error)))
    with_layout = _wants_layout(params, [document for _, document in good], say)
    views = []
    with WorkPool(settings.workers, settings.page_timeout) as pool:
        preparer = Preparer(params, store, pool, folder, say, settings, with_layout)
        for number, (path, document) in enumerate(good):
            try:
                views.append(preparer.view(path, document, number))
            except (DocumentError, PageError) as error:
                failed.append(FailedFile(str(path), str(error)))
    reasons = [f"{file.path}: {file.reason}" for file in failed]
    if not views:
        raise DocumentError("None of the files can be used.\n" + "\n".join(reasons))
    for reason in reasons:
        say(reason)
    view = views[0] if len(views) == 1 else JointView(views, params.retrieval)
    return view, failed, preparer.computed


async def ask(
    files: Sequence[Path],
    text: str,
    params: Params,
    settings: Settings,
    say: Callable[[str], None],
    stack: ExitStack,
    on_round: Callable[[RoundRecord], None] = lambda _record: None,
) -> AdhocAnswer:
    """Answer one question about some files.

    Args:
        files: PDFs or folders of page images.
        text: the question.
        params: all parameters; the dataset's are not used.
        settings: store, workers, and the server of the models.
        say: told of progress and of files that cannot be used.
        stack: keeps the artifacts until the caller is done with the answer.
        on_round: hears of each round when it is over.

    Raises:
        DocumentError: if no file can be used.
        ModelError: if a model cannot be used.
    """
    store = Store(settings.store_dir)
    folder = stack.enter_context(store.workspace())
    view, failed, computed = open_files(files, params, settings, say, folder, store)
    loop = Loop(
        make_reranker(params, {}, settings),
        make_reader(params, {}, settings),
        Policy(params.loop, params.belief, params.answer.seed),
        on_round,
    )
    question = Question(question_id="ask", doc_id=view.doc_id, question=text)
    with limited(params.answer):
        record, _ = await loop.answer(question, view)
    return AdhocAnswer(record, view, failed, computed)
