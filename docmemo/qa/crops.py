"""Adaptive granularity: which finer crops of tables and figures a round shows."""

from __future__ import annotations

from collections.abc import Sequence

from docmemo.qa.corpus import DocumentView
from docmemo.retrieval.tokenize import query_terms
from docmemo.types import Box, Page, PageCrop, Region


def choose_crops(view: DocumentView, query: str, evidence: Sequence[int], limit: int) -> list[PageCrop]:
    """At most `limit` tables and figures of the evidence pages: the most relevant, then by page rank and place.

    Relevance is the idf of the query's terms that the region's caption or the text inside it holds.

    Args:
        view: the document.
        query: this round's query.
        evidence: pages read, best first.
        limit: most crops.
    """
    if limit == 0:
        return []
    rank = {page: i for i, page in enumerate(evidence)}
    regions = [r for r in view.layout.regions if r.kind in ("table", "figure") and r.page in rank]
    language = view.index.language
    weights = {term: view.index.idf_of(term) for term in query_terms(query, language)}

    def order(region: Region) -> tuple[float, int, float, float]:
        text = f"{region.text}\n{text_inside(view.by_number[region.page], region.bbox)}"
        terms = set(query_terms(text, language))
        relevance = sum(idf for term, idf in weights.items() if term in terms)
        return (-round(relevance, 9), rank[region.page], region.bbox[1], region.bbox[0])

    chosen = sorted(regions, key=order)[:limit]
    return [PageCrop(page=r.page, kind=r.kind, bbox=r.bbox, caption=r.text) for r in chosen]


def text_inside(page: Page, bbox: Box) -> str:
    """The page's lines whose middle lies in a box."""
    x0, y0, x1, y1 = bbox
    inside = []
    for line in page.lines:
        x, y = (line.bbox[0] + line.bbox[2]) / 2, (line.bbox[1] + line.bbox[3]) / 2
        if x0 <= x <= x1 and y0 <= y <= y1:
            inside.append(line.text)
    return "\n".join(inside)
