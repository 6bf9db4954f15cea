"""Replays a trace: the same feedback to a new controller gives the same numbers, bit for bit."""

from __future__ import annotations

import numpy as np

from docmemo.config import Params
from docmemo.qa.ablations import plan
from docmemo.qa.controller import Controller
from docmemo.qa.trace import Trace


def replay(trace: Trace, params: Params) -> Trace:
    """The trace a controller writes that is given the queries, similarities, pages read and feedback of `trace`.

    Args:
        trace: of a finished question.
        params: of the run that wrote it; of them the sections loop and belief.

    Returns:
        A trace equal to `trace` unless it was made with other parameters or by other code.
    """
    made = plan(params.loop, params.belief)
    controller = Controller(
        trace.pages,
        made.belief,
        trace.seed,
        trace.question_id,
        documents=trace.documents or None,
        sections=trace.sections or None,
        slots=made.loop.evidence,
        learn=made.learn,
    )
    for record in trace.rounds:
        controller.start_round(record.query, np.asarray(record.similarity, dtype=np.float64))
        controller.feedback(record.useful, record.irrelevant, record.read)
    belief = controller.belief
    return trace.model_copy(
        update={
            "rounds": controller.rounds,
            "a": belief.a.tolist() if belief is not None else [],
            "b": belief.b.tolist() if belief is not None else [],
        }
    )
