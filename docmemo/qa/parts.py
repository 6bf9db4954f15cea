"""The reader and the reranker that parameters name, and the budget of a question."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from docmemo.config import AnswerParams, Params
from docmemo.models.registry import resolve
from docmemo.qa.protocols import Reader, Reranker
from docmemo.settings import Settings


def _make(
    kind: str, name: str, role: str, params: Params, models: Mapping[str, Any], settings: Settings | None
) -> Any:
    """A part. Only those behind a server get their lock entry and the settings; others take the parameters alone."""
    factory = resolve(kind, name)
    if getattr(factory, "served", False):
        return factory(params, entry=models.get(role), settings=settings)
    return factory(params)


def make_reader(params: Params, models: Mapping[str, Any], settings: Settings | None = None) -> Reader:
    """The reader.

    Args:
        params: all parameters.
        models: lock entries by role, of them "reasoner".
        settings: environment settings.

    Raises:
        ConfigError: if there is no such reader.
    """
    return cast(Reader, _make("reader", params.answer.reader, "reasoner", params, models, settings))


def make_reranker(params: Params, models: Mapping[str, Any], settings: Settings | None = None) -> Reranker:
    """The reranker; as `make_reader`, with the role "reranker"."""
    return cast(Reranker, _make("reranker", params.answer.reranker, "reranker", params, models, settings))


def limited(params: AnswerParams) -> AbstractContextManager[Any]:
    """Within it, model calls count against the budget of one question (`answer.question_*`).

    A call beyond it raises QuestionBudgetError: the question ends as failed, with what it spent, and is not asked
    again until the budget is raised.
    """
    limits = (params.question_calls, params.question_tokens, params.question_usd)
    if all(limit is None for limit in limits):
        return nullcontext()
    from docmemo.models.budget import question_budget

    return question_budget(*limits)
