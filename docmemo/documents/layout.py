"""Where tables and figures stand on a PDF page: PyMuPDF's layout model, its pictures and its drawings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from docmemo.config import LayoutParams
from docmemo.documents.pdf import displayed_box, mupdf
from docmemo.types import Box, Line

_MIN_PATHS = 8
"""Fewer strokes and fills than this are rules and boxes, not a drawing."""
_CELL = 6.0
"""Points; drawn parts closer than this belong together."""

# --- the model ------------------------------------------------------------------------------------------------


def _activate_layout() -> None:
    """Load PyMuPDF's layout model once, with sessions of one thread each."""
    if "pymupdf.layout" in sys.modules:
        return
    mupdf()
    import onnxruntime

    options = onnxruntime.SessionOptions

    def one_thread() -> Any:
        made = options()
        made.intra_op_num_threads = 1
        made.inter_op_num_threads = 1
        return made

    onnxruntime.SessionOptions = one_thread
    try:
        import pymupdf.layout  # noqa: F401 - importing it is what activates it
    finally:
        onnxruntime.SessionOptions = options


def model_boxes(page: Any, lines: Sequence[Line]) -> list[tuple[str, Box]]:
    """(class, box) of PyMuPDF's layout model; boxes are fractions of the displayed page.

    The model gets to see the page with its text upright, whatever its rotation: it looks at a rendering of the
    displayed page, but at text in unrotated coordinates, and finds fewer tables where the two differ.

    Classes: title, section-header, text, list-item, table, picture, caption, formula, footnote, page-header,
    page-footer.
    """
    _activate_layout()
    turn = _text_turn(page, lines)
    found = []
    for kind, box in _unrotated_boxes(page, turn):
        placed = displayed_box(page, box)
        if placed is not None and area(placed) > 0:
            found.append((kind, placed))
    return found


def _text_turn(page: Any, lines: Sequence[Line]) -> int:
    """The page rotation (0, 90, 180, 270) at which most of its text reads from left to right."""
    width, height = page.rect.width, page.rect.height
    sideways = sum(
        len(li.text)
        for li in lines
        if len(li.text) > 4 and (li.bbox[3] - li.bbox[1]) * height > 2 * (li.bbox[2] - li.bbox[0]) * width
    )
    if page.rotation == 0 and sideways * 2 < sum(len(li.text) for li in lines):
        return 0
    weights = {0: 0, 90: 0, 180: 0, 270: 0}
    for block in page.get_text("dict", flags=0)["blocks"]:
        for line in block.get("lines", ()):
            turn = {(1, 0): 0, (0, -1): 90, (-1, 0): 180, (0, 1): 270}.get(tuple(round(v) for v in line["dir"]))
            if turn is not None:
                weights[turn] += sum(len(span["text"]) for span in line["spans"])
    return max(weights, key=lambda t: weights[t])


def _unrotated_boxes(page: Any, turn: int) -> list[tuple[str, tuple[float, ...]]]:
    """(class, box in points of the unrotated page), found on the page turned to `turn`."""
    pymupdf = mupdf()
    if turn == 0:
        rotation = page.rotation
        if rotation:
            page.set_rotation(0)
        try:
            page.get_layout()
            return [(str(b[4]), tuple(b[:4])) for b in page.layout_information or ()]
        finally:
            if rotation:
                page.set_rotation(rotation)
    copy = pymupdf.open()
    try:
        copy.insert_pdf(page.parent, from_page=page.number, to_page=page.number, annots=False)
        turned = copy[0]
        turned.set_rotation(turn)
        back = turned.derotation_matrix
        turned.remove_rotation()
        turned.get_layout()
        return [(str(b[4]), tuple(pymupdf.Rect(b[:4]) * back)) for b in turned.layout_information or ()]
    finally:
        copy.close()


# --- boxes ----------------------------------------------------------------------------------------------------


def area(box: Box) -> float:
    """Share of the page."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(a: Box, b: Box) -> float:
    """Area that both cover, as a share of the page."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around all."""
    all_boxes = list(boxes)
    return (
        min(b[0] for b in all_boxes),
        min(b[1] for b in all_boxes),
        max(b[2] for b in all_boxes),
        max(b[3] for b in all_boxes),
    )


