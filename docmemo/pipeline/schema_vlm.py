"""The schema step with a language model: type, topic and sections from outline, headings and page summaries.

One request a document. Where the material does not fit the model's context even when shortened, or the reply is cut,
the pages are divided in two halves that are described each as a document of its own. What each page carries is told
from the layout, as without a model; so are the sections of pages whose request failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_json, read_layout, read_pages, write_json
from docmemo.config import SchemaParams
from docmemo.documents.headings import find_headings
from docmemo.errors import ContextLengthError, ModelError, TruncatedReplyError
from docmemo.fingerprint import digest
from docmemo.memory.described import Description, Part, combine, one_line
from docmemo.memory.schema import LABEL_CHARS, build_schema, heading_marks
from docmemo.models.asking import Asked, Watch, reason_of
from docmemo.models.background import run_blocking
from docmemo.models.chat import ChatModel, Message
from docmemo.models.rendering import messages_of
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.schema import PAGES_A_SECOND, SchemaStep
from docmemo.pipeline.step import WHOLE, Job, StepResult
from docmemo.prompts import Prompt
from docmemo.types import Outline, SchemaMemory, SummarySet

Mark = tuple[int, int, str]
"""(page, level, text) of a heading."""

SHORTENING = ((800, 300), (400, 150), (200, 80), (100, 40))
"""(characters of a summary, headings) tried in turn until a request fits the model's context."""
FEWEST_PAGES = 8
"""Fewer pages are not divided."""
MOST_CUTS = 2
TOKENS_A_PAGE = 20
"""Of the reply: a section takes about 40, and two pages share one at the most crowded."""


@dataclass(frozen=True)
class Material:
    """What the model is shown of a document, and what is used where it fails."""

    structural: SchemaMemory
    outline: list[Outline]
    headings: list[Mark]
    texts: dict[int, str]
    """Page to its summary, or to its text where there are no summaries."""
    n_pages: int

    def says_anything(self, first: int, last: int) -> bool:
        """Whether there is anything to show of a range of pages."""
        return any(first <= page <= last and text.strip() for page, text in self.texts.items())


def gather(archive: Path, layout: Path | None, summaries: Path | None, params: SchemaParams) -> Material:
    """Read a document's artifacts and build its structural schema; runs in a worker."""
    page_set = read_pages(archive)
    regions = read_layout(layout) if layout is not None else None
    described = read_json(summaries, SummarySet) if summaries is not None else None
    return Material(
        structural=build_schema(page_set, regions, described, params),
        outline=[o for o in page_set.outline if any(c.isalpha() for c in o.title)],
        headings=heading_marks(page_set, regions, find_headings(page_set)),
        texts=(
            {s.page: s.summary for s in described.summaries}
            if described is not None
            else {page.page: page.text for page in page_set.pages}
        ),
        n_pages=max((page.page for page in page_set.pages), default=0),
    )


