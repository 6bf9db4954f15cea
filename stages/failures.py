"""The failure rule of the stages that talk to models."""

from __future__ import annotations

from collections.abc import Mapping

from docmemo.errors import DocMemoError, IncompleteRunError
from docmemo.qa.journal import FailedAttempt
from docmemo.types import Failure
from docmemo.usage import Usage
from stages.common import log

NEVER_ASKED = FailedAttempt(
    Failure(kind="NeverAsked", message="the flow ended before it was asked", retryable=True), Usage(), 0
)
"""For a question that the flow itself gave up before its work began."""


def not_asked(stopped: DocMemoError | None) -> FailedAttempt:
    """How an item is recorded whose turn never came."""
    if stopped is None:
        return NEVER_ASKED
    failure = Failure(kind="NotAsked", message=f"not asked: {stopped.message}", retryable=True)
    return FailedAttempt(failure, Usage(), 0)


def report_failures(
    retryable: Mapping[str, str], accepted: bool, stage: str, noun: str, stopped: DocMemoError | None = None
) -> None:
    """The failure rule: a run with retryable failures is not finished, unless the user accepts them.

    A run that was stopped is never accepted: what was not asked has not failed.

    Args:
        retryable: item to the message of its failure.
        accepted: DOCMEMO_ACCEPT_FAILURES.
        stage: names the stage in the warning of accepted failures.
        noun: what the items are.
        stopped: what stopped the run before its end.

    Raises:
        IncompleteRunError: if there are failures that are not accepted, or the run was stopped.
    """
    if stopped is not None:
        raise IncompleteRunError(
            f"The run was stopped: {stopped.message} {len(retryable)} {noun} are left.",
            remedy=f"{stopped.remedy} Everything finished is kept; `dvc repro` then does just the rest"
            f"{' (DOCMEMO_ACCEPT_FAILURES does not accept a stopped run)' if accepted else ''}.",
        )
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
