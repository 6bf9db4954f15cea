"""Which finer crops of tables and figures a round shows: those on the evidence pages most like the query."""

from __future__ import annotations

from collections.abc import Sequence

from docmemo.qa.corpus import DocumentView
from docmemo.retrieval.tokenize import query_terms
from docmemo.types import PageCrop, Region


def choose_crops(view: DocumentView, query: str, evidence: Sequence[int], limit: int) -> list[PageCrop]:
    """At most `limit` tables and figures of the evidence pages, by shared query terms, page rank, then place.

    Args:
        view: the document.
        query: this round's query.
        evidence: pages in reading order, best first.
        limit: most crops.
    """
    if limit == 0:
        return []
    rank = {page: i for i, page in enumerate(evidence)}
    regions = [r for r in view.layout.regions if r.kind in ("table", "figure") and r.page in rank]
    language = view.index.language
    wanted = set(query_terms(query, language))

    def order(region: Region) -> tuple[float, int, float, float]:
        shared = len(wanted & set(query_terms(region.text, language))) if region.text else 0
        return (-shared, rank[region.page], region.bbox[1], region.bbox[0])

    chosen = sorted(regions, key=order)[:limit]
    return [PageCrop(page=r.page, kind=r.kind, bbox=r.bbox, caption=r.text) for r in chosen]
