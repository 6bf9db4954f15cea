"""Ablations and baselines: each one parameter (`loop.ablation`), each changing that and nothing else.

| name | what it changes |
|---|---|
| no_schema | schema memory is absent from rerank and reason requests, and its sections spread nothing |
| no_belief | l = 0, and evidence is chosen by current similarity |
| no_episodic | history and notes are hidden; the refined query still drives retrieval |
| no_memory | all three, and no useful page is shown again |
| no_bayes | a and b stay at the prior |
| greedy | th is the posterior mean, not a draw |
| no_crops | no crops of tables and figures |
| no_propagation | r = 0, and sections spread nothing |
| static | one round: the n best pages once |
| requery | rounds without memory: no_memory, and only the current round's pages are read |
| fixed_rounds | all T rounds always; the last one decides |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from docmemo.config import BeliefParams, LoopParams


@dataclass(frozen=True)
class Plan:
    """The loop's parameters with an ablation applied."""

    loop: LoopParams
    belief: BeliefParams
    show_schema: bool = True
    show_notes: bool = True
    learn: bool = True
    """Whether feedback changes a and b."""
    accumulate: bool = True
    """Whether pages of earlier rounds stay in the running for evidence."""
    stop_early: bool = True
    """Whether a decision before the last round ends the question."""


def plan(loop: LoopParams, belief: BeliefParams) -> Plan:
    """What `loop.ablation` makes of the parameters."""
    silent: dict[str, Any] = {
        "show_schema": False,
        "show_notes": False,
        "belief": _with(belief, policy="none", section_gain=0.0),
    }
    changes: dict[str, dict[str, Any]] = {
        "none": {},
        "no_schema": {"show_schema": False, "belief": _with(belief, section_gain=0.0)},
        "no_belief": {"belief": _with(belief, policy="none")},
        "no_episodic": {"show_notes": False},
        "no_memory": {**silent, "loop": _with(loop, keep_useful=0)},
        "no_bayes": {"learn": False},
        "greedy": {"belief": _with(belief, policy="mean")},
        "no_crops": {"loop": _with(loop, crops=0)},
        "no_propagation": {"belief": _with(belief, radius=0, section_gain=0.0)},
        "static": {"loop": _with(loop, rounds=1)},
        "requery": {**silent, "accumulate": False, "loop": _with(loop, keep_useful=0)},
        "fixed_rounds": {"stop_early": False},
    }
    return Plan(**{"loop": loop, "belief": belief, **changes[loop.ablation]})


def _with(section: Any, **values: Any) -> Any:
    return section.model_copy(update=values)
