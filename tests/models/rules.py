"""Answers of the scripted server in the client's tests; they run in the server's process."""

from __future__ import annotations

import json
from typing import Any

from tests.servers.counting import text_of


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """The request itself."""
    return {"pages": [], "why": json.dumps(body)}


def broken_until_told(body: dict[str, Any]) -> dict[str, Any]:
    """Out of format, until the model was shown its error; then everything it was told."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return {"pages": [], "why": text_of(body)}
    return {"pages": "none", "why": "x"}
