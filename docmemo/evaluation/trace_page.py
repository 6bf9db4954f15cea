"""The trace of one question as one offline HTML file. All text from documents is data and is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from docmemo.artifacts import write_atomic
from docmemo.evaluation.belief_charts import MARKS, belief_lines, heat_strip, scale
from docmemo.evaluation.report import MAX_QUOTE, environment, mark_terms, thumbnail_rule
from docmemo.evaluation.thumbnails import thumbnails
from docmemo.evaluation.trace_view import (
    ROLE_WORDS,
    TraceView,
    Verdict,
    decimal,
    fitting_words,
    query_change,
    spend_words,
    verdict,
)
from docmemo.types import Box, Candidate, Citation, PageCrop, RoundRecord

LINES = 12
"""Pages that get a line of their own in the chart; all are in the strip and in the table."""
WHOLE_PAGE = 0.5
"""Boxes larger than this share of the page are drawn as an outline, since a fill would hide the page."""


@dataclass(frozen=True)
class Bar:
    """A candidate of a round."""

    candidate: Candidate
    height: float
    """Per cent of the round's best score."""
    state: str
    """read, kept (reranked, not read) or left."""


@dataclass(frozen=True)
class Sheet:
    """A page the reader read in a round."""

    page: int
    verdict: Verdict
    first_read: int | None
    reranked: bool
    """Kept by this round's reranker; else it comes from an earlier round."""
    belief: tuple[float, float] | None
    """Posterior mean before and after this round's feedback."""
    crops: Sequence[PageCrop]
    cited: Sequence[Box]


@dataclass(frozen=True)
class RoundView:
    """A round as the page shows it."""

    record: RoundRecord
    change: Sequence[tuple[str, str]] | None
    """The query in pieces against the last round's; None in the first round and where nothing changed."""
    blend: str
    explored: int | None
    bars: Sequence[Bar]
    sheets: Sequence[Sheet]
    spend: str

    @property
    def flow(self) -> list[str]:
        """How many pages each step of the round left."""
        r = self.record
        new = sum(sheet.first_read == r.round for sheet in self.sheets)
        return [
            f"{len(r.candidates)} candidates",
            f"{len(r.reranked)} kept by the reranker",
            f"{len(r.evidence)} read, {new} for the first time",
            f"{len(r.useful)} useful, {len(r.irrelevant)} irrelevant",
        ]


@dataclass(frozen=True)
class Row:
    """A page's belief over the rounds, for the tables."""

    page: int
    role: str
    fate: str
    means: Sequence[str]
    signs: Sequence[str]
    """At each step the sign of the verdict of the round before it; "" where the page was not read."""


def write_trace_page(target: Path, view: TraceView, pages_dir: Path, *, thumbnail_width: int) -> None:
    """Write the page to `target`, atomically.

    Args:
        target: the file; its folder is made.
        view: the question's records.
        pages_dir: folder of the `.pages.zip` archives; a missing one costs only the pictures.
        thumbnail_width: pixels.

    Raises:
        ArtifactError: if the trace does not fit its answer.
    """
    doc_id = view.answer.doc_id
    pictures = list(thumbnails(pages_dir, {doc_id: set(view.ever_read)}, thumbnail_width))
    classes = {picture.key[1]: f"t{picture.key[1]}" for picture in pictures}
    low, high = scale(view) if view.belief else (0.0, 1.0)
    text = (
        environment()
        .get_template("trace.html")
        .render(
            view=view,
            answer=view.answer,
            question=view.question,
            rounds=_rounds(view),
            cited=_cited(view),
            heat=heat_strip(view) if view.belief else None,
            lines=belief_lines(view, view.mattered(LINES)) if view.belief else None,
            mattered=[_row(view, page) for page in view.mattered(LINES)] if view.belief else [],
            rows=[_row(view, page) for page in view.scope] if view.belief else [],
            limits=(decimal(low), decimal(high)),
            classes=classes,
            thumbnail_css=[thumbnail_rule(picture, classes[picture.key[1]]) for picture in pictures],
            thumbnail_width=thumbnail_width,
            whole_page=WHOLE_PAGE,
            marks=MARKS,
            roles=ROLE_WORDS,
            spend=spend_words(view.answer.usage),
            decimal=decimal,
            fitting_words=fitting_words,
        )
    )
    # Text of a broken PDF may hold lone surrogates, which UTF-8 cannot.
    write_atomic(target, text.encode("utf-8", errors="replace"))


def _rounds(view: TraceView) -> list[RoundView]:
    made = []
    for i, record in enumerate(view.rounds):
        previous = view.rounds[i - 1].query if i else record.query
        made.append(
            RoundView(
                record=record,
                change=query_change(previous, record.query) if previous != record.query else None,
                blend=view.blend(record.round),
                explored=view.explored(record.round),
                bars=_bars(record),
                sheets=[_sheet(view, i, page) for page in record.evidence],
                spend=spend_words(record.usage),
            )
        )
    return made


def _bars(record: RoundRecord) -> list[Bar]:
    best = max((c.score for c in record.candidates), default=0.0)
    return [
        Bar(
            candidate=c,
            height=100 * max(c.score, 0.0) / best if best > 0 else 0.0,
            state="read" if c.page in record.evidence else "kept" if c.page in record.reranked else "left",
        )
        for c in record.candidates
    ]


def _sheet(view: TraceView, index: int, page: int) -> Sheet:
    record, means = view.rounds[index], view.means(page)
    return Sheet(
        page=page,
        verdict=verdict(record, page),
        first_read=view.first_read(page),
        reranked=page in record.reranked,
        belief=(means[index], means[index + 1]) if means else None,
        crops=[crop for crop in record.crops if crop.page == page],
        cited=[c.bbox for c in view.answer.citations if c.page == page and c.bbox],
    )


def _cited(view: TraceView) -> list[tuple[int, str, list[Markup]]]:
    """Cited pages in order, with their printed number and the marked passages."""
    by_page: dict[int, list[Citation]] = {}
    for citation in view.answer.citations:
        by_page.setdefault(citation.page, []).append(citation)
    return [
        (
            page,
            next((c.label for c in citations if c.label), view.printed(page)),
            [mark_terms(c.quote[:MAX_QUOTE], view.answer.question) for c in citations if c.quote],
        )
        for page, citations in by_page.items()
    ]


def _row(view: TraceView, page: int) -> Row:
    signs = ["", *(MARKS[verdict(r, page)] if page in r.evidence else "" for r in view.rounds)]
    return Row(
        page=page,
        role=view.role(page),
        fate=view.fate(page),
        means=[decimal(m) for m in view.means(page)],
        signs=signs,
    )


def default_target(state: Path, name: str) -> Path:
    """Where the page goes when nobody says: in the project's state folder, which git ignores."""
    return state / "traces" / f"{name}.html"
