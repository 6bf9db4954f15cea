"""One server in one event loop: sending, retrying, waiting for it, keeping to the budget.

Every role with the same address and key shares a connection, so its limiter sees all their requests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from docmemo.errors import ModelLockError
from docmemo.fingerprint import digest
from docmemo.models import pricing
from docmemo.models.budget import RUN_BUDGET
from docmemo.models.endpoints import NO_KEY, Endpoint, missing_model, pick_model
from docmemo.models.failures import Asked, Problem, TryAgainError, of_status, problem_of
from docmemo.models.limiter import Limiter
from docmemo.models.wire import Body, Completion, MalformedCompletionError, read_completion
from docmemo.settings import Settings
from docmemo.usage import Usage

log = logging.getLogger(__name__)

PROBE_TIMEOUT = 10.0
"""Seconds for a look at /models while the server is gone."""
MAX_WAIT = 60.0
"""Longest seconds between two tries of a request."""


@dataclass(frozen=True)
class Request:
    """What is sent, and what limits, budgets and messages need to know of it."""

    body: Body
    asked: Asked
    input_tokens: int
    """Estimated, on the high side."""
    label: str
    served: Mapping[str, Any] = field(default_factory=dict)
    """What the lock says of the model; empty: not compared."""


class Connection:
    """The client of one server; made by `connection_to`."""

    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self.endpoint = endpoint
        self._settings = settings
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key.get_secret_value() or NO_KEY,
            max_retries=0,
            timeout=httpx2.Timeout(settings.request_timeout, connect=settings.connect_timeout, pool=None),
            http_client=openai.DefaultAsyncHttpxClient(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=settings.concurrency),
                follow_redirects=False,  # a body in chunks cannot be sent twice
            ),
        )
        self.limiter = Limiter(
            most=settings.concurrency,
            patience=settings.server_patience,
            first_wait=min(2.0, settings.retry_wait),
            probe=self._can_be_reached,
            variable=endpoint.variable,
        )
        self.closed = False
        self._verified: set[str] = set()
        self._verifying = asyncio.Lock()

    async def close(self) -> None:
        """Close its sockets; it cannot be used afterwards."""
        self.closed = True
        await self._client.close()

    async def send(self, request: Request) -> Completion:
        """Send a request until it is answered or will not be.

        Raises:
            ModelRequestError and its kinds: it is refused.
            ModelUnavailableError: it was tried DOCMEMO_CALL_ATTEMPTS times.
            ServerDownError: the server stayed away for longer than DOCMEMO_SERVER_PATIENCE.
            RunBudgetError: it does not fit into the run's budget.
            ModelLockError: the server has another model than the lock says.
            ConfigError: a budget in dollars and an unknown price.
        """
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._settings.call_attempts),
            wait=self._wait,
            retry=retry_if_exception_type(TryAgainError),
            reraise=True,
        )
        try:
            async for attempt in tries:
                with attempt:
                    return await self._try(request)
        except TryAgainError as error:
            raise error.problem.error from None
        raise AssertionError("tenacity ends by returning or raising")

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next try: exponential with full jitter; after a Retry-After only a little of it."""
        outcome = state.outcome.exception() if state.outcome is not None else None
        first = self._settings.retry_wait
        if isinstance(outcome, TryAgainError) and outcome.problem.retry_after is not None:
            return random.uniform(0, first)
        return random.uniform(0.5, 1.0) * min(MAX_WAIT, first * 2.0 ** (state.attempt_number - 1))

    async def _try(self, request: Request) -> Completion:
        """One try; a server that cannot be reached is waited for and does not count."""
        while True:
            await self._verify(request)
            async with self.limiter.slot() as started:
                outcome = await self._post(request)
            if isinstance(outcome, Completion):
                self.limiter.succeeded()
                return outcome
            log.info("%s: %s", request.label or request.asked.role, outcome.error.message)
            if outcome.kind == "unreachable":
                await self._wait_until_up()
                continue
            if outcome.kind == "fatal":
                raise outcome.error
            if outcome.kind == "overload":
                self.limiter.overloaded(started, outcome.retry_after)
            raise TryAgainError(outcome)

    async def _wait_until_up(self) -> None:
        await self.limiter.wait_until_up()
        self._verified.clear()  # a server that was restarted may have another model

    async def _post(self, request: Request) -> Completion | Problem:
        """Send once, within the run's budget."""
        tokens = request.input_tokens + request.asked.max_tokens
        usd = self._price_at_most(request) if self._settings.budget_usd is not None else None
        reservation = await RUN_BUDGET.reserve(self._settings, tokens, usd, request.asked.model_id)
        usage: Usage | None = None
        try:
            answer = await self._answer(request)
            if isinstance(answer, Completion):
                usage = answer.usage
            return answer
        finally:
            RUN_BUDGET.settle(reservation, usage)

    def _price_at_most(self, request: Request) -> float | None:
        most = Usage(input_tokens=request.input_tokens, output_tokens=request.asked.max_tokens)
        return pricing.cost_usd(self.endpoint.base_url, request.asked.model_id, most)

    async def _answer(self, request: Request) -> Completion | Problem:
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                response = await self._client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=request.body.chunks(),
                    options={"headers": {"Content-Length": str(request.body.length)}},
                )
        except TimeoutError:
            late = openai.APITimeoutError(httpx2.Request("POST", self.endpoint.base_url))
            return problem_of(request.asked, late)
        except openai.OpenAIError as error:
            return problem_of(request.asked, error)
        return self._read(request, response.content)

    def _read(self, request: Request, content: bytes) -> Completion | Problem:
        try:
            body = json.loads(content)
            completion = read_completion(body, request.input_tokens)
        except (ValueError, RecursionError, MalformedCompletionError):
            error = body.get("error") if "body" in locals() and isinstance(body, dict) else None
            if isinstance(error, dict):
                code = error.get("code")
                status = code if isinstance(code, int) and 400 <= code < 600 else 500
                return of_status(request.asked, status, str(error.get("message") or ""), error)
            return of_status(request.asked, 502, "The response is no chat completion.", {})
        cost = pricing.cost_usd(self.endpoint.base_url, request.asked.model_id, completion.usage)
        usage = completion.usage.model_copy(update={"cost_usd": cost})
        return Completion(**{**completion.__dict__, "usage": usage})

    async def _list(self) -> list[dict[str, Any]]:
        listed = await self._client.models.list(timeout=max(PROBE_TIMEOUT, self._settings.connect_timeout))
        return [model.to_dict() for model in listed.data]

    async def _can_be_reached(self) -> bool:
        try:
            await self._list()
        except openai.APIStatusError as error:
            return error.status_code not in (502, 503, 504)
        except openai.OpenAIError:
            return False
        return True

    async def _verify(self, request: Request) -> None:
        """Compare the lock with what the server says of the model, once a process and after each outage.

        Raises:
            ModelLockError: if they differ.
        """
        if not request.served:
            return
        key = digest([request.asked.model_id, request.served])
        while key not in self._verified:
            async with self._verifying:
                if key in self._verified:
                    return
                problem = await self._compare(request)
                if problem is None:
                    self._verified.add(key)
                    return
            if problem.kind == "fatal":
                raise problem.error
            if problem.kind != "unreachable":
                raise TryAgainError(problem)
            await self.limiter.wait_until_up()

    async def _compare(self, request: Request) -> Problem | None:
        try:
            listed = await self._list()
        except openai.OpenAIError as error:
            return problem_of(request.asked, error)
        found = pick_model(listed, request.asked.model_id)
        if found is None:
            raise missing_model(self.endpoint, request.asked.model_id, listed)
        if found != dict(request.served):
            raise _changed(request, found)
        return None


