"""The encoder of queries that the parameters ask for; what it needs is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docmemo.config import Params
from docmemo.retrieval.late_interaction import QueryEncoder
from docmemo.settings import Settings


def query_encoder(params: Params, models: Mapping[str, Any], settings: Settings) -> QueryEncoder | None:
    """Embeds queries for the scores of page images; None where these play no part.

    Args:
        params: all parameters.
        models: lock entries; the embedder's is used.
        settings: device and store.
    """
    if params.embed.backend != "colqwen" or params.retrieval.visual_weight == 0:
        return None
    from docmemo.models.colqwen_queries import StoredQueries

    return StoredQueries(params.embed, models["embedder"], settings)
