"""Text of a page image by RapidOCR: one thread, offline, loaded once a process."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from docmemo.types import Box, Line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DOUBTFUL = 0.75
"""Mean confidence below which the page is also tried upside down. Upright scans have more than 0.8."""

_TALL = 1.8
"""Height by width of a text box that stands on its side."""


@dataclass(frozen=True)
class Word:
    """One piece of text as the engine finds it; box in pixels."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float

    @property
    def height(self) -> float:
        return self.y1 - self.y0


# Recognition costs 0.1 ms of CPU a pixel of line width at the model's 48 pixels of height. Narrowing long lines to
# 80% saves a fifth of that and misreads letters in names ("Russtell"), so it is not done.


@lru_cache(maxsize=2)
def _engine(max_side: int) -> Any:
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,  # a model call a line, for upside-down lines only
            "Global.max_side_len": max_side,
            "Global.text_score": 0.0,  # filtered here, where the mean is needed too
            "Det.limit_type": "max",
            "Det.limit_side_len": max_side,
            "Rec.rec_img_shape": [3, 48, 48],  # short pieces are padded to this width, and cost grows with width
            "Rec.rec_batch_num": 1,  # lines differ in length, and a batch is padded to its longest
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "EngineConfig.onnxruntime.enable_cpu_mem_arena": True,
        }
    )


def _recognise(image: NDArray[np.uint8], max_side: int) -> list[Word]:
    result = _engine(max_side)(image[:, :, ::-1])
    if result.boxes is None or result.txts is None:
        return []
    words = []
    for quad, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
        xs, ys = [float(p[0]) for p in quad], [float(p[1]) for p in quad]
        if text.strip():
            words.append(Word(" ".join(text.split()), min(xs), min(ys), max(xs), max(ys), float(score)))
    return words


def _mean(words: Sequence[Word]) -> float:
    total = sum(len(w.text) for w in words)
    return sum(w.confidence * len(w.text) for w in words) / total if total else 0.0


def _turned(word: Word, turns: int, width: int, height: int) -> Word:
    """A box of the image turned counter-clockwise by `turns` quarter turns, in the image before (width x height)."""
    x0, y0, x1, y1 = word.x0, word.y0, word.x1, word.y1
    if turns == 1:
        x0, y0, x1, y1 = width - y1, x0, width - y0, x1
    elif turns == 2:
        x0, y0, x1, y1 = width - x1, height - y1, width - x0, height - y0
    elif turns == 3:
        x0, y0, x1, y1 = y0, height - x1, y1, height - x0
    return Word(word.text, x0, y0, x1, y1, word.confidence)


def _upright(image: NDArray[np.uint8], max_side: int) -> tuple[list[Word], int]:
    """The words of the image turned so that text is upright, and by how many quarter turns counter-clockwise."""
    import numpy as np

    words = _recognise(image, max_side)
    long = [w for w in words if len(w.text) > 2]
    tall = [w for w in long if w.height > _TALL * (w.x1 - w.x0)]
    turns = 0
    others: tuple[int, ...] = ()
    if len(long) >= 3 and len(tall) > 0.6 * len(long):
        # the engine turns tall boxes counter-clockwise itself, so its confidence tells which way is the right one
        words, others = [], (1, 3) if _mean(tall) > 0.9 else (3, 1)
    elif len(long) >= 3 and _mean(words) < _DOUBTFUL:
        others = (2,)
    for candidate in others:
        again = _recognise(np.ascontiguousarray(np.rot90(image, candidate)), max_side)
        if _mean(again) > _mean(words):
            words, turns = again, candidate
        if _mean(words) > 0.9:
            break
    return words, turns


def _gaps(spans: Sequence[tuple[float, float]], least: float) -> list[float]:
    """Middles of the gaps wider than `least` that no span crosses, widest first."""
    ordered = sorted(spans)
    found = []
    end = ordered[0][1]
    for low, high in ordered[1:]:
        if low - end > least:
            found.append((low - end, (low + end) / 2))
        end = max(end, high)
    return [middle for _, middle in sorted(found, reverse=True)]


def _rows(words: Sequence[Word]) -> list[list[Word]]:
    """Words that stand on one baseline, left to right; rows from top to bottom. Follows a slight skew."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda w: w.x0):
        best, most = None, 0.5
        for row in rows:
            last = row[-1]
            overlap = (min(last.y1, word.y1) - max(last.y0, word.y0)) / max(1.0, min(last.height, word.height))
            if overlap > most and word.x0 >= last.x1 - 0.5 * last.height:
                best, most = row, overlap
        if best is None:
            rows.append([word])
        else:
            best.append(word)
    return sorted(rows, key=lambda r: statistics.fmean(w.y0 + w.y1 for w in r))


def reading_blocks(words: Sequence[Word]) -> list[list[Word]]:
    """Blocks in reading order by cutting at white gaps: into columns where both sides are prose, else into parts."""
    if len(words) <= 1:
        return [list(words)] if words else []
    height = statistics.median(w.height for w in words)
    for x in _gaps([(w.x0, w.x1) for w in words], 0.8 * height)[:3]:
        left = [w for w in words if w.x1 <= x]
        right = [w for w in words if w.x0 >= x]
        if _is_prose(left) and _is_prose(right):
            return reading_blocks(left) + reading_blocks(right)
    for y in _gaps([(w.y0, w.y1) for w in words], 0.9 * height)[:1]:
        return reading_blocks([w for w in words if w.y1 <= y]) + reading_blocks([w for w in words if w.y0 >= y])
    return [[w for row in _rows(words) for w in row]]


def _is_prose(words: Sequence[Word]) -> bool:
    """Whether this is a column of text and not a column of a table."""
    if len(words) < 2:
        return False
    lengths = [len(w.text) if w.text.isascii() else 2 * len(w.text) for w in words]
    return statistics.median(lengths) >= 15


def read_lines(image: NDArray[np.uint8], max_side: int, min_confidence: float) -> list[Line]:
    """The text of an RGB image (height, width, 3; uint8) in reading order.

    Args:
        image: the page; shrunk to `max_side` pixels before it is read, never enlarged.
        max_side: long side in pixels.
        min_confidence: pieces read with less (0..1) are dropped.

    Returns:
        One Line a piece of text, size 0.0, grouped into blocks. Pages that stand on their side or upside down are
        turned to be read; boxes refer to the image as given.
    """
    small = shrink(image, max_side)
    height, width = small.shape[:2]
    words, turns = _upright(small, max_side)
    words = [w for w in words if w.confidence >= min_confidence]
    lines = []
    for number, block in enumerate(reading_blocks(words)):
        for word in block:
            placed = _turned(word, turns, width, height)
            lines.append(Line(text=word.text, bbox=_fractions(placed, width, height), block=number))
    return lines


def _fractions(word: Word, width: int, height: int) -> Box:
    return (
        round(max(0.0, word.x0 / width), 5),
        round(max(0.0, word.y0 / height), 5),
        round(min(1.0, word.x1 / width), 5),
        round(min(1.0, word.y1 / height), 5),
    )


def shrink(image: NDArray[np.uint8], max_side: int) -> NDArray[np.uint8]:
    """The image (height, width, 3) with its long side at most `max_side` pixels."""
    import cv2

    height, width = image.shape[:2]
    scale = max_side / max(height, width)
    if scale >= 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)  # type: ignore[return-value]
