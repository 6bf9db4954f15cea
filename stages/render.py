"""Page images and text of every document: render -> the stage's folder under data/."""

from __future__ import annotations

from docmemo.models.lock import require_lock
from docmemo.pipeline.render import RenderStep
from stages.common import FOLDERS, StageContext, stage_main
from stages.offline import run_offline


def run(context: StageContext) -> None:
    """Compute what the store does not have."""
    models = require_lock(context.params, ["renderer", "ocr"])
    run_offline(RenderStep(context.params.render, models), context)


if __name__ == "__main__":
    stage_main("render", [FOLDERS["render"]], run)
