"""What the trace of one question says, as the terminal and the page show it: pure functions over its records."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from docmemo.errors import ArtifactError
from docmemo.qa.trace import RoundTrace, Trace
from docmemo.types import AnswerRecord, Fitting, Page, Question, RoundRecord
from docmemo.usage import Usage

Verdict = Literal["useful", "irrelevant", "none"]
Role = Literal["gold", "useful", "irrelevant", "read", "candidate"]

ROLE_WORDS: Mapping[str, str] = {
    "gold": "gold",
    "useful": "useful",
    "irrelevant": "irrelevant",
    "read": "read, no verdict",
    "candidate": "candidate, not read",
}

_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_PIECE = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]|[^\s぀-ヿ㐀-䶿一-鿿가-힯]+|\s+")


@dataclass(frozen=True)
class TraceView:
    """One question's records, and what is read off them."""

    answer: AnswerRecord
    trace: Trace | None = None
    """None where the question failed before it had one."""
    question: Question | None = None
    """With gold; None when the dataset's questions are not at hand."""
    pages: Mapping[int, Page] = field(default_factory=dict)
    """The document's pages, for their printed numbers; may be empty."""

    @property
    def rounds(self) -> Sequence[RoundRecord]:
        """The rounds, first to last."""
        return self.answer.rounds

    @cached_property
    def gold(self) -> list[int]:
        """Gold pages of the dataset, ascending; [] when it has none."""
        return sorted(set(self.question.evidence_pages)) if self.question else []

    @cached_property
    def scope(self) -> list[int]:
        """Pages the question may use; [] when there is no trace."""
        return self.trace.pages if self.trace else []

    @cached_property
    def steps(self) -> list[str]:
        """Names of the moments `belief` is given at: "start", then "after 1" and so on."""
        return ["start", *(f"after {r.round}" for r in self.rounds)] if self.belief else []

    @cached_property
    def belief(self) -> list[list[float]]:
        """Posterior means, shape (n_steps, n_pages): before the first feedback, then after that of each round.

        Raises:
            ArtifactError: if the trace's arrays do not fit its pages.
        """
        if self.trace is None or not self.trace.rounds:
            return []
        parameters = [*((r.a, r.b) for r in self.trace.rounds), (self.trace.a, self.trace.b)]
        fits = [r.round for r in self.trace.rounds] == [r.round for r in self.rounds]
        if not fits or any(len(values) != len(self.scope) for pair in parameters for values in pair):
            raise ArtifactError(
                f"The trace of {self.answer.question_id} does not fit its answer.", remedy="Run `dvc repro`."
            )
        return [[a / (a + b) for a, b in zip(*pair, strict=True)] for pair in parameters]

    @cached_property
    def _position(self) -> dict[int, int]:
        return {page: i for i, page in enumerate(self.scope)}

    def means(self, page: int) -> list[float]:
        """The page's posterior mean at each step; [] for a page out of scope."""
        i = self._position.get(page)
        return [] if i is None else [step[i] for step in self.belief]

    def printed(self, page: int) -> str:
        """The number printed on the page or the PDF's label for it, where that differs from its index."""
        record = self.pages.get(page)
        name = (record.printed or record.label) if record else ""
        return "" if name == str(page) else name

    def first_read(self, page: int) -> int | None:
        """The round that first read the page; None when no round did."""
        return next((r.round for r in self.rounds if page in r.evidence), None)

    @cached_property
    def ever_read(self) -> list[int]:
        """Pages read in any round, in the order of first reading."""
        return list(dict.fromkeys(page for r in self.rounds for page in r.evidence))

    def role(self, page: int) -> Role:
        """The one thing to say of a page: gold, else the last verdict it got, else whether it was read."""
        return "gold" if page in self.gold else self._said(page)

    def _said(self, page: int) -> Literal["useful", "irrelevant", "read", "candidate"]:
        verdicts = [verdict(r, page) for r in self.rounds if page in r.evidence]
        for last in reversed(verdicts):
            if last != "none":
                return last
        return "read" if verdicts else "candidate"

    def fate(self, page: int) -> str:
        """The role in words; of a gold page also what the reader said of it, which may be wrong."""
        said = self._said(page)
        if page not in self.gold:
            return ROLE_WORDS[said]
        return "gold, " + ("never read" if said == "candidate" else ROLE_WORDS[said])

    def mattered(self, limit: int) -> list[int]:
        """Pages worth a line of their own, ascending: gold in scope, those read, then the best candidates.

        Args:
            limit: most pages; gold and later rounds' evidence come first.
        """
        late_first = [page for r in reversed(self.rounds) for page in r.evidence]
        tops = [[c.page for c in r.candidates] for r in self.rounds]
        by_rank = [top[i] for i in range(max(map(len, tops), default=0)) for top in tops if i < len(top)]
        wanted = dict.fromkeys(page for page in (*self.gold, *late_first, *by_rank) if page in self._position)
        return sorted(list(wanted)[:limit])

    def _of_round(self, number: int) -> RoundTrace | None:
        return next((r for r in self.trace.rounds if r.round == number), None) if self.trace else None

    def blend(self, number: int) -> str:
        """What round `number`'s scores are made of, in words; "" without a trace."""
        found = self._of_round(number)
        if found is None:
            return ""
        if found.weight == 0:
            return "similarity to the query alone"
        share = f"{1 - found.weight:.0%} similarity to the query, {found.weight:.0%} belief"
        means = [a / (a + b) for a, b in zip(found.a, found.b, strict=True)]
        by_mean = [(1 - found.weight) * c + found.weight * m for c, m in zip(found.similarity, means, strict=True)]
        if all(abs(x - y) < 1e-9 for x, y in zip(found.score, by_mean, strict=True)):
            return share
        return f"{share} (a draw from it or its upper bound, not its mean: belief.policy)"

    def explored(self, number: int) -> int | None:
        """The page round `number` looked at by a random draw instead of by rank, where the policy does so."""
        found = self._of_round(number)
        return found.explored if found else None


