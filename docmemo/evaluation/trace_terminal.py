"""The trace of one question for the terminal, 80 columns and wider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from docmemo.evaluation.belief_charts import MARKS, scale
from docmemo.evaluation.trace_view import (
    ROLE_WORDS,
    Role,
    TraceView,
    clean,
    decimal,
    fitting_words,
    query_change,
    spend_words,
    verdict,
)
from docmemo.types import RoundRecord

WIDEST = 110
CANDIDATES = 10
BELIEF_ROWS = 14
"""Pages with a row of their own in the belief view; the strip below it shows all."""
_BAR = 6
_LABELS = 12
"""Columns the labels of a round take."""
_STYLES: dict[Role, str] = {
    "gold": "yellow",
    "useful": "green",
    "irrelevant": "red",
    "read": "",
    "candidate": "dim",
}
_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def show(view: TraceView, console: Console) -> None:
    """Print the question, its rounds and the beliefs of its pages."""
    width = min(console.width, WIDEST)
    for part in _parts(view, width):
        console.print(part, width=width)


def _parts(view: TraceView, width: int) -> Iterable[RenderableType]:
    yield _head(view)
    for i, record in enumerate(view.rounds):
        yield Text()
        yield Rule(Text(f"Round {record.round}", style="bold"), align="left", style="dim")
        yield _round(view, i, record, width - _LABELS)
    if not view.belief:
        return
    yield Text()
    yield Rule(Text("Belief", style="bold"), align="left", style="dim")
    yield Text(
        "How relevant each page seemed, 0 to 1: at the start (similarity to the question), then after each "
        f"round. {MARKS['useful']} the reader called it useful, {MARKS['irrelevant']} irrelevant, "
        f"{MARKS['none']} read without a verdict.",
        style="dim",
    )
    yield _belief_table(view, width)
    yield from _strip(view, width)


def _fields() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold", min_width=10)
    table.add_column(overflow="fold", ratio=1)
    return table


def _name(view: TraceView, page: int, *, gold: bool = True) -> Text:
    """A page: its index, its printed number, and whether it is gold."""
    text = Text(str(page))
    if view.printed(page):
        text.append(f" (printed {clean(view.printed(page))})", style="dim")
    if gold and page in view.gold:
        text.append(" ◆gold", style="yellow")
    return text


def _joined(items: Iterable[Text | str], between: str = ", ") -> Text:
    return Text(between).join([item if isinstance(item, Text) else Text(item) for item in items]) or Text("none")


def _wrapped(items: Sequence[Text], between: str, width: int) -> Text:
    """The items in lines of at most `width` columns, none of them broken unless it is longer than that."""
    text, used = Text(), 0
    for i, item in enumerate(items):
        piece = item.copy().append(between.rstrip() if i < len(items) - 1 else "")
        gap = " " * (len(between) - len(between.rstrip()))
        if i and used + len(gap) + piece.cell_len > width:
            text.append("\n")
            used = 0
        elif i:
            text.append(gap)
            used += len(gap)
        text.append_text(piece)
        used += piece.cell_len
    return text if items else Text("none")


def _head(view: TraceView) -> Table:
    answer, question, table = view.answer, view.question, _fields()
    scope = f", {len(view.scope)} pages" if view.scope else ""
    table.add_row("Question", Text(clean(answer.question), style="bold"))
    table.add_row("Document", f"{clean(answer.doc_id)}{scope}  ·  {clean(answer.question_id)}")
    if answer.outcome == "answer":
        label = "Extract" if answer.confidence == "low" else "Answer"
        text = Text(clean(answer.answer or ""), style="green")
        if answer.confidence == "low":
            text.append("  low-confidence extract, not question answering", style="not green dim")
        table.add_row(label, text)
        if answer.full_answer:
            table.add_row("In full", clean(answer.full_answer))
        if answer.confidence_score is not None:
            table.add_row("Confidence", f"{decimal(answer.confidence_score)}, the model's own")
    elif answer.outcome == "not_answerable":
        table.add_row("Verdict", Text(clean(f"not answerable. {answer.reason}")))
    else:
        error = answer.error
        said = f"{error.kind}: {clean(error.message)}" if error else "no error was recorded"
        again = " The next run asks again." if error and error.retryable else ""
        table.add_row("Failed", Text(said + again, style="red"))
        if not view.rounds:
            table.add_row("", Text("No round was finished.", style="dim"))
    table.add_row("Spend", spend_words(answer.usage))
    if question and (view.gold or question.answer is not None):
        shown = [Text(clean(question.answer))] if question.answer is not None else []
        for page in view.gold:
            first = view.first_read(page)
            told = Text("page ").append_text(_name(view, page, gold=False))
            told.append(f" first read in round {first}" if first else " never read", "green" if first else "red")
            shown.append(told)
        table.add_row(
            Text("◆ Gold", style="yellow"),
            _joined(shown, "; ").append("  the dataset's own; search and reader never see it", style="dim"),
        )
    return table


def _round(view: TraceView, index: int, record: RoundRecord, width: int) -> Table:
    table = _fields()
    table.add_row("Query", _query(view, index, record))
    for number, need in enumerate(record.needs, 1):
        table.add_row("Needs" if number == 1 else "", f"{number}. {clean(need)}")
    best = [Text(str(c.page)).append(f" {decimal(c.score)}", style="dim") for c in record.candidates[:CANDIDATES]]
    if len(record.candidates) > len(best):
        best.append(Text(f"and {len(record.candidates) - len(best)} more", style="dim"))
    table.add_row("Candidates", _wrapped(best, "  ", width))
    if view.blend(record.round):
        table.add_row("", Text(f"page and score; score: {view.blend(record.round)}", style="dim"))
    if view.explored(record.round) is not None:
        table.add_row("", Text(f"page {view.explored(record.round)} by a random draw, to explore", style="dim"))
    table.add_row("Reranked", _joined(str(page) for page in record.reranked))
    new = [page for page in record.evidence if view.first_read(page) == record.round]
    read = [_name(view, page) for page in record.evidence]
    if index and read:
        read.append(Text(f"({'new: ' + ', '.join(map(str, new)) if new else 'none of them new'})", style="dim"))
    table.add_row("Read", _wrapped(read, "  ", width))
    for number, crop in enumerate(record.crops):
        caption = f": {clean(crop.caption)}" if crop.caption else ""
        table.add_row("Crops" if number == 0 else "", f"page {crop.page}, {crop.kind}{caption}")
    for label, fitting in (("Left out", record.fitting), ("Rerank", record.rerank_fitting)):
        if fitting is not None:
            table.add_row(label, ("left out: " if label == "Rerank" else "") + fitting_words(fitting))
    if record.rerank_note:
        table.add_row("Rerank", clean(record.rerank_note))
    table.add_row("Feedback", _feedback(record))
    for label, text in (("Note", record.note), ("Missing", record.missing)):
        if text:
            table.add_row(label, clean(text))
    if record.gated:
        table.add_row("Gate", "“not answerable” was not accepted yet: too few rounds or pages read.")
    if index or record.usage != view.answer.usage:
        table.add_row("Spend", spend_words(record.usage))
    return table


def _query(view: TraceView, index: int, record: RoundRecord) -> Text:
    previous = view.rounds[index - 1].query if index else record.query
    if record.query == view.answer.question:
        return Text("the question itself", style="dim")
    if previous == record.query:
        return Text(clean(record.query)).append("  (unchanged)" if index else "", style="dim")
    text = Text()
    for kind, piece in query_change(clean(previous), clean(record.query)):
        if kind == "removed":
            text.append(f"[-{piece.strip()}-] ", style="red")
        elif kind == "added":
            lead = " " if piece.startswith(" ") else ""
            text.append(f"{lead}[+{piece.strip()}+]", style="green").append(" " if piece.endswith(" ") else "")
        else:
            text.append(piece)
    return text


def _feedback(record: RoundRecord) -> Text:
    parts = [
        Text(f"{MARKS['useful']} useful {', '.join(map(str, record.useful)) or 'none'}", style="green"),
        Text(f"{MARKS['irrelevant']} irrelevant {', '.join(map(str, record.irrelevant)) or 'none'}", style="red"),
    ]
    if record.dropped:
        dropped = f"ignored {', '.join(map(str, record.dropped))} (not shown, or called both)"
        parts.append(Text(dropped, style="yellow"))
    return _joined(parts, "  ·  ")


def bar(value: float, width: int = _BAR) -> str:
    """A horizontal bar of `width` characters for a value between 0 and 1."""
    eighths = round(8 * width * min(max(value, 0.0), 1.0))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _belief_table(view: TraceView, width: int) -> Table:
    """Rows: pages that mattered. Columns: moments, each a bar and a number; without bars when there are many."""
    bars = 32 + len(view.steps) * (_BAR + 8) <= width + 8
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("page", no_wrap=True, header_style="dim")
    for name in view.steps:
        table.add_column(name, no_wrap=True, header_style="dim")
    for page in view.mattered(BELIEF_ROWS):
        style = _STYLES[view.role(page)]
        cells = []
        for step, mean in enumerate(view.means(page)):
            record = view.rounds[step - 1] if step else None
            sign = MARKS[verdict(record, page)] if record and page in record.evidence else ""
            cells.append(Text(f"{bar(mean)} " if bars else "", style=style).append(f"{decimal(mean)[1:]}{sign}"))
        label = Text(str(page), style=style)
        if view.printed(page):
            label.append(f" ({clean(view.printed(page))[:8]})", style="dim")
        label.append(" ◆" if page in view.gold else "", style="yellow")
        table.add_row(label, *cells)
    return table


def _strip(view: TraceView, width: int) -> Iterable[Text]:
    """All pages in scope, a character each (or the best of several), one line a moment."""
    room = width - 10
    per = -(-len(view.scope) // room)
    low, high = scale(view)
    each = "a page each" if per == 1 else f"the best of {per} pages each"
    yield Text()
    yield Text(f"All {len(view.scope)} pages, {each}, {decimal(low)} {_LEVELS} {decimal(high)}:", style="dim")
    for name, means in zip(view.steps, view.belief, strict=True):
        groups = [max(means[i : i + per]) for i in range(0, len(means), per)]
        line = "".join(_LEVELS[min(7, int(8 * (m - low) / (high - low)))] for m in groups)
        yield Text(f"{name:<10}", style="dim").append(line, style="not dim cyan")
    yield _pointers(view, "read", view.ever_read, per, "●", "")
    if any(page in view.scope for page in view.gold):
        yield _pointers(view, "gold", view.gold, per, "◆", "yellow")
    # Colour repeats what signs say, so without colour nothing is lost.
    roles = list(dict.fromkeys(view.role(page) for page in view.mattered(BELIEF_ROWS)))
    yield Text("colours: ", style="dim").append_text(_joined(Text(ROLE_WORDS[r], style=_STYLES[r]) for r in roles))


def _pointers(view: TraceView, name: str, pages: Sequence[int], per: int, sign: str, style: str) -> Text:
    signs = [" "] * (-(-len(view.scope) // per))
    for page in pages:
        if page in view.scope:
            signs[view.scope.index(page) // per] = sign
    return Text(f"{name:<10}", style="dim").append("".join(signs), style=f"not dim {style}".strip())
