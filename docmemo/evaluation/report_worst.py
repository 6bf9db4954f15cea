"""The questions one should look at first: failed, confidently wrong, evidence missed; with pages and crops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docmemo.artifacts import artifact_name, read_layout, read_member, read_pages
from docmemo.errors import ArtifactError
from docmemo.evaluation import retrieval_metrics as metrics
from docmemo.evaluation.agreement import right
from docmemo.evaluation.cases import Case
from docmemo.evaluation.thumbnails import picture_uri
from docmemo.types import Box

Why = Literal["failed", "wrong", "missed"]
OF_EACH = 4
"""Questions of each kind at most."""
PAGE_WIDTH, CROP_WIDTH = 300, 380
"""Pixels."""
_MAX_PAGES, _MAX_CROPS = 3, 3
_BYTES = 45_000
"""Of one picture."""


@dataclass(frozen=True)
class Picture:
    """A page, or a table or figure on one."""

    page: int
    caption: str
    status: str
    """Of a page: gold, missed / gold, read / cited; of a crop "crop"."""
    uri: str
    ratio: float
    """Height over width."""
    boxes: Sequence[Box] = ()
    """Cited places."""


@dataclass(frozen=True)
class Worst:
    """A question with the reason why it is here."""

    case: Case
    why: Why
    pictures: Sequence[Picture]
    recall: float | None
    """Of the gold pages, after the last round; None without gold pages."""


def wrong(case: Case) -> bool:
    """Whether the judge, else the rule, calls the answer wrong."""
    value = case.verdict if case.verdict is not None else case.score
    return value is not None and not right(value)


def choose(cases: Sequence[Case]) -> list[tuple[Case, Why]]:
    """At most OF_EACH failed ones, then wrong ones by falling confidence, then those that missed most of their pages.

    Confidently wrong exists only where the reader gives a confidence. A question is shown once.
    """
    chosen: dict[str, tuple[Case, Why]] = {}

    def take(why: Why, found: Iterable[Case]) -> None:
        fresh = [c for c in found if c.question.question_id not in chosen]
        chosen.update({c.question.question_id: (c, why) for c in fresh[:OF_EACH]})

    def by(key: Callable[[Case], float]) -> Callable[[Case], tuple[float, str]]:
        return lambda case: (key(case), case.question.question_id)

    take("failed", [c for c in cases if c.failed])
    sure = [c for c in cases if not c.failed and wrong(c) and c.confidence is not None]
    take("wrong", sorted(sure, key=by(lambda c: -(c.confidence or 0.0))))
    missed = [c for c in cases if not c.failed and c.gold and recall(c) != 1]
    take("missed", sorted(missed, key=by(lambda c: recall(c) or 0.0)))
    return list(chosen.values())


def recall(case: Case) -> float | None:
    """Share of the gold pages that were read; None without gold pages."""
    return metrics.recall(case.gold, metrics.pages_read(case.reads, len(case.reads))) if case.gold else None


def worst(cases: Sequence[Case], pages_dir: Path, layout_dir: Path) -> list[Worst]:
    """`choose`, with pictures. A missing or damaged archive costs only its pictures."""
    return [
        Worst(case, why, [] if why == "failed" else pictures(case, pages_dir, layout_dir), recall(case))
        for case, why in choose(cases)
    ]


def pictures(case: Case, pages_dir: Path, layout_dir: Path) -> list[Picture]:
    """Gold pages that were missed, then cited ones, then other gold pages; and tables and figures on them."""
    read = metrics.pages_read(case.reads, len(case.reads))
    citations = case.answer.citations if case.answer else []
    cited = [c.page for c in citations]
    pages = list(dict.fromkeys([*sorted(case.gold - read), *cited, *sorted(case.gold)]))[:_MAX_PAGES]
    made = []
    path = pages_dir / artifact_name(case.question.doc_id, ".pages.zip")
    try:
        images = {page.page: page.image for page in read_pages(path).pages}
    except ArtifactError:
        return []
    for page in pages:
        found = _picture(path, images.get(page, ""), PAGE_WIDTH)
        if found:
            gold = ("gold, read" if page in read else "gold, missed") if page in case.gold else ""
            status = gold or "cited"
            made.append(Picture(page, "", status, *found, [c.bbox for c in citations if c.page == page and c.bbox]))
    return made + _crops(case, pages, layout_dir)


def _crops(case: Case, pages: Sequence[int], layout_dir: Path) -> list[Picture]:
    path = layout_dir / artifact_name(case.question.doc_id, ".layout.zip")
    try:
        regions = read_layout(path).regions
    except ArtifactError:
        return []
    shown = {(crop.page, crop.bbox) for r in (case.answer.rounds if case.answer else []) for crop in r.crops}
    wanted = [r for r in regions if r.page in pages and r.crop]
    wanted.sort(key=lambda r: (pages.index(r.page), (r.page, r.bbox) not in shown))
    made = []
    for region in wanted[:_MAX_CROPS]:
        found = _picture(path, region.crop, CROP_WIDTH)
        if found:
            made.append(Picture(region.page, region.text, "crop", *found))
    return made


def _picture(archive: Path, member: str, width: int) -> tuple[str, float] | None:
    if not member:
        return None
    try:
        return picture_uri(read_member(archive, member), width, _BYTES)
    except ArtifactError:
        return None