def verdict(record: RoundRecord, page: int) -> Verdict:
    """What the reader said of a page in a round."""
    if page in record.useful:
        return "useful"
    return "irrelevant" if page in record.irrelevant else "none"


def query_change(previous: str, current: str) -> list[tuple[Literal["same", "added", "removed"], str]]:
    """`current` in pieces (words, CJK characters), each as in `previous`, added to it, or removed from it."""
    old, new = _PIECE.findall(previous), _PIECE.findall(current)
    parts: list[tuple[Literal["same", "added", "removed"], str]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(("same", "".join(new[j1:j2])))
            continue
        if i1 < i2:
            parts.append(("removed", "".join(old[i1:i2])))
        if j1 < j2:
            parts.append(("added", "".join(new[j1:j2])))
    return parts


def spend_words(usage: Usage) -> str:
    """Calls, tokens and cost in words; an unknown cost is called unknown."""
    if usage.calls == 0 and usage.input_tokens == usage.output_tokens == 0 and usage.cost_usd == 0:
        return "no model calls"
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:,.4f}"
    calls = f"{usage.calls:,} model call{'' if usage.calls == 1 else 's'}"
    return f"{calls}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {cost}"


def fitting_words(fitting: Fitting) -> str:
    """What was left out of a request so that it fits the model's context, and why."""
    parts = []
    if fitting.crops:
        parts.append(f"{fitting.crops} crop{'' if fitting.crops == 1 else 's'}")
    if fitting.page_side is not None:
        parts.append(f"resolution (pages brought down to {fitting.page_side:,} pixels)")
    if fitting.text_chars:
        parts.append(f"{fitting.text_chars:,} characters of text")
    if fitting.pages:
        parts.append(f"page{'' if len(fitting.pages) == 1 else 's'} {', '.join(map(str, fitting.pages))}")
    if fitting.schema_sections:
        parts.append(f"{fitting.schema_sections} section{'' if fitting.schema_sections == 1 else 's'} of the schema")
    return (
        f"{', '.join(parts)}: all of it takes about {fitting.wanted:,} tokens, there is room for {fitting.limit:,}, "
        f"{fitting.tokens:,} were sent"
    )


def decimal(value: float) -> str:
    """A belief or score between 0 and 1 with two decimals."""
    return f"{value:.2f}"


def clean(text: str) -> str:
    """Text of a document on one line, without characters that steer a terminal or turn the reading direction."""
    flat = " ".join(text.split())
    return "".join(c for c in flat if unicodedata.category(c) not in ("Cc", "Cs") and c not in _DIRECTION)
