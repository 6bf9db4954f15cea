"""Questions about files that are in no dataset: render, index, answer, with finished work taken from the store.

No Prefect, no DVC, no manifest. Layout is left out: it costs half a second a page and the answer does not need it.
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
from docmemo.models.registry import resolve
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.render import RenderStep
from docmemo.pipeline.runner import ensure
from docmemo.pipeline.schema import SchemaStep
from docmemo.pipeline.step import Job, Step
from docmemo.pipeline.summarize import SummarizeStep
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.qa.loop import Loop, Policy
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.retriever import PageRetriever
from docmemo.settings import Settings
from docmemo.store import Store
from docmemo.types import AnswerRecord, Document, LayoutSet, Page, PageSet, Question, SchemaMemory, Section


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
        super().__init__(" + ".join(v.doc_id for v in views), views[0].artifacts, retrieval)
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
        return PageRetriever.joint([(view.page_set, view.index) for view in self.views], self.retrieval)

    @cached_property
    def schema(self) -> SchemaMemory:
        """The documents' sections one after the other."""
        joint = SchemaMemory(doc_id=self.doc_id)
        start = 0
        for view in self.views:
            for s in view.schema.sections:
                moved = {"first_page": s.first_page + start, "last_page": s.last_page + start}
                joint.sections.append(Section(label=s.label, level=s.level, **moved))
            start += len(view.page_set.pages)
        return joint

    @cached_property
    def layout(self) -> LayoutSet:
        """No regions."""
        return LayoutSet(doc_id=self.doc_id)

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


def _steps(params: Params) -> dict[str, Step]:
    models = {role: resolve_role(params, role) for role in ("renderer", "ocr", "embedder", "summarizer", "schema")}
    return {
        "render": RenderStep(params.render, models),
        "embed": EmbedStep(params.embed, models),
        "summarize": SummarizeStep(params.summarize, models),
        "schema": SchemaStep(params.schema_, models),
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

    def __post_init__(self) -> None:
        self._steps = _steps(self.params)
        self.computed: dict[str, bool] = {}

    def view(self, path: Path, number: int) -> DocumentView:
        """The view of one file.

        Raises:
            DocumentError: if it cannot be used.
        """
        document = _look(path)
        made: dict[str, Path] = {}
        for name, step in self._steps.items():
            inputs = {need: made[need] for need in step.needs if need in made}
            target = self.folder / f"{number}{step.suffix if name != 'schema' else '.schema.json'}"
            if name == "render" and document.n_pages > 20:
                self.say(f"{path.name}: {document.n_pages} pages")
            ensured = ensure(step, Job(document, path, inputs), target, self.store, self.pool)
            for page, reason in ensured.entry.failures.items():
                self.say(f"{path.name}: page {page} is missing: {reason}")
            self.computed[path.name] = self.computed.get(path.name, False) or ensured.computed
            made[name] = target
        artifacts = Artifacts(made["render"], made["embed"], made["summarize"], made["schema"])
        return DocumentView(str(path), artifacts, self.params.retrieval)


async def ask(
    files: Sequence[Path], text: str, params: Params, settings: Settings, say: Callable[[str], None], stack: ExitStack
) -> AdhocAnswer:
    """Answer one question about some files.

    Args:
        files: PDFs or folders of page images.
        text: the question.
        params: all parameters; the dataset's are not used.
        settings: store and workers.
        say: told of progress and of files that cannot be used.
        stack: keeps the artifacts until the caller is done with the answer.

    Raises:
        DocumentError: if no file can be used.
    """
    store = Store(settings.store_dir)
    folder = stack.enter_context(store.workspace())
    views, failed = [], []
    with WorkPool(settings.workers, settings.page_timeout) as pool:
        preparer = Preparer(params, store, pool, folder, say)
        for number, path in enumerate(files):
            try:
                views.append(preparer.view(path, number))
            except (DocumentError, PageError) as error:
                failed.append(FailedFile(str(path), str(error)))
    reasons = [f"{file.path}: {file.reason}" for file in failed]
    if not views:
        raise DocumentError("None of the files can be used.\n" + "\n".join(reasons))
    for reason in reasons:
        say(reason)
    view = views[0] if len(views) == 1 else JointView(views, params.retrieval)
    loop = Loop(
        resolve("reranker", params.answer.reranker)(params),
        resolve("reader", params.answer.reader)(params),
        Policy(params.loop, params.belief, params.answer.seed),
    )
    question = Question(question_id="ask", doc_id=view.doc_id, question=text)
    record, _ = await loop.answer(question, view)
    return AdhocAnswer(record, view, failed, preparer.computed)
