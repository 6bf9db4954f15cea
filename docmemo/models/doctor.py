"""Whether each model behind a server is there and takes what its role sends, by small real requests.

    for finding in check_role("reasoner", params): ...

The requests cost a few hundred tokens each and are never taken from the journal.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from docmemo.config import ModelParams, Params
from docmemo.errors import DocMemoError, ImageInputError, ModelError, ModelLockError, ModelResponseError
from docmemo.models.background import run_blocking
from docmemo.models.chat import Image, Message
from docmemo.models.endpoints import endpoint_of, served_model
from docmemo.models.lock import SERVED_PARAMS
from docmemo.models.serve_plan import images_of, model_of
from docmemo.settings import Settings, load_settings

Status = Literal["ok", "warning", "problem"]

_REPLY_TOKENS = 512
_PICTURE = 224
_COLOURS = {"red": (220, 20, 20), "blue": (20, 60, 220), "green": (20, 150, 40)}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    part: str
    """What it belongs to: "machine", "install", "lock", "layout", or a role."""
    what: str
    """What was looked at, e.g. "images"."""
    status: Status
    message: str
    remedy: str = ""
    """What to do about it; '' when it is well."""


class Sum(BaseModel):
    """A small form to be filled in."""

    model_config = ConfigDict(extra="forbid")

    total: int
    parity: Literal["even", "odd"]


class Seen(BaseModel):
    """What a drawn picture shows."""

    model_config = ConfigDict(extra="forbid")

    colour: Literal["red", "blue", "green"]


def picture(colour: str) -> Image:
    """A disc of a colour on white."""
    import PIL.Image
    import PIL.ImageDraw

    from docmemo.models.images import encode

    drawn = PIL.Image.new("RGB", (_PICTURE, _PICTURE), "white")
    PIL.ImageDraw.Draw(drawn).ellipse((30, 30, _PICTURE - 30, _PICTURE - 30), fill=_COLOURS[colour])
    data = io.BytesIO()
    drawn.save(data, "PNG")
    return encode(data.getvalue(), _PICTURE)


def check_role(role: str, params: Params, settings: Settings | None = None) -> list[Finding]:
    """Look at the server of a role: reached, has the model, its context, a form filled in, pictures seen.

    Args:
        role: a role that a model behind a server plays.
        params: all parameters.
        settings: addresses, keys and patience; read from the environment when None. One try a request, whatever they
            say.

    Returns:
        Findings in the order they were made. What cannot be looked at, since something before it is wrong, is absent.

    Raises:
        ConfigError: if there is no such role.
    """
    model = model_of(role, params)
    settings = (settings or load_settings()).model_copy(
        update={
            "call_attempts": 1,
            "server_patience": 0.0,
            "budget_usd": None,
            "budget_tokens": None,
            "budget_calls": None,
        }
    )
    if not model.id:
        remedy = f"Name one in params.yaml ({SERVED_PARAMS[role]}.id), as its server calls it."
        return [Finding(role, "model", "problem", "no model is named", remedy)]
    try:
        endpoint = endpoint_of(role, settings)
        served = served_model(endpoint, model.id)
    except DocMemoError as error:
        remedy = error.remedy
        if not isinstance(error, ModelLockError) or "reached" in error.message:
            remedy += f" `docmemo models serve {role}` starts one of your own."
        return [Finding(role, "server", "problem", error.message, remedy)]
    found = [Finding(role, "server", "ok", f"{endpoint.base_url} has {model.id}")]
    found += _context(role, model, served)
    form = run_blocking(_form(role, model, settings))
    found.append(form)
    if form.status == "problem":
        return found
    count = images_of(role, params)
    if count and model.images:
        found += run_blocking(_images(role, model, settings, count))
    elif count:
        found.append(
            Finding(
                role,
                "images",
                "warning",
                f"{SERVED_PARAMS[role]}.images is false: the model gets the text of pages only",
                "Tables and figures are then read from text; choose a model that takes images where that matters.",
            )
        )
    return found


def context_of(served: dict[str, Any]) -> int | None:
    """Tokens a request may have, as far as the server says so: vLLM's max_model_len, llama.cpp's n_ctx of a slot."""
    meta = served.get("meta")
    value = served.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _context(role: str, model: ModelParams, served: dict[str, Any]) -> list[Finding]:
    where = f"{SERVED_PARAMS[role]}.context"
    context = context_of(served)
    if context is None:
        return [Finding(role, "context", "ok", f"the server does not say its context; {where} is {model.context}")]
    if context < model.context:
        return [
            Finding(
                role,
                "context",
                "problem",
                f"the server takes {context} tokens, {where} is {model.context}: long requests would be refused",
                f"Set {where} to {context}, or serve the model with a longer context.",
            )
        ]
    unused = f", {where} uses {model.context}" if context > model.context else ""
    return [Finding(role, "context", "ok", f"the server takes {context} tokens{unused}")]


def _opened(role: str, model: ModelParams, settings: Settings) -> Any:
    from docmemo.models.openai_compatible import open_model

    short = model.model_copy(update={"max_tokens": min(model.max_tokens, _REPLY_TOKENS)})
    return open_model(role, short, settings=settings, journal=False)


async def _form(role: str, model: ModelParams, settings: Settings) -> Finding:
    what, how = "structured output", f"{SERVED_PARAMS[role]}.structured: {model.structured}"
    start = time.monotonic()
    said = 'What is 17 + 26? Reply with a JSON object: "total" is the sum, "parity" is "even" or "odd".'
    try:
        reply = await _opened(role, model, settings).ask([Message("user", [said])], Sum, label="doctor")
    except ModelResponseError as error:
        return Finding(role, what, "problem", f"{how}: {error.message}", error.remedy)
    except DocMemoError as error:
        return Finding(role, "request", "problem", error.message, error.remedy)
    seconds = time.monotonic() - start
    if reply.repaired:
        return Finding(
            role,
            what,
            "warning",
            f"{how}: the reply fitted only after a repair",
            "Use json_schema if the server can.",
        )
    right = reply.value.total == 43
    told = "" if right else f", though 17 + 26 is not {reply.value.total}"
    remedy = "" if right else "It keeps the form and may still be too weak a model to read documents."
    return Finding(role, what, "ok" if right else "warning", f"{how}: a reply in {seconds:.1f} s{told}", remedy)


async def _images(role: str, model: ModelParams, settings: Settings, count: int) -> list[Finding]:
    """As many pictures as a request of the role may hold; where they are refused, one alone tells why."""
    seen = await _look(role, model, settings, count)
    if isinstance(seen, ModelError) and count > 1 and isinstance(seen, ImageInputError):
        alone = await _look(role, model, settings, 1)
        if not isinstance(alone, ModelError):
            remedy = (
                f"Serve it with `docmemo models serve {role}`, which allows {count}, or show fewer: loop.evidence, "
                "loop.keep_useful and loop.crops add up to them."
            )
            message = f"it takes one picture, but not the {count} a request may hold: {seen.message}"
            return [Finding(role, "images", "problem", message, remedy)]
    if isinstance(seen, ImageInputError):
        return [Finding(role, "images", "problem", f"it takes no pictures: {seen.message}", seen.remedy)]
    if isinstance(seen, ModelError):
        return [Finding(role, "images", "problem", seen.message, seen.remedy)]
    if not seen:
        message = f"it takes {count} at once, but named the wrong colour for a coloured disc"
        return [Finding(role, "images", "warning", message, "Make sure that the model reads images at all.")]
    return [Finding(role, "images", "ok", f"it takes {count} at once and names the colour of a drawn disc")]


async def _look(role: str, model: ModelParams, settings: Settings, count: int) -> bool | ModelError:
    """Whether the model names the colour of the last picture; the error if it cannot be asked."""
    colours = [*(["blue", "green"] * count)[: count - 1], "red"]
    said = 'What colour is the disc in the last picture? Reply with a JSON object: "colour" is red, blue or green.'
    message = Message("user", [*(picture(colour) for colour in colours), said])
    try:
        reply = await _opened(role, model, settings).ask([message], Seen, label="doctor")
    except ModelError as error:
        return error
    return bool(reply.value.colour == "red")


def worst(findings: Iterable[Finding]) -> Status:
    """The worst status."""
    statuses = {finding.status for finding in findings}
    return "problem" if "problem" in statuses else "warning" if "warning" in statuses else "ok"
