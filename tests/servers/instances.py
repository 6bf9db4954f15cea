"""A valid instance of a JSON schema, decided by a seed alone: the scripted server's answer without a rule."""

from __future__ import annotations

import hashlib
import random
from typing import Any


def instance(schema: dict[str, Any], seed: str) -> Any:
    """A value that fits `schema`; one seed, one value. Arrays are as short as allowed, optional values null."""
    draw = random.Random(int(hashlib.sha256(seed.encode()).hexdigest(), 16))
    return _value(schema, schema, draw)


def _resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        node: Any = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            node = node[name]
        schema = node
    return schema


def _value(schema: dict[str, Any], root: dict[str, Any], draw: random.Random) -> Any:
    schema = _resolve(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if "allOf" in schema:
        return _value(schema["allOf"][0], root, draw)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            options = [_resolve(option, root) for option in schema[key]]
            null = next((o for o in options if o.get("type") == "null"), None)
            return None if null is not None else _value(options[0], root, draw)
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    if kind == "object":
        return {name: _value(field, root, draw) for name, field in schema.get("properties", {}).items()}
    if kind == "array":
        return [_value(schema.get("items", {}), root, draw) for _ in range(schema.get("minItems", 0))]
    if kind == "integer":
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return draw.randint(low, min(low + 9, schema.get("maximum", low + 9)))
    if kind == "number":
        low = schema.get("minimum", 0)
        return round(draw.uniform(low, schema.get("maximum", low + 1)), 3)
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "string":
        text = f"text {draw.randrange(10**6)}"
        return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", len(text))]
    return None