def _changed(request: Request, found: dict[str, Any]) -> ModelLockError:
    names = sorted(name for name in {*found, *request.served} if found.get(name) != request.served.get(name))
    changes = "; ".join(
        f"{name} is {request.served.get(name)!r} in the lock, {found.get(name)!r} served" for name in names
    )
    return ModelLockError(
        f"The server has another {request.asked.model_id} than models.lock.json says for the {request.asked.role}:"
        f" {changes}.",
        remedy="Run `docmemo models lock` to accept what is served, or serve what the lock names.",
    )


_CONNECTIONS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Connection]] = (
    weakref.WeakKeyDictionary()
)


def connection_to(endpoint: Endpoint, settings: Settings) -> Connection:
    """The running loop's connection to a server; the same for equal address, key and settings."""
    ours = _CONNECTIONS.setdefault(asyncio.get_running_loop(), {})
    limits = settings.model_dump(mode="json", exclude={"api_key", "home", "state", "workers"})
    key = digest([*endpoint.server, limits])
    if key not in ours:
        ours[key] = Connection(endpoint, settings)
    return ours[key]


async def close_connections() -> None:
    """Close the running loop's connections, e.g. at the end of a flow."""
    for connection in _CONNECTIONS.pop(asyncio.get_running_loop(), {}).values():
        await connection.close()
