"""A scripted OpenAI-compatible server, a process of its own on loopback.

    python -m tests.servers.scripted --port 0 --script FILE [--log FILE]

prints its port once it listens. The script is a JSON object; every key is optional:

- `models`: [{id, root, max_model_len, ...}], what /v1/models says; the first is "scripted" by default.
- `key`: the key that requests must carry.
- `answers`: `module:function`, called with the request's body in this process; returns a text (sent as it is) or a
  JSON value. Without it the answer is a minimal instance of the request's JSON schema, decided by a digest of the
  schema and of the messages before the first assistant message (so a repair request gets the same answer).
- `replies`: a list of texts or JSON values, one a request that meets no fault, the last for ever; before `answers`.
- `faults`: {probability, seed, kinds}; `faults_at`: {"3": "500"} by number of chat request, from 1. Kinds: faults.py.
- `retry_after`: seconds named by `429_retry_after` (1). `slow`: seconds that `slow` waits (0.2). `delay`: seconds
  every answer waits (0).
- `context`: tokens, reply included; past it the request is refused. `dialect`: vllm (default) or llamacpp, whose
  wordings refusals have. `max_images`: past it a request is refused. `images`: false for a text model.
- `image_patch`: pixels a side of one image token (28).

Control, for the test that runs it: GET /control/state; POST /control/script merges keys into the script (null removes
one); POST /control/reset replaces the script and forgets all requests; POST /control/die ends the process at once.
With --log every chat request is one line in a file, written before it is answered, and a restarted server counts
attempts on from there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.servers import faults
from tests.servers.counting import image_sizes, request_tokens, text_tokens
from tests.servers.instances import instance

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
REASONS |= {422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error"}
REASONS |= {503: "Service Unavailable"}


class RefusedError(Exception):
    """A request that is answered with an error of this status."""

    def __init__(self, status: int, message: str, kind: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": status, **more}}


class Server:
    """State of one server process."""

    def __init__(self, script: dict[str, Any], log: Path | None) -> None:
        self.script = script
        self.log = log
        self.requests = 0
        self.in_flight = 0
        self.peak = 0
        self.given = 0
        self.probes = 0
        self.attempts: Counter[str] = Counter()
        self.seen: list[dict[str, Any]] = []
        if log is not None and log.exists():
            for line in log.read_text(encoding="utf-8").splitlines():
                self.attempts[json.loads(line)["digest"]] += 1

    @property
    def models(self) -> list[dict[str, Any]]:
        default = {"id": "scripted", "root": "scripted/one", "max_model_len": self.script.get("context", 32768)}
        return list(self.script.get("models", [default]))

    def model_list(self) -> dict[str, Any]:
        """The body of /v1/models, with fields that change at every request."""
        fixed = {"object": "model", "owned_by": "vllm"}
        now = {"created": time.time_ns() // 1000, "permission": [{"id": f"modelperm-{time.time_ns()}"}]}
        return {"object": "list", "data": [{**fixed, **model, **now} for model in self.models]}

    def check(self, headers: dict[str, str]) -> None:
        key = self.script.get("key")
        if key and headers.get("authorization") != f"Bearer {key}":
            raise RefusedError(401, "Incorrect API key provided.", "invalid_request_error", code="invalid_api_key")

    def admit(self, body: dict[str, Any]) -> tuple[int, int]:
        """Text and image tokens of a request that may be answered."""
        llama = self.script.get("dialect") == "llamacpp"
        if not llama and body.get("model") not in {model["id"] for model in self.models}:
            raise RefusedError(
                404, f"The model `{body.get('model')}` does not exist.", "NotFoundError", param="model"
            )
        try:
            sizes = image_sizes(body)
        except ValueError as error:
            raise RefusedError(400, str(error), "BadRequestError", param="image") from error
        if sizes and not self.script.get("images", True):
            hint = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
            raise RefusedError(500, hint, "server_error")
        most = self.script.get("max_images")
        if most is not None and len(sizes) > most:
            message = f"At most {most} image(s) may be provided in one prompt. Set `--limit-mm-per-prompt`."
            raise RefusedError(400, message, "BadRequestError", param="image")
        text, images = request_tokens(body, self.script.get("image_patch", 28))
        self._fits(text + images, int(body.get("max_tokens") or body.get("max_completion_tokens") or 0), llama)
        return text, images

    def _fits(self, tokens: int, reply: int, llama: bool) -> None:
        context = self.script.get("context")
        if context is None or tokens + reply <= context:
            return
        if llama:
            message = f"request ({tokens} tokens) exceeds the available context size ({context} tokens), increase it"
            raise RefusedError(400, message, "exceed_context_size_error", n_prompt_tokens=tokens, n_ctx=context)
        message = (
            f"You passed {tokens} input tokens and requested {reply} output tokens. However, the model's context"
            f" length is only {context} tokens, resulting in a maximum input length of {context - reply} tokens."
            f" Please reduce the length of the input prompt. (parameter=input_tokens, value={tokens})"
        )
        raise RefusedError(400, message, "BadRequestError", param="input_tokens")

    def answer(self, body: dict[str, Any]) -> str:
        """The text of a faultless reply."""
        replies = self.script.get("replies")
        if replies:
            value = replies[min(self.given, len(replies) - 1)]
            self.given += 1
        elif self.script.get("answers"):
            module, _, name = self.script["answers"].partition(":")
            value = getattr(importlib.import_module(module), name)(body)
        else:
            value = self._default(body)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def _default(self, body: dict[str, Any]) -> Any:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {"type": "string"})
        head = []
        for message in body["messages"]:
            if message["role"] == "assistant":
                break
            head.append(message)
        return instance(schema, json.dumps([schema, head], sort_keys=True))

    def completion(self, body: dict[str, Any], kind: str | None, tokens: tuple[int, int]) -> dict[str, Any]:
        text, images = tokens
        content, reasoning = faults.disguise(kind, self.answer(body))
        finish = {"length": "length", "content_filter": "content_filter"}.get(kind or "", "stop")
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        if kind == "refusal":
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        if kind == "length":
            message["content"] = (content or "")[: max(1, len(content or "") // 2)]
        given = text_tokens(message["content"] or reasoning or "")
        return {
            "id": f"chatcmpl-{self.requests}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {
                "prompt_tokens": text + images,
                "completion_tokens": given,
                "total_tokens": text + images + given,
                "prompt_tokens_details": {"cached_tokens": text // 2, "multimodal_tokens": {"image": images}},
            },
        }

    def note(self, entry: dict[str, Any]) -> None:
        self.seen.append(entry)
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


async def chat(server: Server, raw: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes, bool] | None:
    """Status, headers, body and whether to cut it in the middle; None to close the connection without a word."""
    server.requests += 1
    number = server.requests
    body = json.loads(raw)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    server.attempts[digest] += 1
    attempt = server.attempts[digest]
    entry = {"number": number, "digest": digest, "attempt": attempt, "status": 200, "fault": None}
    try:
        server.check(headers)
        tokens = server.admit(body)
    except RefusedError as refused:
        server.note({**entry, "status": refused.status})
        return refused.status, {}, json.dumps(refused.body).encode(), False
    kind = faults.chosen(server.script, number, digest, attempt)
    server.note({**entry, "fault": kind, "text_tokens": tokens[0], "image_tokens": tokens[1]})
    await asyncio.sleep(server.script.get("delay", 0) + (server.script.get("slow", 0.2) if kind == "slow" else 0))
    if kind == "hang":
        await asyncio.sleep(3600)
    if kind == "close":
        return None
    if kind in ("429", "429_retry_after"):
        extra = {"Retry-After": str(server.script.get("retry_after", 1))} if kind == "429_retry_after" else {}
        return 429, extra, json.dumps(RefusedError(429, "Rate limit reached.", "rate_limit").body).encode(), False
    errors = {
        "500": RefusedError(500, "Internal server error", "InternalServerError"),
        "engine_dead": RefusedError(500, "EngineCore encountered an issue.", "InternalServerError"),
        "image_500": RefusedError(500, "image input is not supported", "server_error"),
        "503": RefusedError(503, "Service unavailable", "unavailable_error"),
        "loading": RefusedError(503, "Loading model", "unavailable_error"),
        "quota": RefusedError(429, "You exceeded your quota.", "insufficient_quota", code="insufficient_quota"),
        "400": RefusedError(400, "Grammar is not supported", "BadRequestError", param="response_format"),
        "422": RefusedError(422, "unprocessable", "invalid_request_error"),
        "403": RefusedError(403, "This key may not use the model.", "permission_error"),
    }
    if kind in errors:
        return errors[kind].status, {}, json.dumps(errors[kind].body).encode(), False
    if kind == "no_json":
        return 200, {}, b"<html>Bad gateway</html>", False
    if kind == "error_200":
        return 200, {}, json.dumps(errors["500"].body).encode(), False
    answer = json.dumps(server.completion(body, kind, tokens)).encode()
    return 200, {}, answer, kind == "cut"


async def control(server: Server, path: str, raw: bytes) -> bytes:
    if path == "/control/die":
        os._exit(1)
    if path == "/control/reset":
        server.__init__(json.loads(raw), server.log)  # type: ignore[misc]
        server.attempts.clear()
    if path == "/control/script":
        for key, value in json.loads(raw).items():
            if value is None:
                server.script.pop(key, None)
            else:
                server.script[key] = value
    state = {"requests": server.requests, "in_flight": server.in_flight, "peak": server.peak, "seen": server.seen}
    return json.dumps({**state, "probes": server.probes, "distinct": len(server.attempts)}).encode()


async def respond(
    server: Server, method: str, path: str, headers: dict[str, str], raw: bytes
) -> tuple[int, dict[str, str], bytes, bool] | None:
    if path.startswith("/control/"):
        return 200, {}, await control(server, path, raw), False
    if path == "/v1/models" and method == "GET":
        server.probes += 1
        try:
            server.check(headers)
        except RefusedError as refused:
            return refused.status, {}, json.dumps(refused.body).encode(), False
        return 200, {}, json.dumps(server.model_list()).encode(), False
    if path == "/health":
        return 200, {}, b"{}", False
    if path == "/v1/chat/completions" and method == "POST":
        server.in_flight += 1
        server.peak = max(server.peak, server.in_flight)
        try:
            return await chat(server, raw, headers)
        finally:
            server.in_flight -= 1
    return 404, {}, json.dumps(RefusedError(404, f"no such path {path}", "NotFoundError").body).encode(), False


async def serve(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: requests one after the other (HTTP/1.1, keep-alive)."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:] if line)}
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            answer = await respond(server, method, path.partition("?")[0], headers, raw)
            if answer is None:
                return
            status, extra, body, cut = answer
            lines = [f"HTTP/1.1 {status} {REASONS[status]}", "Content-Type: application/json"]
            lines += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in extra.items())]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + (body[: len(body) // 2] if cut else body))
            await writer.drain()
            if cut:
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def run(server: Server, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(server, reader, writer)

    listening = await asyncio.start_server(connected, "127.0.0.1", port, limit=2**16, backlog=512)
    sys.stdout.write(f"{listening.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with listening:
        await listening.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    script = json.loads(options.script.read_text(encoding="utf-8")) if options.script else {}
    asyncio.run(run(Server(script, options.log), options.port))


if __name__ == "__main__":
    main()
