"""Questions as the report shows them: their pages, what was read, what was missed, and the cited passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from docmemo.config import ReportParams
from docmemo.evaluation import retrieval_metrics as metrics
from docmemo.evaluation.cases import Case
from docmemo.evaluation.markup import mark_terms
from docmemo.types import Box, Citation

MAX_MISSED_PAGES = 3
"""Thumbnails of gold pages that were not read, a question; the rest are named only."""
MAX_QUOTE = 600


@dataclass(frozen=True)
class PageView:
    """A page as a question shows it."""

    page: int
    label: str
    status: str
    """hit (gold and read), read (not gold), missed (gold, not read), or unknown (no gold pages to compare with)."""
    thumbnail: str
    """CSS class of the thumbnail; '' when there is none."""
    boxes: Sequence[Box]
    quotes: Sequence[Markup]


@dataclass(frozen=True)
class QuestionView:
    """A question as the report shows it."""

    case: Case
    outcome: str
    score: float | None
    pages: Sequence[PageView]
    recall: float | None
    """Of the gold pages, after the last round; None without gold pages."""

    @property
    def hit(self) -> str:
        """all, some, none, or no-gold."""
        if self.recall is None:
            return "no-gold"
        return "all" if self.recall == 1 else "some" if self.recall > 0 else "none"


def pages_to_show(case: Case, params: ReportParams) -> list[int]:
    """Pages read (cited ones first, then the last round's evidence backwards), then gold pages that were missed."""
    cited = [c.page for c in case.answer.citations] if case.answer else []
    read = [page for pages in reversed(case.reads) for page in pages]
    found = list(dict.fromkeys([*cited, *read]))
    missed = sorted(case.gold.difference(read))
    # A gold page that was read is worth its place more than one that was only read.
    found.sort(key=lambda page: (page not in cited, page not in case.gold))
    return found[: params.pages_per_question] + missed[:MAX_MISSED_PAGES]


def question_view(case: Case, classes: Mapping[tuple[str, int], str], params: ReportParams) -> QuestionView:
    read = {page for pages in case.reads for page in pages}
    citations = case.answer.citations if case.answer else []
    return QuestionView(
        case=case,
        outcome=case.answer.outcome if case.answer else "failed",
        score=case.judgement.rule_score if case.judgement else None,
        pages=[_page_view(case, page, read, citations, classes) for page in pages_to_show(case, params)],
        recall=metrics.recall(case.gold, read) if case.gold else None,
    )


def _page_view(
    case: Case, page: int, read: set[int], citations: Sequence[Citation], classes: Mapping[tuple[str, int], str]
) -> PageView:
    here = [c for c in citations if c.page == page]
    if not case.gold:
        status = "unknown"
    elif page in case.gold:
        status = "hit" if page in read else "missed"
    else:
        status = "read"
    return PageView(
        page=page,
        label=next((c.label for c in here if c.label), ""),
        status=status,
        thumbnail=classes.get((case.question.doc_id, page), ""),
        boxes=[c.bbox for c in here if c.bbox],
        quotes=[mark_terms(c.quote[:MAX_QUOTE], case.question.question) for c in here if c.quote],
    )
