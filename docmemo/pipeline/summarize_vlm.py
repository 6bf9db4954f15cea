"""The summarize step with a vision model: one request a page, from its picture and its text.

Requests are small and independent, so they run at once (the client bounds how many), and each reply is in the call
journal before anything else happens: an interrupted document asks again only for what was in flight.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from docmemo.artifacts import read_json, read_member, read_pages, write_json
from docmemo.config import SummarizeParams
from docmemo.documents.captions import caption_of
from docmemo.errors import ModelError
from docmemo.fingerprint import digest_bytes
from docmemo.models.asking import Asked, Watch, all_of, reason_of
from docmemo.models.background import run_blocking
from docmemo.models.chat import ChatModel, Image, Message, Reply
from docmemo.models.images import encode
from docmemo.models.rendering import messages_of
from docmemo.pipeline.digests import lines_digest
from docmemo.pipeline.pool import WorkPool
from docmemo.pipeline.step import Job, StepResult
from docmemo.pipeline.summarize import SummarizeStep
from docmemo.prompts import Prompt
from docmemo.types import Page, PageSet, PageSummary, SummarySet

KEYWORDS = 8
"""Most keywords kept, as the prompt asks for."""
SUMMARY_CHARS = 2000
"""A summary is cut here; the prompt asks for 120 words."""
CAPTIONS, CAPTION_CHARS = 12, 200
SHRINKING = ((1.0, 1.0), (0.5, 1.0), (0.25, 1.0), (0.25, 0.7), (0.25, 0.5), (0.0, 0.5), (0.0, 0.35))
"""(share of the text, share of the picture's side) tried in turn until a request fits the model's context."""


class PageDescription(BaseModel):
    """What the model says of a page."""

    summary: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    keywords: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class VlmSummarizeStep:
    """Page summaries by a model. A page whose reply cannot be used gets the extractive one, with the reason."""

    params: SummarizeParams
    models: Mapping[str, Any]
    prompt: Prompt
    open: Callable[[], ChatModel]
    """Makes the client; called when something has to be asked."""
    ahead: int = 8
    """Pages of a document prepared at once."""
    watch: Watch = field(default_factory=Watch)
    name: str = "summarize"
    suffix: str = ".json"
    needs: tuple[str, ...] = ("render",)
    modules: tuple[str, ...] = field(
        default=(
            *SummarizeStep.modules,
            "docmemo.models.images",
            "docmemo.models.rendering",
            "docmemo.models.asking",
            "docmemo.pipeline.summarize_vlm",
            "docmemo.prompts",
        )
    )

    def key(self, job: Job) -> Mapping[str, Any]:
        """What is shown of each page, the lines (which the extractive summary is made of), parameters, model, prompt.

        Left out: pictures, where the model takes none.
        """
        archive = job.inputs["render"]
        page_set = read_pages(archive)
        pictures = [page.image for page in page_set.pages if page.image and self.params.model.images]
        return {
            "lines": lines_digest(page_set),
            "images": [digest_bytes(read_member(archive, name)) for name in pictures],
            "params": self.params.model_dump(mode="json"),
            "summarizer": self.models["summarizer"],
            "prompt": self.prompt.digest,
        }

    def compute(self, job: Job, target: Path, pool: WorkPool) -> StepResult:
        """Ask for every page and write the summaries to `target`.

        Raises:
            DocMemoError: an error that ends the run: the server is gone, the money is spent, the model is not there.
            PageTimeoutError, WorkerDiedError: never stored, so a later run tries again.
        """
        archive = job.inputs["render"]
        page_set = read_pages(archive)
        asked = Asked()
        made = run_blocking(self._summaries(page_set, archive, asked))
        if asked.failures:
            spare = self._extractive(job, pool)
            made = [spare[s.page] if s.page in asked.failures else s for s in made]
        write_json(target, SummarySet(doc_id=page_set.doc_id, summaries=made))
        waiting = asked.waiting(self.watch)
        failures = {p: reason_of(e, "an extractive summary") for p, e in sorted(asked.failures.items())}
        return StepResult(failures, storable=not waiting, waiting=waiting, usage=asked.usage)

    async def _summaries(self, page_set: PageSet, archive: Path, asked: Asked) -> list[PageSummary]:
        model = self.open()
        return await all_of(page_set.pages, partial(self._summary, model, page_set, archive, asked), self.ahead)

    async def _summary(
        self, model: ChatModel, page_set: PageSet, archive: Path, asked: Asked, page: Page
    ) -> PageSummary:
        self.watch.check()
        messages = await asyncio.to_thread(self._messages, model, page, len(page_set.pages), archive)
        if messages is None:
            return PageSummary(page=page.page, summary="")
        label = f"{page_set.doc_id} page {page.page}"
        reply: Reply[PageDescription] | ModelError = await self.watch.ask(
            lambda: model.ask(messages, PageDescription, label=label)
        )
        if isinstance(reply, ModelError):
            asked.fail(page.page, reply)
            return PageSummary(page=page.page, summary="")
        asked.spend(page.page, reply.usage)
        return _page_summary(page.page, reply.value)

    def _messages(self, model: ChatModel, page: Page, n_pages: int, archive: Path) -> list[Message] | None:
        """The request for a page, made smaller until it fits; None for a page that has nothing to show."""
        data = read_member(archive, page.image) if self.params.model.images and page.image else None
        text = page.text[: self.params.text_chars]
        if page.failure or (data is None and not text.strip()):
            return None
        name = page.printed or page.label
        captions = [line.text[:CAPTION_CHARS] for line in page.lines if caption_of(line.text)][:CAPTIONS]
        messages: list[Message] = []
        pictures: dict[int, Image] = {}
        for text_share, side_share in SHRINKING:
            rendered = self.prompt.render(
                page=page.page,
                label="" if name == str(page.page) else name,
                n_pages=n_pages,
                text=text[: int(len(text) * text_share)],
                captions=captions,
            )
            side = int(self.params.page_side * side_share)
            if data is not None and side not in pictures:
                pictures[side] = encode(data, side)
            messages = messages_of(rendered, {"page": pictures[side]} if data is not None else {})
            if model.count(messages, PageDescription) <= model.room:
                break
        return messages

    def _extractive(self, job: Job, pool: WorkPool) -> dict[int, PageSummary]:
        with tempfile.TemporaryDirectory(prefix="docmemo-summaries-") as folder:
            path = Path(folder) / "summaries.json"
            SummarizeStep(self.params, self.models).compute(job, path, pool)
            return {s.page: s for s in read_json(path, SummarySet).summaries}


def _page_summary(page: int, found: PageDescription) -> PageSummary:
    keywords = list(dict.fromkeys(word for k in found.keywords if (word := _line(k, 80))))
    return PageSummary(page=page, summary=_line(found.summary, SUMMARY_CHARS), keywords=keywords[:KEYWORDS])


def _line(text: str, limit: int) -> str:
    """`text` in one line of at most `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
