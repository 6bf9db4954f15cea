"""Values out of replies: the JSON schema a server is given, and the reading of what comes back.

Servers that decode by the schema still let through what this module undoes: thoughts before the answer or the answer
among the thoughts, code fences, raw control characters inside strings, half surrogates. Servers without it add text
around the JSON or break it. What cannot be read is shown to the model once, with the reason (openai_compatible.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)

MAX_PROBLEMS = 8
"""Most problems of a reply named to the model and in errors."""
_LENGTHS = ("minLength", "maxLength", "pattern", "format", "multipleOf", "uniqueItems")
_REWRITTEN = ("prefixItems", "oneOf", "const")
_NOTES = ("title", "default", "examples", "discriminator", "deprecated", "readOnly", "writeOnly")
_DROPPED = frozenset((*_LENGTHS, *_REWRITTEN, *_NOTES))
"""Keywords that some server's strict mode refuses; pydantic checks them when the reply is read."""
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_THOUGHT_START = re.compile(r"<(?:think|thinking|reasoning)>.*$", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)```", re.DOTALL)


class UnreadableReplyError(Exception):
    """A reply that holds no value of the schema. The message tells the model what is wrong."""


@lru_cache(maxsize=64)
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a pydantic model in the form strict servers take; shared, not to be changed.

    Every object is closed and all its fields are required (the model fills those with a default too), unions are
    `anyOf`, constants are one-value enums, and keywords outside the common subset are left out.

    Raises:
        TypeError: if the model is not an object at the top.
    """
    prepared: dict[str, Any] = _strict(schema.model_json_schema())
    if prepared.get("type") != "object":
        raise TypeError(f"{schema.__name__} is not an object at the top; servers take no other schema")
    return prepared


@lru_cache(maxsize=64)
def response_format(schema: type[BaseModel], structured: str) -> dict[str, Any] | None:
    """The `response_format` field of a request, shared; None where the prompt alone asks for JSON."""
    if structured == "json_schema":
        body = {"name": schema.__name__, "schema": json_schema(schema), "strict": True}
        return {"type": "json_schema", "json_schema": body}
    return {"type": "json_object"} if structured == "json_object" else None


def schema_prompt(schema: type[BaseModel]) -> str:
    """What is said to a model whose server takes no schema."""
    return (
        "Reply with one JSON object and nothing else: no code fence, no comment. It must fit this JSON schema:\n"
        f"{json.dumps(json_schema(schema), ensure_ascii=False)}"
    )


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            out[key] = {name: _strict(field) for name, field in value.items()}
        elif key not in _DROPPED:
            out[key] = value if key in ("enum", "required", "description", "$ref") else _strict(value)
    if "const" in node:
        out["enum"] = [node["const"]]
    if "oneOf" in node:
        out["anyOf"] = _strict(node["oneOf"])
    if "prefixItems" in node:
        options = [_strict(item) for item in node["prefixItems"]]
        distinct = [item for at, item in enumerate(options) if item not in options[:at]]
        out["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    if node.get("type") == "object":
        out.setdefault("properties", {})
        out["required"] = list(out["properties"])
        if not isinstance(out.get("additionalProperties"), dict):
            out["additionalProperties"] = False
    return out


def read_reply(schema: type[T], content: str | None, reasoning: str | None = None) -> tuple[T, str]:
    """The value in a reply, and the JSON text it was read from.

    The answer is looked for in the content, else among the thoughts: whole, in a code fence, as the last object in
    the text that fits, and at last through json-repair.

    Args:
        schema: what the value must be.
        content: the reply's text.
        reasoning: thoughts that the server keeps apart (`reasoning_content`).

    Raises:
        UnreadableReplyError: if nothing fits; says what is wrong with what came nearest.
    """
    said = _without_thoughts(content or "")
    # Thoughts are read only where nothing else was said: a draft in them is not the answer.
    texts = [said] if said else [_without_thoughts(reasoning or ""), reasoning or "", content or ""]
    problem = ""
    for text in texts:
        for candidate in _candidates(text):
            try:
                return _validated(schema, candidate)
            except UnreadableReplyError as error:
                problem = problem or str(error)
        if not problem and text.strip():
            problem = "The reply is not a JSON object."
    raise UnreadableReplyError(problem or "The reply was empty.")


def _without_thoughts(text: str) -> str:
    text = _THOUGHT.sub("", text)
    text = _THOUGHT_END.sub("", text)
    return _THOUGHT_START.sub("", text).strip()


def _candidates(text: str) -> Iterator[dict[str, Any]]:
    if not text:
        return
    seen = []
    for piece in (text, *(match.strip() for match in _FENCE.findall(text))):
        value = _parse(piece)
        if isinstance(value, dict):
            seen.append(value)
            yield value
    inside = list(_objects(text))
    yield from (value for value in reversed(inside) if value not in seen)
    if not seen and not inside:
        yield from _repaired(text)


def _reject(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_reject)
"""strict=False: grammar-led decoding lets raw line breaks into strings."""


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost object in a text, in order."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and value:
                yield value
        at = text.find("{", end)


def _repaired(text: str) -> Iterator[dict[str, Any]]:
    import json_repair

    start = text.find("{")
    if start < 0:
        return
    try:
        value = json_repair.loads(text[start:], skip_json_loads=True)
    except (ValueError, RecursionError):
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and item:
            yield item


def _validated(schema: type[T], value: dict[str, Any]) -> tuple[T, str]:
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair is valid JSON and no valid text; it would break every file the value is written to.
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        return schema.model_validate_json(clean), clean
    except ValidationError as error:
        raise UnreadableReplyError(_problems(schema, error)) from None


def _problems(schema: type[BaseModel], error: ValidationError) -> str:
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]:
        where = ".".join(str(part) for part in item["loc"]) or "the object"
        lines.append(f"{where}: {item['msg']}")
    more = error.error_count() - len(lines)
    tail = f"; and {more} more" if more > 0 else ""
    return f"The reply does not fit {schema.__name__}: {'; '.join(lines)}{tail}."
