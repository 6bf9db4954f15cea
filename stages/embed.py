"""Page representations for retrieval: embed -> the stage's folder under data/."""

from __future__ import annotations

from docmemo.models.lock import require_lock
from docmemo.pipeline.embed import EmbedStep
from stages.common import FOLDERS, StageContext, stage_main
from stages.offline import run_offline


def run(context: StageContext) -> None:
    """Compute what the store does not have."""
    models = require_lock(context.params, ["embedder"])
    run_offline(EmbedStep(context.params.embed, models), context)


if __name__ == "__main__":
    stage_main("embed", [FOLDERS["embed"]], run)
