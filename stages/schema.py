"""Schema memory of every document: schema -> the stage's folder under data/."""

from __future__ import annotations

from docmemo.models.lock import require_lock
from docmemo.pipeline.backends import schema_step
from stages.common import FOLDERS, StageContext, stage_main
from stages.offline import run_offline


def run(context: StageContext) -> None:
    """Compute what the store does not have."""
    models = require_lock(context.params, ["schema"])
    run_offline(schema_step(context.params, models, context.settings), context)


if __name__ == "__main__":
    stage_main("schema", [FOLDERS["schema"]], run)
