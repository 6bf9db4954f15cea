"""Where a quote stands on its page."""

from __future__ import annotations

import re
import unicodedata

from docmemo.types import Box, Page

_WORD = re.compile(r"\w+")
MIN_QUOTE = 2
"""Letters or digits; a shorter quote could stand anywhere."""


def _folded(text: str) -> str:
    """Letters and digits alone, in one case: what is left of a text once print and typing differences are gone."""
    return "".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())).replace("_", "")


def locate(page: Page, quote: str) -> Box | None:
    """The box of the lines that a quote runs over, apart from case, spaces and punctuation.

    Args:
        page: the page it is said to stand on.
        quote: words copied from it.

    Returns:
        None where the page's text does not hold it: a misquote, or words of a picture.
    """
    wanted = _folded(quote)
    if len(wanted) < MIN_QUOTE:
        return None
    text, ends = "", []
    for line in page.lines:
        text += _folded(line.text)
        ends.append(len(text))
    start = text.find(wanted)
    if start < 0:
        return None
    first = next(i for i, end in enumerate(ends) if end > start)
    last = next(i for i, end in enumerate(ends) if end >= start + len(wanted))
    boxes = [line.bbox for line in page.lines[first : last + 1]]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
