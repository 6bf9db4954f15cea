"""The reranker that is a language model: from page summaries, schema and notes to the pages worth reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from docmemo.config import Params
from docmemo.models.chat import ChatModel, Message, Reply
from docmemo.models.rendering import messages_of
from docmemo.qa.fitting import Fitted, Shape, fit, reranking_shapes, schema_chars
from docmemo.qa.material import notes_text, schema_text, shortened
from docmemo.qa.protocols import RerankReply, RerankRequest
from docmemo.qa.served import ServedRole
from docmemo.settings import Settings
from docmemo.types import Fitting

SUMMARY_CHARS = 1200
"""Longest summary shown, before anything has to be fitted."""


class ChosenPages(BaseModel):
    """The pages chosen."""

    model_config = ConfigDict(extra="ignore")

    reason: str = ""
    pages: list[int] = Field(default_factory=list)


class VlmReranker:
    """Reranker `vlm`."""

    costly = False
    """The journal of paid calls keeps its replies."""
    served = True
    """Takes its lock entry and settings."""

    def __init__(
        self,
        params: Params,
        *,
        entry: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        model: ChatModel | None = None,
    ) -> None:
        self._role = ServedRole("reranker", "rerank", params.answer.reranker_model, entry, settings, model)

    @cached_property
    def _model(self) -> ChatModel:
        return self._role.model

    async def prepare(self) -> None:
        """Before a run: make sure that the model can be asked as it will be.

        Raises:
            ConfigError: if it refuses that.
            ModelError: if the server cannot be used at all.
        """
        await self._role.probe(images=0)

    async def rerank(self, request: RerankRequest) -> RerankReply:
        """The candidates the model names, or the best by retrieval where it names none.

        Raises:
            ContextLengthError: if not even one candidate fits; nothing is sent then.
            ModelError: whatever the model's call raised.
        """
        if not request.candidates:
            return RerankReply(pages=[])
        fitted = self._fit(request)
        label = f"{request.question.question_id} round {request.round} rerank"
        reply = await self._model.ask(self._messages(request, fitted.shape), ChosenPages, label=label)
        return self._mapped(request, fitted, reply)

    def _fit(self, request: RerankRequest) -> Fitted:
        first = Shape(
            pages=len(request.candidates),
            crops=0,
            side=0,
            text_chars=SUMMARY_CHARS,
            schema_chars=schema_chars(self._model.room),
            pictures=False,
        )

        def count(shape: Shape) -> int:
            return self._model.count(self._messages(request, shape), ChosenPages)

        what = f"{request.question.question_id}: the rerank request of round {request.round}"
        return fit(reranking_shapes(first), count, self._model.room, what)

    def _messages(self, request: RerankRequest, shape: Shape) -> list[Message]:
        rendered = self._role.prompt.render(
            question=request.question.question,
            query=request.query,
            needs=list(request.needs),
            n_pages=len(request.view.by_number),
            schema=schema_text(request.schema, shape.schema_chars)[0] if request.schema is not None else "",
            notes=notes_text(request.notes) if shape.notes else "",
            candidates=[self._candidate(request, page, shape.text_chars) for page in self._offered(request, shape)],
            keep=request.keep,
        )
        return messages_of(rendered)

    @staticmethod
    def _offered(request: RerankRequest, shape: Shape) -> list[int]:
        return [candidate.page for candidate in request.candidates[: shape.pages]]

    @staticmethod
    def _candidate(request: RerankRequest, page: int, chars: int) -> dict[str, Any]:
        carried: Sequence[str] = request.schema.carries.get(page, []) if request.schema is not None else []
        return {
            "page": page,
            "printed": request.view.citation_label(page),
            "source": request.view.source(page),
            "carries": ", ".join(carried),
            "summary": shortened(request.view.summaries.get(page, ""), chars) or "(no summary)",
        }

    def _mapped(self, request: RerankRequest, fitted: Fitted, given: Reply[ChosenPages]) -> RerankReply:
        """The reply as the loop takes it, which drops and records pages that were no candidates."""
        named = list(dict.fromkeys(given.value.pages))
        offered = self._offered(request, fitted.shape)
        note = ""
        if not set(named) & set(offered):
            note = "The reply named no candidate, so the order of retrieval was kept."
            named = [*offered[: request.keep], *named]
        return RerankReply(
            pages=named,
            note=note,
            fitting=self._fitting(request, fitted),
            usage=given.usage,
            replayed=given.from_journal,
        )

    def _fitting(self, request: RerankRequest, fitted: Fitted) -> Fitting | None:
        """What was left out; None when nothing was."""
        shape = fitted.shape
        left_out = schema_text(request.schema, shape.schema_chars)[1] if request.schema is not None else 0
        summaries = [request.view.summaries.get(page, "") for page in self._offered(request, shape)]
        cut = sum(len(shortened(s, SUMMARY_CHARS)) - len(shortened(s, shape.text_chars)) for s in summaries)
        pages = [candidate.page for candidate in request.candidates[shape.pages :]]
        if not (left_out or cut or pages):
            return None
        return Fitting(
            pages=pages,
            text_chars=cut,
            schema_sections=left_out,
            wanted=fitted.wanted,
            tokens=fitted.tokens,
            limit=self._model.room,
        )
