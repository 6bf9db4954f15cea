"""What the scripted server answers in tests of the steps that ask a model; runs in the server's process."""

from __future__ import annotations

import os
import re
from typing import Any

from tests.servers.counting import image_sizes


def said(body: dict[str, Any]) -> str:
    """The text of the first user message: the prompt's user part."""
    content = next(m["content"] for m in body["messages"] if m["role"] == "user")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def describe_page(body: dict[str, Any]) -> dict[str, Any]:
    """A summary that repeats what was shown: the page's number, its first words, the picture's size."""
    text = said(body)
    number = re.search(r'<page index="(\d+)"', text)
    shown = re.search(r"<page_text>\s*(.*?)\s*</page_text>", text, re.DOTALL)
    assert number is not None
    assert shown is not None
    words = " ".join(shown[1].split()[:6])
    sizes = image_sizes(body)
    summary = f"Page {number[1]} tells of {words}, seen at {sizes}."
    return {"summary": summary, "keywords": ["Dry Dock", "dry dock", ""]}


_asked = 0


def die_at_the_fifth(body: dict[str, Any]) -> dict[str, Any]:
    """As `describe_page`, but the server ends in the middle of its fifth request, as by kill -9."""
    global _asked
    _asked += 1
    if _asked == 5:
        os._exit(1)
    return describe_page(body)


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """What was said, as the summary."""
    return {"summary": said(body), "keywords": []}


def echo_as_topic(body: dict[str, Any]) -> dict[str, Any]:
    """What was said, as the topic of a schema."""
    return {"doc_type": "echo", "topic": said(body), "sections": []}


def describe_document(body: dict[str, Any]) -> dict[str, Any]:
    """Three sections: the second overlaps the first, the third runs beyond the document."""
    match = re.search(r"The document has (\d+) pages", said(body))
    assert match is not None
    n_pages = int(match[1])
    half = (n_pages + 1) // 2
    sections = [
        {"label": f"Opening of {n_pages}", "first_page": 1, "last_page": n_pages, "level": 1},
        {"label": "Close", "first_page": half + 1, "last_page": n_pages + 50, "level": 1},
        {"label": "Of another document", "first_page": n_pages + 3, "last_page": n_pages + 9, "level": 1},
    ]
    return {"doc_type": "harbour report", "topic": f"A report of {n_pages} pages.", "sections": sections}
