"""The embed step: a document's pages to the representations that retrieval scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docmemo.artifacts import read_pages, write_atomic
from docmemo.config import EmbedParams
from docmemo.pipeline.digests import texts_digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.tokenize import document_language
from docmemo.settings import load_settings

if TYPE_CHECKING:
    from docmemo.pipeline.page_vectors import EmbeddedPages, PageEncoders

PAGES_A_SECOND = 10
"""Slower than this on average and the time limit ends the lexical work."""

LEXICAL_MODULES = (
    "docmemo.documents.language",
    "docmemo.pipeline.embed",
    "docmemo.retrieval.lexical",
    "docmemo.retrieval.stopwords",
    "docmemo.retrieval.tokenize",
)
VISUAL_MODULES = (
    "docmemo.models.colqwen",
    "docmemo.models.colqwen_batches",
    "docmemo.pipeline.page_vectors",
    "docmemo.retrieval.late_interaction",
)
LEXICAL_PARAMS = {"backend", "window_tokens", "window_stride"}
"""The other parameters are of page images: a change of theirs leaves a lexical artifact as it is."""


def embed_document(archive: Path, target: Path, params: EmbedParams, model: str) -> None:
    """Write the lexical index of a page archive to `target`."""
    page_set = read_pages(archive)
    texts = [page.text for page in page_set.pages]
    index = LexicalIndex.build(
        texts,
        document_language(texts, page_set.language),
        window_tokens=params.window_tokens,
        window_stride=params.window_stride,
        model=model,
    )
    index.save(target)


@dataclass(frozen=True)
class EmbedStep:
    """Page representations: lexical statistics, and with backend colqwen the vectors of page images beside them.

    Keyed by what is read: the pages' texts, and with colqwen their images.

    Args:
        params: parameters.
        models: the embedder's lock entry.
        encoders: what embeds page images; None loads the model into this process when it is needed.
    """

    params: EmbedParams
    models: Mapping[str, Any]
    encoders: PageEncoders | None = None
    name: ClassVar[str] = "embed"
    suffix: ClassVar[str] = ".safetensors"
    needs: ClassVar[tuple[str, ...]] = ("render",)

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules whose code decides the result."""
        return LEXICAL_MODULES if self.params.backend == "lexical" else (*LEXICAL_MODULES, *VISUAL_MODULES)

    def key(self, job: Job) -> Mapping[str, Any]:
        """Texts, language, parameters and encoder; with colqwen also page images and batch size.

        Left out: the name and revision of the model among the parameters, since the lock entry identifies it, and the
        device it runs on (docmemo/pipeline/page_vectors.py says why).
        """
        archive = job.inputs["render"]
        page_set = read_pages(archive)
        lexical = {
            "texts": texts_digest(page_set),
            "language": page_set.language,
            "params": self.params.model_dump(mode="json", include=LEXICAL_PARAMS),
            "embedder": self.models["embedder"],
        }
        if self.params.backend == "lexical":
            return lexical
        from docmemo.pipeline.page_vectors import image_digests

        return {**lexical, "images": image_digests(archive, page_set), "batch_size": self.params.batch_size}

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Write the file to `target`: the lexical part in a worker, vectors where the model is.

        Raises:
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
            ModelLoadError: if the model cannot be loaded; nothing else could be embedded either.
        """
        limit = pool.page_timeout + job.document.n_pages / PAGES_A_SECOND
        model = str(self.models["embedder"].get("id", ""))
        pool.call(embed_document, job.inputs["render"], target, self.params, model, timeout=limit)
        if self.params.backend == "lexical":
            return StepResult()
        found = self._embed_images(job.inputs["render"], pool)
        about = {"vectors": dict(found.vectors.made_with)}
        write_atomic(target, LexicalIndex.load(target).to_bytes(found.vectors.arrays(), about))
        reduced = {} if found.batch_size == self.params.batch_size else {"batch_size": found.batch_size}
        return StepResult(failures=dict(found.failures), storable=found.storable, used=reduced)

    def _embed_images(self, archive: Path, pool: WorkPool) -> EmbeddedPages:
        from docmemo.pipeline.page_vectors import PageEncoders

        encoders = self.encoders
        if encoders is None:
            encoders = PageEncoders(self.params, self.models["embedder"], load_settings(), in_process=True)
        pool.attach(encoders)
        return encoders.embed(archive, read_pages(archive))
