"""Faults of the scripted server: which one an attempt meets, and what it looks like on the wire."""

from __future__ import annotations

import hashlib
import re
from typing import Any

TRANSIENT = ("429", "429_retry_after", "500", "503", "slow", "cut")
"""Faults that a second try of the same request gets over."""
ODD = ("malformed", "think", "reasoning", "fence", "around", "control", "single_quotes")
"""Answers that arrive whole and are not plain JSON."""
FAILED = ("length", "refusal", "content_filter", "empty", "bad_json")
"""Answers that cannot be used."""
ERRORS = (
    "engine_dead",
    "image_500",
    "loading",
    "quota",
    "no_json",
    "error_200",
    "400",
    "422",
    "403",
    "hang",
    "close",
)
KINDS = frozenset((*TRANSIENT, *ODD, *FAILED, *ERRORS))


def chosen(script: dict[str, Any], number: int, digest: str, attempt: int) -> str | None:
    """The fault of one attempt, or None.

    By request number where the script's `faults_at` says so; else drawn by (seed, digest of the request, attempt), so
    that order and concurrency change nothing and a request's answer never depends on the faults before it.
    """
    planned = script.get("faults_at", {}).get(str(number))
    if planned is not None:
        return str(planned)
    faults = script.get("faults")
    if not faults:
        return None
    text = f"{faults.get('seed', 0)}/{digest}/{attempt}"
    draw = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)
    if draw / 16**12 >= faults["probability"]:
        return None
    kinds = faults.get("kinds", TRANSIENT)
    return str(kinds[int(hashlib.sha256(f"kind/{text}".encode()).hexdigest()[:8], 16) % len(kinds)])


def disguise(kind: str | None, text: str) -> tuple[str | None, str | None]:
    """A reply's (content, reasoning_content) with an oddity around the JSON text."""
    if kind == "malformed":
        return text.rstrip()[:-1] + ",", None
    if kind == "bad_json":
        return "I cannot put this into JSON.", None
    if kind == "think":
        return f"<think>The user wants {{braces}} and a page.\n</think>\n\n{text}", None
    if kind == "reasoning":
        return None, text
    if kind == "fence":
        return f"```json\n{text}\n```", None
    if kind == "around":
        return f"Here is the answer {{as asked}}:\n{text}\nI hope this helps.", None
    if kind == "control":
        return re.sub(r'": "', '": "\n\t', text, count=1), None
    if kind == "single_quotes":
        return text.replace('"', "'"), None
    if kind == "empty":
        return "", None
    return text, None
