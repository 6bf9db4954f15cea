"""Tokens of a request, estimated before it is sent and on the high side.

A server's tokenizer is not at hand, so text is counted by what byte-pair tokenizers make of each kind of character,
and never below one token for three bytes of UTF-8 (English prose has more than four). Images are counted as the
model's own preprocessing cuts them, rounded up.

Estimate divided by the count of the tokenizers of Qwen and Mistral (Tekken), over pages of real documents: English
1.4 to 1.5 on average (least page 1.03), German 1.1 to 1.25 (1.04), Chinese 1.5 to 2.0 (1.45), code 1.6, columns of
figures 1.06, French, Russian, Arabic, Thai, Japanese, Korean 1.4 to 4. Below it: codes of random letters and digits
(0.8), and Chinese characters drawn evenly from the whole block (0.8 to 1.0), of which no page consists. A small
English vocabulary such as SmolLM2's needs more for other languages (estimate 0.6 to 0.9 of its count, English 1.1 to
1.4): give such a model a smaller `context` than it has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from docmemo.models.chat import Image, Message

ImageRule = Literal["qwen2_5_vl", "qwen3_vl", "openai_tiles"]

BYTES_PER_TOKEN = 3.0
SAFETY = 1.06
"""The least sum of character weights seen on a page of text was 0.98 of the true count."""
MESSAGE_TOKENS = 8
"""Role, separators and line breaks that a chat template adds to a message."""
TEMPLATE_TOKENS = 32
"""The opening of the reply, and the default system prompt that some templates add."""
IMAGE_MARKS = 2
"""Tokens around an image."""

_LOWER, _UPPER, _DIGIT, _SIGN, _BLANK, _BREAK, _CJK, _ACCENTED, _TWO_BYTES, _THREE_BYTES, _SYMBOL, _FOUR_BYTES = (
    range(12)
)
_WEIGHTS = {_DIGIT: 1.0, _BREAK: 1.0, _CJK: 1.5, _ACCENTED: 1.0, _TWO_BYTES: 0.7, _THREE_BYTES: 1.5, _SYMBOL: 2.0}
_WEIGHTS[_FOUR_BYTES] = 4.0
"""Tokens a character, of the classes that are counted so. Digits one each, since Qwen cuts numbers so."""
_RANGES = {
    _SYMBOL: ((0x80, 0xBF), (0x2000, 0x2FFF), (0x3000, 0x303F), (0xD800, 0xF8FF), (0xFE00, 0xFFFF)),
    _ACCENTED: ((0xC0, 0x24F), (0x1E00, 0x1EFF)),
    _TWO_BYTES: ((0x250, 0x7FF),),
    _CJK: ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF)),
    _BREAK: ((0x09, 0x0D),),
    _BLANK: ((0x20, 0x20),),
    _DIGIT: ((0x30, 0x39),),
    _UPPER: ((0x41, 0x5A),),
    _LOWER: ((0x61, 0x7A),),
}


def _class_table() -> NDArray[np.int8]:
    table = np.full(0x10001, _THREE_BYTES, dtype=np.int8)
    table[:0x80] = _SIGN
    for kind, ranges in _RANGES.items():
        for low, high in ranges:
            table[low : high + 1] = kind
    table[0x10000] = _FOUR_BYTES
    return table


_TABLE = _class_table()
_CHARACTER_WEIGHT = np.array([_WEIGHTS.get(kind, 0.0) for kind in range(12)])


@lru_cache(maxsize=4096)
def text_tokens(text: str) -> int:
    """Tokens of a text, on the high side.

    A Latin word takes one for each four letters begun, since German compounds and names are cut so, a word in
    capitals one for each two, an accented letter one more. Chinese, Japanese and Korean take one and a half a
    character, other scripts and symbols by their bytes. Punctuation one each, a run of the same sign half of it.
    Line breaks one each, other white space beyond single blanks one a run.
    """
    if not text:
        return 0
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _TABLE[np.minimum(codes, 0x10000)]
    count = float(_CHARACTER_WEIGHT[kinds].sum())
    new = np.empty(len(codes), dtype=bool)
    new[0] = True
    new[1:] = (kinds[1:] != kinds[:-1]) | ((kinds[1:] == _SIGN) & (codes[1:] != codes[:-1]))
    starts = np.flatnonzero(new)
    kind = kinds[starts]
    length = np.diff(starts, append=len(codes))
    capital = np.flatnonzero((kind[:-1] == _UPPER) & (kind[1:] == _LOWER))
    length[capital] -= 1
    length[capital + 1] += 1
    count += int(((length[kind == _LOWER] + 3) // 4).sum()) + int(((length[kind == _UPPER] + 1) // 2).sum())
    count += int(((length[kind == _SIGN] + 1) // 2).sum())
    before_break = np.append(kind[1:] == _BREAK, True)
    count += int(((kind == _BLANK) & ((length > 1) | before_break)).sum())
    return max(math.ceil(SAFETY * count), math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN))


def _patches(width: int, height: int, side: int, least: int, most: int) -> int:
    """Squares of `side` pixels after the size is brought into [least, most] pixels, rounded up on both sides."""
    area = width * height
    scale = math.sqrt(least / area) if area < least else math.sqrt(most / area) if area > most else 1.0
    return math.ceil(max(1.0, width * scale / side)) * math.ceil(max(1.0, height * scale / side))


def _tiles(width: int, height: int) -> int:
    """OpenAI's rule for high detail: fit into 2048 x 2048, shorter side at most 768, 170 a tile of 512 and 85."""
    scale = min(1.0, 2048 / max(width, height))
    width, height = math.ceil(width * scale), math.ceil(height * scale)
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def image_tokens(width: int, height: int, rule: ImageRule) -> int:
    """Tokens of one image, its marks included.

    Qwen2.5-VL takes one for each 28 x 28 pixels after scaling to 3,136 to 12,845,056 pixels, Qwen3-VL one for each
    32 x 32 after scaling to 65,536 to 16,777,216 (their published preprocessors; a server may set lower limits).

    Args:
        width: pixels.
        height: pixels.
        rule: the model's family; `ModelParams.image_tokens`.
    """
    if rule == "openai_tiles":
        return _tiles(width, height) + IMAGE_MARKS
    if rule == "qwen2_5_vl":
        return _patches(width, height, 28, 3136, 12845056) + IMAGE_MARKS
    return _patches(width, height, 32, 65536, 16777216) + IMAGE_MARKS


def request_tokens(messages: Sequence[Message], schema: dict[str, Any] | None, rule: ImageRule) -> int:
    """Input tokens of a request, on the high side.

    Args:
        messages: what is said.
        schema: the JSON schema sent along, counted as text since some servers put it into the prompt.
        rule: how images are counted.
    """
    total = TEMPLATE_TOKENS + MESSAGE_TOKENS * len(messages)
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                total += image_tokens(part.width, part.height, rule)
            else:
                total += text_tokens(part)
    return total + (text_tokens(json.dumps(schema)) if schema is not None else 0)