def inside(line: Line, box: Box) -> bool:
    """Whether a line's centre lies in a box."""
    x, y = (line.bbox[0] + line.bbox[2]) / 2, (line.bbox[1] + line.bbox[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def merge_boxes(boxes: Sequence[Box], gap: tuple[float, float] = (0.0, 0.0)) -> list[Box]:
    """Boxes that overlap by more than a third of the smaller one, or come closer than `gap` (x, y), become one."""
    merged = list(boxes)
    changed = True
    while changed:
        changed = False
        for i in range(len(merged)):
            for j in range(i + 1, len(merged)):
                a, b = merged[i], merged[j]
                near = gap != (0.0, 0.0) and (
                    a[0] - gap[0] <= b[2]
                    and b[0] - gap[0] <= a[2]
                    and a[1] - gap[1] <= b[3]
                    and b[1] - gap[1] <= a[3]
                )
                if near or overlap(a, b) > min(area(a), area(b)) / 3:
                    merged[i] = union((a, b))
                    del merged[j]
                    changed = True
                    break
            if changed:
                break
    return merged


# --- pictures and drawings ------------------------------------------------------------------------------------


def picture_boxes(page: Any, params: LayoutParams) -> list[Box]:
    """Raster pictures on a page: tiles of one picture joined, backgrounds and rules left out."""
    boxes = []
    for info in page.get_image_info():
        box = displayed_box(page, info["bbox"])
        if box is not None and area(box) < 0.9:
            boxes.append(box)
    if len(boxes) > 400:  # a picture cut into slices; joining them pairwise would take for ever
        boxes = sorted(boxes, key=area, reverse=True)[:400]
    width, height = page.rect.width, page.rect.height
    joined = merge_boxes(boxes, (2.0 / width, 2.0 / height))
    return [b for b in joined if area(b) >= params.min_area and not _is_strip(b, width, height)]


def _is_strip(box: Box, width: float, height: float) -> bool:
    w, h = (box[2] - box[0]) * width, (box[3] - box[1]) * height
    return max(w, h) > 15 * max(1.0, min(w, h))


def drawing_boxes(page: Any, lines: Sequence[Line], params: LayoutParams) -> list[Box]:
    """Vector drawings (charts, diagrams): groups of many strokes and fills that are not text with a box around."""
    import cv2
    import numpy as np

    width, height = page.rect.width, page.rect.height
    paths = []
    for kind, bbox in page.get_bboxlog():
        if kind not in ("fill-path", "stroke-path", "fill-shade"):
            continue
        box = displayed_box(page, bbox)
        if box is None or (box[2] - box[0] > 0.9 and box[3] - box[1] < 0.02) or area(box) > 0.6:
            continue
        paths.append(box)
    if len(paths) < _MIN_PATHS or width > 20_000 or height > 20_000:
        return []
    columns, rows = int(width / _CELL) + 2, int(height / _CELL) + 2
    grid = np.zeros((rows, columns), np.uint8)
    corners = []
    for x0, y0, x1, y1 in paths:
        c0, r0 = int(x0 * width / _CELL), int(y0 * height / _CELL)
        c1, r1 = int(x1 * width / _CELL), int(y1 * height / _CELL)
        grid[r0 : r1 + 1, c0 : c1 + 1] = 1
        corners.append((r0, c0))
    grid = cv2.dilate(grid, np.ones((3, 3), np.uint8))  # type: ignore[assignment]
    count, labels, _, _ = cv2.connectedComponentsWithStats(grid)
    members: list[list[Box]] = [[] for _ in range(count)]
    for (row, column), box in zip(corners, paths, strict=True):
        members[labels[row, column]].append(box)
    found = []
    for group in members[1:]:
        if len(group) < _MIN_PATHS:
            continue
        box = union(group)
        if area(box) < params.min_area or _is_strip(box, width, height):
            continue
        if sum(area(li.bbox) for li in lines if inside(li, box)) < 0.35 * area(box):
            found.append(box)
    return found


def figure_boxes(
    page: Any, model: Sequence[tuple[str, Box]], lines: Sequence[Line], params: LayoutParams
) -> list[Box]:
    """Figures: the model's pictures, raster pictures and vector drawings, joined; not those inside tables."""
    tables = [box for kind, box in model if kind == "table"]
    prose = [box for kind, box in model if kind in ("text", "list-item") and area(box) > 0.02]
    pictures = picture_boxes(page, params)
    boxes = list(pictures)
    for kind, box in model:
        if kind == "picture" and area(box) >= params.min_area:
            text = sum(overlap(li.bbox, box) for li in lines if inside(li, box))
            # the model takes large type on a tinted ground for a picture
            if text < 0.5 * area(box) or any(overlap(box, p) > 0.3 * area(box) for p in pictures):
                boxes.append(box)
    for box in drawing_boxes(page, lines, params):
        covered = sum(overlap(box, p) for p in prose)
        if covered < 0.4 * area(box):
            boxes.append(box)
    kept = []
    for box in merge_boxes(boxes):
        in_tables = sum(overlap(box, t) for t in tables)
        if in_tables < 0.5 * area(box):
            kept.append(box)
    return kept
