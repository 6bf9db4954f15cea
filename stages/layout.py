"""Tables, figures, headings and captions of every page, and their crops: layout -> the stage's folder under data/."""

from __future__ import annotations

from docmemo.models.lock import require_lock
from docmemo.pipeline.layout import LayoutStep
from stages.common import FOLDERS, StageContext, stage_main
from stages.offline import run_offline


def run(context: StageContext) -> None:
    """Compute what the store does not have."""
    models = require_lock(context.params, ["layout"])
    run_offline(LayoutStep(context.params.layout, models), context)


if __name__ == "__main__":
    stage_main("layout", [FOLDERS["layout"]], run)
