"""The failure rule of the stages that talk to models."""

from __future__ import annotations

from collections.abc import Mapping

from docmemo.errors import IncompleteRunError
from docmemo.qa.journal import FailedAttempt
from docmemo.types import Failure
from docmemo.usage import Usage
from stages.common import log

NEVER_ASKED = FailedAttempt(
    Failure(kind="NeverAsked", message="the flow ended before it was asked", retryable=True), Usage(), 0
)
"""For a question that the flow itself gave up before its work began."""


def report_failures(retryable: Mapping[str, str], accepted: bool, stage: str, noun: str) -> None:
    """The failure rule: a run with retryable failures is not finished, unless the user accepts them.

    Raises:
        IncompleteRunError: if there are some and they are not accepted.
    """
    if not retryable:
        return
    shown = "; ".join(f"{name}: {message}" for name, message in list(retryable.items())[:3])
    more = f"; and {len(retryable) - 3} more" if len(retryable) > 3 else ""
    text = f"{len(retryable)} {noun} failed in a way that may pass ({shown}{more})."
    if accepted:
        log.warning("%s: %s Accepted, since DOCMEMO_ACCEPT_FAILURES is set.", stage, text)
        return
    raise IncompleteRunError(
        text,
        remedy="Everything finished is kept: run `dvc repro` again to try just these, "
        "or set DOCMEMO_ACCEPT_FAILURES=1 to accept them as failed.",
    )
