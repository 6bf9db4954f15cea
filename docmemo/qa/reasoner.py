"""The reader that is a language model: pages and crops as pictures and text, one reply a round.

What a request shows is fitted into the model's context first (docmemo/qa/fitting.py). Replies are kept by the journal
of paid calls, so the same request is paid for once, whatever configuration asks it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from docmemo.config import Params
from docmemo.models.chat import ChatModel, Image, Message, Reply
from docmemo.models.rendering import messages_of
from docmemo.qa.citations import locate
from docmemo.qa.fitting import Fitted, Shape, fit, reading_shapes, schema_chars
from docmemo.qa.images import Picture
from docmemo.qa.material import cut_text, notes_text, ranges, schema_text
from docmemo.qa.protocols import ReadReply, ReadRequest
from docmemo.qa.served import ServedRole
from docmemo.settings import Settings
from docmemo.types import NOT_ANSWERABLE, AnswerFormat, Citation, Fitting, Page, PageCrop

log = logging.getLogger(__name__)

CROP_SIDE = 100_000
"""Crops are sent as the layout stage made them (`layout.crop_long_side`)."""
_NO_ANSWER = {NOT_ANSWERABLE.casefold(), "unanswerable", "cannot be answered"}


# The docstrings of reply models are part of the schema that is sent, and so of what a reply is kept under. What each
# field holds is said by the prompt (prompts/reason.md).


class CitedPage(BaseModel):
    """One piece of evidence."""

    page: int
    quote: str = ""


class LastReply(BaseModel):
    """The reply of the last round."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str = ""
    useful_pages: list[int] = Field(default_factory=list)
    irrelevant_pages: list[int] = Field(default_factory=list)
    findings: str = ""
    missing: str = ""
    decision: Literal["answer", "not_answerable"]
    answer: str = ""
    short_answer: list[str] = Field(default_factory=list)
    answer_format: AnswerFormat = "None"
    confidence: float = Field(0.0, ge=0, le=1)
    citations: list[CitedPage] = Field(default_factory=list)
    query: str = ""
    needs: list[str] = Field(default_factory=list)
    reason: str = ""

    @field_validator("short_answer", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """A bare value counts as a list of one, for servers that do not hold to the schema."""
        values = value if isinstance(value, list) else [] if value is None else [value]
        return [str(item).strip() for item in values if str(item).strip()]

    @model_validator(mode="after")
    def _says_something(self) -> LastReply:
        if self.decision == "answer" and not (self.short_answer or self.answer.strip()):
            raise ValueError("decision is answer, but short_answer and answer are empty")
        return self


class RoundReply(LastReply):
    """The reply of a round."""

    decision: Literal["answer", "query_update", "not_answerable"]  # type: ignore[assignment]

    @model_validator(mode="after")
    def _names_a_query(self) -> RoundReply:
        if self.decision == "query_update" and not (self.query.strip() or self.needs):
            raise ValueError("decision is query_update, but query is empty")
        return self


def short_form(reply: LastReply) -> str:
    """The answer as it is recorded and scored: one value as it is, several (or a list) as a JSON list."""
    values = reply.short_answer or [reply.answer.strip()]
    if len(values) > 1 or reply.answer_format == "List":
        return json.dumps(values, ensure_ascii=False)
    return values[0]


@dataclass(frozen=True)
class _Shown:
    """A page that could be shown."""

    page: Page
    picture: Picture | None
    text: str

    def text_of(self, shape: Shape) -> tuple[str, int]:
        """The text a shape shows, and how many characters it leaves out."""
        return cut_text(self.text, shape.text_limit(with_picture=self.picture is not None and shape.pictures))


@dataclass(frozen=True)
class _Material:
    """Everything that could be shown in a round."""

    request: ReadRequest
    pages: Sequence[_Shown]
    """In the order of the evidence, best first."""
    crops: Sequence[tuple[PageCrop, Picture]]
    """Of these pages, most relevant first."""
    _schemas: dict[int, tuple[str, int]] = field(default_factory=dict)

    def shown_crops(self, shape: Shape) -> list[tuple[PageCrop, Picture]]:
        """The crops of a shape: those of pages it leaves out go with them."""
        numbers = {shown.page.page for shown in self.pages[: shape.pages]}
        return [(crop, picture) for crop, picture in self.crops[: shape.crops] if crop.page in numbers]

    def schema(self, shape: Shape) -> tuple[str, int]:
        """The schema's text, and how many sections it leaves out."""
        if self.request.schema is None:
            return "", 0
        if shape.schema_chars not in self._schemas:
            self._schemas[shape.schema_chars] = schema_text(self.request.schema, shape.schema_chars)
        return self._schemas[shape.schema_chars]

    def pictures(self, shape: Shape) -> dict[str, tuple[Picture, int]]:
        """Pictures and their sides, by the names the prompt gives their places."""
        pages = self.pages[: shape.pages] if shape.pictures else []
        found = {f"page {p.page.page}": (p.picture, shape.side) for p in pages if p.picture is not None}
        return found | {f"crop {i}": (p, CROP_SIDE) for i, (_, p) in enumerate(self.shown_crops(shape), 1)}


class VlmReader:
    """Reader `vlm`."""

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
        self._params = params.answer
        self._role = ServedRole("reasoner", "reason", params.answer.reader_model, entry, settings, model)
        self._pictures = params.answer.reader_model.images
        self._most_pictures = params.loop.evidence + params.loop.keep_useful + params.loop.crops

    @cached_property
    def _model(self) -> ChatModel:
        return self._role.model

    async def prepare(self) -> None:
        """Before a run: make sure that the model can be asked as it will be, with pictures.

        Raises:
            ConfigError: if it refuses that.
            ModelError: if the server cannot be used at all.
        """
        if not self._pictures:
            log.warning(
                "The reader sees the text of pages only, since answer.reader_model.images is false: tables lose "
                "their form, and charts, figures and pages without text hold nothing for it."
            )
        await self._role.probe(images=self._most_pictures if self._pictures else 0)

    async def read(self, request: ReadRequest) -> ReadReply:
        """One round.

        Raises:
            ContextLengthError: if not even one page fits; nothing is sent then.
            ModelError: whatever the model's call raised.
        """
        material = self._material(request)
        schema: type[LastReply] = LastReply if request.last_round else RoundReply
        fitted = self._fit(material, schema)
        images = await asyncio.to_thread(self._encode, material, fitted.shape)
        label = f"{request.question.question_id} round {request.round}"
        reply = await self._model.ask(self._messages(material, fitted.shape, images), schema, label=label)
        return self._mapped(material, fitted, reply)

    def _material(self, request: ReadRequest) -> _Material:
        view = request.view
        pages = [
            _Shown(
                view.by_number[p], view.page_picture(p) if self._pictures else None, view.by_number[p].text.strip()
            )
            for p in request.evidence
        ]
        crops = [(c, view.crop_picture(c)) for c in request.crops if c.page in request.evidence]
        return _Material(request, pages, [(c, p) for c, p in crops if p is not None and self._pictures])

    def _fit(self, material: _Material, schema: type[LastReply]) -> Fitted:
        first = Shape(
            pages=len(material.pages),
            crops=len(material.crops),
            side=self._params.page_side,
            text_chars=self._params.page_text_chars,
            schema_chars=schema_chars(self._model.room),
            pictures=self._pictures,
        )
        question = material.request.question.question_id

        def count(shape: Shape) -> int:
            outlines = {name: picture.outline(side) for name, (picture, side) in material.pictures(shape).items()}
            return self._model.count(self._messages(material, shape, outlines), schema)

        shapes = reading_shapes(first, min(self._params.min_page_side, self._params.page_side))
        return fit(shapes, count, self._model.room, f"{question}: the request of round {material.request.round}")

    @staticmethod
    def _encode(material: _Material, shape: Shape) -> dict[str, Image]:
        return {name: picture.image(side) for name, (picture, side) in material.pictures(shape).items()}

    def _messages(self, material: _Material, shape: Shape, images: Mapping[str, Image]) -> list[Message]:
        request = material.request
        rendered = self._role.prompt.render(
            question=request.question.question,
            query=request.query,
            round=request.round,
            rounds=request.rounds,
            last_round=request.last_round,
            n_pages=len(request.view.by_number),
            schema=material.schema(shape)[0],
            notes=notes_text(request.notes) if shape.notes else "",
            earlier=ranges(request.earlier) if request.notes else "",
            pages=[self._page(request, shown, shape) for shown in material.pages[: shape.pages]],
            crops=[
                {"page": crop.page, "kind": crop.kind, "caption": crop.caption}
                for crop, _ in material.shown_crops(shape)
            ],
        )
        return messages_of(rendered, images)

    @staticmethod
    def _page(request: ReadRequest, shown: _Shown, shape: Shape) -> dict[str, Any]:
        text, cut = shown.text_of(shape)
        return {
            "page": shown.page.page,
            "printed": request.view.citation_label(shown.page.page),
            "source": request.view.source(shown.page.page),
            "text": text,
            "cut": cut > 0,
            "has_image": shown.picture is not None and shape.pictures,
        }

    def _fitting(self, material: _Material, fitted: Fitted) -> Fitting | None:
        """What was left out; None when nothing was."""
        shape = fitted.shape
        shown = material.pages[: shape.pages]
        smaller = [s for s in shown if s.picture is not None and max(s.picture.width, s.picture.height) > shape.side]
        made = Fitting(
            crops=len(material.crops) - len(material.shown_crops(shape)),
            page_side=shape.side if smaller and shape.side < self._params.page_side else None,
            pages=[left_out.page.page for left_out in material.pages[shape.pages :]],
            text_chars=sum(s.text_of(shape)[1] - cut_text(s.text, self._params.page_text_chars)[1] for s in shown),
            schema_sections=material.schema(shape)[1],
        )
        if made == Fitting():
            return None
        return made.model_copy(update={"wanted": fitted.wanted, "tokens": fitted.tokens, "limit": self._model.room})

    def _mapped(self, material: _Material, fitted: Fitted, given: Reply[LastReply]) -> ReadReply:
        """The model's reply as the loop takes it. Pages it made up are left in: the loop drops and records them."""
        reply, request = given.value, material.request
        short = short_form(reply) if reply.decision == "answer" else ""
        outcome: str = reply.decision
        if outcome == "answer" and short.casefold().strip(" .") in _NO_ANSWER:
            outcome = "not_answerable"
        needs = [need.strip() for need in reply.needs if need.strip()][:3]
        query = " ".join(reply.query.split()) or "; ".join(needs)
        return ReadReply.model_validate(
            {
                "outcome": outcome,
                "answer": short or None,
                "full_answer": reply.answer.strip(),
                "confidence_score": reply.confidence if outcome == "answer" else None,
                "citations": [self._citation(request, cited) for cited in reply.citations],
                "query": query,
                "needs": needs,
                "note": reply.findings.strip(),
                "missing": reply.missing.strip(),
                "reason": reply.reason.strip() or reply.answer.strip(),
                "useful": reply.useful_pages,
                "irrelevant": reply.irrelevant_pages,
                "shown": [shown.page.page for shown in material.pages[: fitted.shape.pages]],
                "crops": [crop for crop, _ in material.shown_crops(fitted.shape)],
                "fitting": self._fitting(material, fitted),
                "usage": given.usage,
                "replayed": given.from_journal,
            }
        )

    @staticmethod
    def _citation(request: ReadRequest, cited: CitedPage) -> Citation:
        page = request.view.by_number.get(cited.page)
        quote = " ".join(cited.quote.split())
        box = locate(page, quote) if page is not None and quote else None
        return Citation(page=cited.page, bbox=box, quote=quote or None)
