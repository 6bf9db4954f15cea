"""Page representations for retrieval: embed -> the stage's folder under data/."""

from __future__ import annotations

import contextlib

from docmemo.models.lock import require_lock
from docmemo.pipeline.embed import EmbedStep
from stages.common import FOLDERS, StageContext, stage_main
from stages.offline import run_offline


def run(context: StageContext) -> None:
    """Compute what the store does not have."""
    models = require_lock(context.params, ["embedder"])
    params = context.params.embed
    with contextlib.ExitStack() as stack:
        encoders = None
        if params.backend == "colqwen":
            from docmemo.pipeline.page_vectors import PageEncoders

            encoders = stack.enter_context(PageEncoders(params, models["embedder"], context.settings))
        run_offline(EmbedStep(params, models, encoders), context)


if __name__ == "__main__":
    stage_main("embed", [FOLDERS["embed"]], run)
