"""Models behind an OpenAI-compatible server: vLLM, llama.cpp, or a provider.

    model = open_model("reasoner", params.answer.reader_model, entry=lock["reasoner"])
    if model.count(messages, Verdict) > model.room: ...      # fit before sending
    reply = await model.ask(messages, Verdict, label="q17 round 2")
    reply.value, reply.usage

- The server's address and key are settings (docmemo/models/endpoints.py), looked up when the first request is sent: a
  run whose replies are all in the journal needs no server.
- A reply is in the journal of paid calls before `ask` returns; the same request is never paid for twice, and of equal
  requests at the same time one is sent.
- Errors are docmemo.errors' model errors. `error.stops_run`: going on with other items makes no sense. `error.usage`:
  what this call cost all the same, e.g. for a truncated reply; nothing for tries that got no answer.
- Wrap one question in `docmemo.models.budget.question_budget(...)` to limit it.
- Synchronous code uses `docmemo.models.background.run_blocking(model.ask(...))`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from docmemo.config import ModelParams
from docmemo.errors import (
    ConfigError,
    ImageInputError,
    ModelError,
    ModelRequestError,
    ModelResponseError,
    RefusalError,
    TruncatedReplyError,
)
from docmemo.models import pricing
from docmemo.models.budget import current_question_budget
from docmemo.models.calls import CallJournal, PaidCall, call_journal, request_key
from docmemo.models.chat import ChatModel, Image, Message, Reply
from docmemo.models.endpoints import Endpoint, endpoint_of
from docmemo.models.failures import Asked
from docmemo.models.lock import SERVED, SERVED_PARAMS
from docmemo.models.structured import UnreadableReplyError, read_reply, response_format, schema_prompt
from docmemo.models.tokens import request_tokens, text_tokens
from docmemo.models.wire import Completion, request_body, sampling
from docmemo.settings import Settings, load_settings
from docmemo.usage import Usage

if TYPE_CHECKING:
    from docmemo.models.connection import Connection

log = logging.getLogger(__name__)

T = TypeVar("T", bound=BaseModel)

MARGIN = 1 / 32
"""Share of the context kept free: a repair request carries the reply and its error besides."""
REPAIR_TOKENS = 200
"""What a repair request says besides the reply."""
_REPAIR = (
    "Your reply could not be used: {problem}\n"
    "Reply again with the same content, as one JSON object that fits the schema, and nothing else."
)
_SHARED = (ModelRequestError, ModelResponseError)
"""Failures that equal requests at the same time share instead of being sent again."""
_ON_THEIR_WAY: dict[tuple[int, str, str], asyncio.Future[PaidCall]] = {}
"""Requests being paid for, by event loop, journal and key; of all models of the process."""


class OpenAICompatibleModel:
    """A `ChatModel` behind a server. Made by `open_model`."""

    def __init__(
        self,
        role: str,
        params: ModelParams,
        entry: Mapping[str, Any],
        settings: Settings,
        journal: CallJournal | None,
    ) -> None:
        self.role = role
        self.params = params
        self._entry = dict(entry)
        self._settings = settings
        self._journal = journal
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()
        self._identity = {
            "entry": self._entry,
            "sampling": sampling(params.model_copy(update={"extra": {}})),
            "structured": params.structured,
            "extra": params.extra,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """Lock entry, sampling, form of JSON asked for, further fields. No address, no key, nothing about speed."""
        return dict(self._identity)

    @property
    def room(self) -> int:
        """Input tokens a request may have: the context less the reply and a margin for a repair request."""
        return self.params.context - self.params.max_tokens - int(self.params.context * MARGIN)

    def count(self, messages: Sequence[Message], schema: type[BaseModel] | None = None) -> int:
        """Input tokens of a request as it would be sent, on the high side."""
        form = response_format(schema, self.params.structured) if schema is not None else None
        described = self._described(messages, schema) if schema is not None else messages
        return request_tokens(described, form, self.params.image_tokens)

    async def ask(self, messages: Sequence[Message], schema: type[T], *, label: str = "") -> Reply[T]:
        """Ask for a value; see `ChatModel.ask`."""
        budget = current_question_budget()
        if budget is not None:
            budget.check()
        if not self.params.images and any(isinstance(part, Image) for m in messages for part in m.parts):
            raise ImageInputError(
                f"{self.params.id} takes no images ({SERVED_PARAMS[self.role]}.images is false).",
                remedy="Set it to true if the model does, or choose a model that reads pages as images.",
            )
        try:
            reply = await self._ask(messages, schema, label)
        except ModelError as error:
            if budget is not None:
                budget.charge(error.usage)
            raise
        if budget is not None:
            budget.charge(reply.usage)
        return reply

    async def _ask(self, messages: Sequence[Message], schema: type[T], label: str) -> Reply[T]:
        if self._journal is None:
            return _reply(schema, await self._pay(messages, schema, label), from_journal=False)
        key = request_key(self._identity, messages, schema)
        stale = False
        found = self._journal.find(key)
        if found is not None:
            try:
                return _reply(schema, found, from_journal=True)
            except UnreadableReplyError as error:
                log.warning("%s: the journal's reply no longer fits, asking again: %s", label or self.role, error)
                stale = True
        return await self._once(key, messages, schema, label, stale)

    async def _once(
        self, key: str, messages: Sequence[Message], schema: type[T], label: str, stale: bool
    ) -> Reply[T]:
        """Pay for a request and record it; while an equal one is on its way, wait for that one instead."""
        assert self._journal is not None
        here = (id(asyncio.get_running_loop()), str(self._journal.path), key)
        while here in _ON_THEIR_WAY:
            try:
                call = await asyncio.shield(_ON_THEIR_WAY[here])
            except _SHARED as error:
                raise type(error)(error.message, remedy=error.remedy) from None
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                continue
            except ModelError:
                continue
            return _reply(schema, call, from_journal=True)
        self._journal.check()
        future: asyncio.Future[PaidCall] = asyncio.get_running_loop().create_future()
        _ON_THEIR_WAY[here] = future
        try:
            call = await self._pay(messages, schema, label)
            call = await self._journal.record(key, call, self.params.id, replace=stale)
            future.set_result(call)
        except BaseException as error:
            if isinstance(error, ModelError):
                future.set_exception(error)
                future.exception()  # nobody else may be waiting
            else:
                future.cancel()
            raise
        finally:
            del _ON_THEIR_WAY[here]
        return _reply(schema, call, from_journal=False)

    async def _pay(self, messages: Sequence[Message], schema: type[T], label: str) -> PaidCall:
        """Ask the server, once more with the error if the reply cannot be read."""
        described = self._described(messages, schema)
        completion = await self._send(described, schema, label)
        spent = completion.usage
        self._usable(completion, spent)
        try:
            return PaidCall(read_reply(schema, completion.content, completion.reasoning)[1], spent, repaired=False)
        except UnreadableReplyError as error:
            problem = str(error)
        log.info("%s: %s", label or self.role, problem)
        again = self._repair(described, schema, completion, problem)
        if again is None:
            raise self._unreadable(problem, spent)
        try:
            completion = await self._send(again, schema, label)
        except ModelError as error:
            error.usage = spent + error.usage
            raise
        spent = spent + completion.usage
        self._usable(completion, spent)
        try:
            return PaidCall(read_reply(schema, completion.content, completion.reasoning)[1], spent, repaired=True)
        except UnreadableReplyError as error:
            raise self._unreadable(str(error), spent) from None

    async def _send(self, messages: Sequence[Message], schema: type[BaseModel], label: str) -> Completion:
        from docmemo.models.connection import Request

        connection, asked = self._connect(messages)
        form = response_format(schema, self.params.structured)
        request = Request(
            body=request_body(self.params, messages, form),
            asked=asked,
            input_tokens=request_tokens(messages, form, self.params.image_tokens),
            label=label,
            served=self._entry.get("served") or {},
        )
        return await connection.send(request)

    def _connect(self, messages: Sequence[Message]) -> tuple[Connection, Asked]:
        endpoint = endpoint_of(self.role, self._settings)
        budget = current_question_budget()
        if budget is not None:
            budget.need_price(pricing.known(endpoint.base_url, self.params.id), self.params.id)
        asked = Asked(
            role=self.role,
            model_id=self.params.id,
            params_path=SERVED_PARAMS[self.role],
            variable=endpoint.variable,
            secret=endpoint.api_key.get_secret_value(),
            images=sum(isinstance(part, Image) for message in messages for part in message.parts),
            max_tokens=self.params.max_tokens,
            timeout=self._settings.request_timeout,
        )
        return self._connection(endpoint), asked

    def _connection(self, endpoint: Endpoint) -> Connection:
        from docmemo.models.connection import connection_to

        loop = asyncio.get_running_loop()
        known = self._connections.get(loop)
        if known is None or known.endpoint != endpoint or known.closed:
            known = self._connections[loop] = connection_to(endpoint, self._settings)
        return known

    def _described(self, messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
        """The messages, with the schema in words where the server takes none."""
        said = list(messages)
        if self.params.structured == "json_schema" or not said:
            return said
        said[-1] = Message(said[-1].role, [*said[-1].parts, schema_prompt(schema)])
        return said

    def _repair(
        self, messages: list[Message], schema: type[BaseModel], completion: Completion, problem: str
    ) -> list[Message] | None:
        """The request that shows the model its error; None if it does not fit into the context."""
        form = response_format(schema, self.params.structured)
        left = self.params.context - self.params.max_tokens - request_tokens(messages, form, self.params.image_tokens)
        left -= REPAIR_TOKENS + text_tokens(problem)
        if left <= 0:
            return None
        said = completion.content or completion.reasoning or "(nothing)"
        while text_tokens(said) > left:
            said = said[: len(said) * 3 // 4]
        return [*messages, Message("assistant", [said]), Message("user", [_REPAIR.format(problem=problem)])]

    def _usable(self, completion: Completion, spent: Usage) -> None:
        """Raise for a reply that was cut or refused."""
        if completion.refusal or completion.finish_reason == "content_filter":
            words = f": {completion.refusal[:200]}" if completion.refusal else " (content filter)"
            raise RefusalError(f"{self.params.id} refused to reply{words}.", usage=spent)
        if completion.finish_reason == "length":
            raise TruncatedReplyError(
                f"The reply of {self.params.id} was cut at its limit of {self.params.max_tokens} tokens.",
                remedy=f"Raise {SERVED_PARAMS[self.role]}.max_tokens, unless the model repeats itself.",
                usage=spent,
            )

    def _unreadable(self, problem: str, spent: Usage) -> ModelResponseError:
        return ModelResponseError(
            f"{self.params.id} did not keep to the format, also after being shown its error: {problem}",
            remedy=f"Try another {SERVED_PARAMS[self.role]}.structured, or a stronger model.",
            usage=spent,
        )


def _reply(schema: type[T], call: PaidCall, *, from_journal: bool) -> Reply[T]:
    value, text = read_reply(schema, call.text)
    return Reply(value=value, usage=call.usage, text=text, from_journal=from_journal, repaired=call.repaired)


def open_model(
    role: str,
    params: ModelParams,
    *,
    entry: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    journal: bool = True,
) -> ChatModel:
    """The model of a role; nothing is sent yet.

    Args:
        role: summarizer, schema, reranker, reasoner or judge.
        params: its section of params.yaml.
        entry: its entry in models.lock.json. Its `served` fields are compared with the server before the first
            request; without them nothing is compared.
        settings: environment settings; read anew when None.
        journal: whether replies are recorded and taken from the journal; off for checks of a server.

    Raises:
        ConfigError: if no model is named, the role is none, or the reply alone fills the context.
        ArtifactError: if the journal cannot be used.
    """
    if role not in SERVED_PARAMS:
        raise ConfigError(f"Unknown role {role!r}.", remedy=f"Known roles: {', '.join(SERVED_PARAMS)}.")
    where = SERVED_PARAMS[role]
    if not params.id:
        raise ConfigError(f"The role {role} has no model.", remedy=f"Name one in params.yaml ({where}.id).")
    if params.max_tokens + int(params.context * MARGIN) >= params.context:
        raise ConfigError(
            f"{where}: a reply of {params.max_tokens} tokens leaves no room in a context of {params.context}.",
            remedy=f"Lower {where}.max_tokens or raise {where}.context.",
        )
    settings = settings or load_settings()
    entry = entry if entry is not None else {"provider": SERVED, "id": params.id}
    calls = call_journal(settings.journal_dir) if journal else None
    return OpenAICompatibleModel(role, params, entry, settings, calls)
