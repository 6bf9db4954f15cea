"""The human check in a terminal: one answer at a time, one key and Enter each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TextIO

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from docmemo.evaluation.cases import Case
from docmemo.evaluation.report import MAX_QUOTE
from docmemo.evaluation.review import Session
from docmemo.evaluation.trace_view import clean
from docmemo.types import NOT_ANSWERABLE

KEYS: dict[str, Literal["right", "wrong", "skip", "undo", "quit"]] = {
    "r": "right",
    "w": "wrong",
    "s": "skip",
    "u": "undo",
    "q": "quit",
}
_ASK = "[r]ight  [w]rong  [s]kip  [u]ndo  [q]uit: "


def ask(session: Session, console: Console, answers: TextIO) -> None:
    """Show case after case and take marks until all are done, or the person stops (q, or the end of `answers`).

    Args:
        session: what is left.
        console: where questions are shown.
        answers: one key a line.
    """
    if not session.sample:
        console.print("There is no answer to check: none has a score or a verdict.")
        return
    stopped = False
    shown: Case | None = None
    while (case := session.current) and not stopped:
        if case is not shown:
            for part in describe(case, f"{session.done} of {len(session.sample)} marked, {session.left} to go"):
                console.print(part)
        shown = case
        console.print(_ASK, end="", markup=False)
        line = answers.readline()
        key = KEYS.get(line.strip().casefold()[:1])
        if not line or key == "quit":
            stopped = True
        elif key == "undo":
            if not session.undo():
                console.print("Nothing to take back in this sitting.")
        elif key is None:
            console.print("One of r, w, s, u, q, then Enter.")
        else:
            session.mark(key)
    console.print(f"\n{session.done} of {len(session.sample)} marked. " + _next(session))


def _next(session: Session) -> str:
    if session.current:
        return "The same command goes on; `docmemo review --result` shows the agreement so far."
    return "`docmemo review --result` shows the agreement."


def describe(case: Case, title: str) -> Iterable[RenderableType]:
    """Question, gold, answer and citations; neither score nor verdict."""
    answer, question = case.answer, case.question
    table = Table(show_header=False, show_edge=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Question", Text(clean(question.question), style="bold"))
    gold = Text(clean(question.answer or ""), style="yellow")
    for other in question.references:
        gold.append(f"\nor {clean(other)}")
    table.add_row("Gold answer", gold)
    if question.evidence_pages:
        table.add_row("Gold pages", ", ".join(map(str, sorted(case.gold))))
    given = NOT_ANSWERABLE if answer is None or answer.outcome == "not_answerable" else answer.answer or ""
    table.add_row("Answer", Text(clean(given), style="green"))
    if answer and answer.full_answer and answer.full_answer != answer.answer:
        table.add_row("In full", Text(clean(answer.full_answer)))
    if answer and answer.outcome == "not_answerable" and answer.reason:
        table.add_row("Reason", Text(clean(answer.reason), style="dim"))
    for citation in answer.citations if answer else []:
        place = f"page {citation.page}" + (f" (printed {clean(citation.label)})" if citation.label else "")
        quote = f": “{clean(citation.quote[:MAX_QUOTE])}”" if citation.quote else ""
        table.add_row("Cited", Text(place, style="bold").append(quote, style="not bold dim"))
    table.add_row("Document", Text(clean(question.doc_id), style="dim"))
    yield Text()
    yield Rule(Text(title), align="left", style="dim")
    yield table
