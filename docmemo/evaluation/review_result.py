"""What the marks say about rule and judge: agreement and Cohen's kappa with the person, overall and by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from docmemo.evaluation.aggregate import multi_page, single_page
from docmemo.evaluation.agreement import Agreement, agreement, right
from docmemo.evaluation.cases import Case
from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.intervals import Interval
from docmemo.evaluation.review import Marked, counted, outdated
from docmemo.evaluation.terminal import limits, percent

RATERS: Mapping[str, Callable[[Case], float | None]] = {"judge": lambda c: c.verdict, "rule": lambda c: c.score}
"""Who is held against the person."""


def slices(case: Case) -> Iterable[tuple[str, str]]:
    """(dimension, slice) of everything a case is part of."""
    question = case.question
    yield "outcome", case.state
    yield "answer_format", question.answer_format or "unknown"
    yield from (("evidence_source", source) for source in dict.fromkeys(question.evidence_sources))
    yield "doc_type", case.doc_type or "unknown"
    if case.scanned is not None:
        yield "text_layer", "scanned" if case.scanned else "text"
    if single_page([case]):
        yield "pages", "single_page"
    elif multi_page([case]):
        yield "pages", "multi_page"


def results(cases: Sequence[Case], marks: Mapping[str, Mapping[str, Marked]]) -> dict[str, Any]:
    """Agreement of judge and rule with each reviewer, and of reviewers with each other.

    Args:
        cases: of the last run.
        marks: reviewer to question id to the mark that stands.

    Returns:
        JSON-ready. For each reviewer `n` marks counted, `outdated` marks, `right` ones, and for judge and rule
        `overall` and `slices` (as `Agreement.as_dict`, the person second); and `between` two reviewers each.
    """
    found: dict[str, Any] = {"reviewers": {}, "between": []}
    mine = {name: counted(cases, standing) for name, standing in marks.items()}
    for name, standing in marks.items():
        rows = mine[name]
        found["reviewers"][name] = {
            "n": len(rows),
            "right": sum(value for _, value in rows),
            "outdated": outdated(cases, standing),
            **{rater: _against(rows, value) for rater, value in RATERS.items()},
        }
    for first, second in combinations(mine, 2):
        other = {case.question.question_id: value for case, value in mine[second]}
        both = [(v, other[q], c) for c, v in mine[first] if (q := c.question.question_id) in other]
        found["between"].append({"first": first, "second": second, **_agreement(both).as_dict()})
    return found


def _against(rows: Sequence[tuple[Case, bool]], value: Callable[[Case], float | None]) -> dict[str, Any] | None:
    both = [(right(v), mark, case) for case, mark in rows if (v := value(case)) is not None]
    if not both:
        return None
    groups: dict[tuple[str, str], list[tuple[bool, bool, Case]]] = {}
    for row in both:
        for key in slices(row[2]):
            groups.setdefault(key, []).append(row)
    return {
        "overall": _agreement(both).as_dict(),
        "slices": [
            {"dimension": dimension, "slice": name, **_agreement(groups[dimension, name]).as_dict()}
            for dimension, name in sorted(groups)
        ],
    }


def _agreement(rows: Sequence[tuple[bool, bool, Case]]) -> Agreement:
    return agreement([a for a, _, _ in rows], [b for _, b, _ in rows], [c.question.doc_id for _, _, c in rows])


def render(found: Mapping[str, Any]) -> Iterable[RenderableType]:
    """`results` for the terminal."""
    for name, own in found["reviewers"].items():
        yield Text(
            f"{name}: {own['n']} answers marked, {own['right']} of them right"
            + (f"; {own['outdated']} marks do not count, since their answer has changed" if own["outdated"] else "")
        )
        for rater in RATERS:
            if own[rater]:
                yield _table(f"{rater} and {name}", own[rater])
                overall = own[rater]["overall"]
                yield Text(
                    f"both right {overall['both_right']}, only {rater} right {overall['only_first']}, "
                    f"only {name} right {overall['only_second']}, both wrong {overall['both_wrong']}\n",
                    style="dim",
                )
    if found["between"]:
        table = _columns("Reviewers")
        for pair in found["between"]:
            table.add_row(f"{pair['first']} and {pair['second']}", *_cells(pair))
        yield table
    yield Text(
        f"{DEFINITIONS['agreement']}\nkappa: {DEFINITIONS['agreement.kappa']}\n{DEFINITIONS['interval']}", style="dim"
    )


def _columns(title: str) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("")
    for name in ("n", "agreement", "95% interval", "kappa", "95% interval"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _table(title: str, rated: Mapping[str, Any]) -> Table:
    table = _columns(title)
    table.add_row("overall", *_cells(rated["overall"]), style="bold", end_section=True)
    dimension = None
    for row in rated["slices"]:
        if dimension not in (None, row["dimension"]):
            table.add_section()
        dimension = row["dimension"]
        table.add_row(f"{dimension.replace('_', ' ')}: {row['slice'].replace('_', ' ')}", *_cells(row))
    return table


def _cells(figures: Mapping[str, Any]) -> list[str]:
    share, kappa = Interval(**figures["agreement"]), Interval(**figures["kappa"])
    value = "–" if kappa.value is None else f"{kappa.value:.2f}"
    between = "" if kappa.value is None else limits(kappa.low, kappa.high)
    if kappa.low is not None and kappa.high is not None:
        between = f"{kappa.low:.2f} to {kappa.high:.2f}"
    elif kappa.value == 1:
        between = "no disagreement"
    return [str(figures["n"]), percent(share.value), limits(share.low, share.high, share.value), value, between]