@dataclass(frozen=True)
class VlmSchemaStep:
    """Schema memory by a model. Without a layout artifact headings are told from type sizes."""

    params: SchemaParams
    models: Mapping[str, Any]
    prompt: Prompt
    open: Callable[[], ChatModel]
    """Makes the client; called when something has to be asked."""
    watch: Watch = field(default_factory=Watch)
    name: str = "schema"
    suffix: str = ".json"
    needs: tuple[str, ...] = ("render", "layout", "summarize")
    modules: tuple[str, ...] = field(
        default=(
            *SchemaStep.modules,
            "docmemo.memory.described",
            "docmemo.models.rendering",
            "docmemo.models.asking",
            "docmemo.pipeline.schema_vlm",
            "docmemo.prompts",
        )
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """What the structural schema depends on, and summaries, the model's parameters, and the prompt."""
        summaries = job.inputs.get("summarize")
        shown = [[s.page, s.summary] for s in read_json(summaries, SummarySet).summaries] if summaries else None
        return {
            **SchemaStep(self.params, self.models).key(job),
            "summaries": digest(shown),
            "params": self.params.model_dump(mode="json"),
            "prompt": self.prompt.digest,
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Ask for the document and write its schema to `target`.

        Raises:
            DocMemoError: an error that ends the run: the server is gone, the money is spent, the model is not there.
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
        """
        limit = pool.page_timeout + job.document.n_pages / PAGES_A_SECOND
        inputs = (job.inputs["render"], job.inputs.get("layout"), job.inputs.get("summarize"))
        material = pool.call(gather, *inputs, self.params, timeout=limit)
        asked = Asked()
        described = run_blocking(self._describe(material, asked)) if material.n_pages else []
        waiting = asked.waiting(self.watch)
        failures = {}
        for part in described:
            if part.first in asked.failures:
                where = "" if len(described) == 1 else f" on pages {part.first}-{part.last}"
                reason = reason_of(asked.failures[part.first], f"structural sections{where}")
                failures[WHOLE if len(described) == 1 else part.first] = reason
        schema, reason = combine(material.structural, material.n_pages, described, self.params.max_sections)
        if reason:
            failures.setdefault(WHOLE, reason)
        write_json(target, schema)
        return StepResult(failures, storable=not waiting, waiting=waiting, usage=asked.usage)

    async def _describe(self, material: Material, asked: Asked) -> list[Part]:
        most = max(4 * FEWEST_PAGES, self.params.model.max_tokens // TOKENS_A_PAGE)
        n_parts = -(-material.n_pages // most)
        size = -(-material.n_pages // n_parts)
        parts: list[Part] = []
        model = self.open()
        for first in range(1, material.n_pages + 1, size):
            last = min(material.n_pages, first + size - 1)
            parts += await self._part(model, material, first, last, asked)
        return parts

    async def _part(
        self, model: ChatModel, material: Material, first: int, last: int, asked: Asked, cuts: int = 0
    ) -> list[Part]:
        """Descriptions of a range of pages: one, or those of its halves.

        Args:
            cuts: how often a reply for pages around these was cut; a model that repeats itself cuts any.
        """
        if not material.says_anything(first, last):
            return [Part(first, last, None)]
        label = f"{material.structural.doc_id} pages {first}-{last}"
        divisible = last - first + 1 >= 2 * FEWEST_PAGES
        messages = self._messages(model, material, first, last)
        error: ModelError | None = None
        if model.count(messages, Description) <= model.room or not divisible:
            reply = await self.watch.ask(lambda: model.ask(messages, Description, label=label))
            if not isinstance(reply, ModelError):
                asked.spend(first, reply.usage)
                return [Part(first, last, reply.value)]
            error = reply
        too_much = isinstance(error, TruncatedReplyError | ContextLengthError) and cuts < MOST_CUTS
        if divisible and (error is None or too_much):
            if error is not None:
                asked.spend(first, error.usage)
                cuts += 1
            middle = (first + last) // 2
            halves = [(first, middle), (middle + 1, last)]
            return [part for a, b in halves for part in await self._part(model, material, a, b, asked, cuts)]
        assert error is not None
        asked.fail(first, error)
        return [Part(first, last, None)]

    def _messages(self, model: ChatModel, material: Material, first: int, last: int) -> list[Message]:
        """The request for a range of pages, numbered from 1, shortened until it fits or can be no shorter."""
        messages: list[Message] = []
        for chars, most in SHORTENING:
            rendered = self.prompt.render(
                n_pages=last - first + 1,
                outline=[
                    {"level": min(o.level, 4), "title": one_line(o.title, LABEL_CHARS), "page": o.page - first + 1}
                    for o in material.outline
                    if first <= o.page <= last
                ][:most],
                headings=[
                    {"page": page - first + 1, "text": one_line(text, LABEL_CHARS)}
                    for page, _, text in _weightiest(material.headings, first, last, most)
                ],
                summaries=[
                    {"page": page - first + 1, "summary": one_line(text, chars)}
                    for page, text in sorted(material.texts.items())
                    if first <= page <= last and text.strip()
                ],
            )
            messages = messages_of(rendered)
            if model.count(messages, Description) <= model.room:
                break
        return messages


def _weightiest(headings: Sequence[Mark], first: int, last: int, most: int) -> list[Mark]:
    """At most `most` headings of a range of pages in their order, those of the upper levels before others."""
    here = [mark for mark in headings if first <= mark[0] <= last]
    kept = sorted(range(len(here)), key=lambda i: (here[i][1], i))[:most]
    return [here[i] for i in sorted(kept)]
