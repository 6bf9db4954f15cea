"""The steps whose backend is a parameter, made from it. What asks models is imported only when it is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from docmemo.config import Params
from docmemo.pipeline.step import Step
from docmemo.settings import Settings, load_settings


def summarize_step(params: Params, models: Mapping[str, Any], settings: Settings | None = None) -> Step:
    """The step that summarises pages.

    Args:
        params: all parameters; `summarize.backend` decides.
        models: the lock entry of "summarizer".
        settings: environment settings; read anew when None.

    Raises:
        ConfigError: if the backend needs a prompt that is missing.
    """
    if params.summarize.backend != "vlm":
        from docmemo.pipeline.summarize import SummarizeStep

        return SummarizeStep(params.summarize, models)
    from docmemo.models.openai_compatible import open_model
    from docmemo.pipeline.summarize_vlm import VlmSummarizeStep
    from docmemo.prompts import load_prompt

    settings = settings or load_settings()
    opener = partial(open_model, "summarizer", params.summarize.model, entry=models["summarizer"], settings=settings)
    return VlmSummarizeStep(params.summarize, models, load_prompt("summary"), opener, ahead=settings.concurrency + 2)


def schema_step(params: Params, models: Mapping[str, Any], settings: Settings | None = None) -> Step:
    """The step that makes the schema memory.

    Args:
        params: all parameters; `schema.backend` decides.
        models: the lock entry of "schema".
        settings: environment settings; read anew when None.

    Raises:
        ConfigError: if the backend needs a prompt that is missing.
    """
    if params.schema_.backend != "vlm":
        from docmemo.pipeline.schema import SchemaStep

        return SchemaStep(params.schema_, models)
    from docmemo.models.openai_compatible import open_model
    from docmemo.pipeline.schema_vlm import VlmSchemaStep
    from docmemo.prompts import load_prompt

    opener = partial(
        open_model, "schema", params.schema_.model, entry=models["schema"], settings=settings or load_settings()
    )
    return VlmSchemaStep(params.schema_, models, load_prompt("schema"), opener)
