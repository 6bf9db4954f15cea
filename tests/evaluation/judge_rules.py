"""What the scripted judge says in tests; runs in the server's process."""

from __future__ import annotations

import re
from typing import Any


def _said(body: dict[str, Any]) -> str:
    content = next(m["content"] for m in body["messages"] if m["role"] == "user")
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _inside(tag: str, text: str) -> list[str]:
    return [found.strip() for found in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)]


def same_words(body: dict[str, Any]) -> dict[str, Any]:
    """Correct when the answer holds the words of a reference, whatever their case."""
    text = _said(body)
    answer = _inside("answer", text)[0].casefold()
    references = _inside("reference", text)
    correct = any(reference.casefold() in answer for reference in references)
    return {"reason": f"{references} against {answer!r}", "correct": correct}


def never(body: dict[str, Any]) -> dict[str, Any]:
    """Nothing is ever correct."""
    return {"reason": "I am hard to please.", "correct": False}


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """Gives back everything that was said, system part left out."""
    return {"reason": _said(body), "correct": True}
