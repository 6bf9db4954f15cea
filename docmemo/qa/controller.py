"""Retrieval control: which pages each round looks at, by similarity and belief (docs/design.md, section 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from docmemo.config import BeliefParams
from docmemo.memory import belief as beliefs
from docmemo.memory.belief import Belief, Floats
from docmemo.qa.trace import RoundTrace


class Controller:
    """The belief of one question, and the numbers of its rounds.

    Args:
        pages: pages in scope, ascending.
        params: prior, propagation, schedule, policy and what is read again.
        seed: run seed; with the question id and the round it fixes every draw.
        question_id: names the question.
        documents: which document each page is of, where there are several.
        sections: number of each page's schema section, for `params.section_gain` (`belief.section_numbers`).
        slots: pages read a round; policy explore_one gives the last of them to a draw.
        learn: whether feedback changes the belief.
    """

    def __init__(
        self,
        pages: Sequence[int],
        params: BeliefParams,
        seed: int,
        question_id: str,
        *,
        documents: Sequence[int] | None = None,
        sections: Sequence[int] | None = None,
        slots: int = 5,
        learn: bool = True,
    ) -> None:
        self.pages = list(pages)
        self.documents = documents
        self.sections = sections
        self.learn = learn
        self.params = params
        self.seed = seed
        self.question_id = question_id
        self.slots = slots
        self.belief: Belief | None = None
        self.rounds: list[RoundTrace] = []
        self.read: set[int] = set()
        self._position = {page: i for i, page in enumerate(self.pages)}

    def start_round(self, query: str, similarity: Floats) -> RoundTrace:
        """Score every page for a new round.

        Args:
            query: this round's query.
            similarity: c_i in [0, 1], shape (n_pages,).
        """
        number = len(self.rounds) + 1
        if self.belief is None:
            self.belief = beliefs.prior(similarity, self.params.prior_strength)
        weight = 0.0
        draw = similarity
        if self.params.policy != "none":
            weight = self.params.schedule[min(number, len(self.params.schedule)) - 1]
            draw = self._draw(self.belief, number)
        explores = self.params.policy == "explore_one"
        score = beliefs.mix(similarity, self.belief.mean if explores else draw, weight)
        record = RoundTrace(
            round=number,
            query=query,
            weight=weight,
            similarity=similarity.tolist(),
            a=self.belief.a.tolist(),
            b=self.belief.b.tolist(),
            draw=draw.tolist(),
            score=score.tolist(),
        )
        self.rounds.append(record)
        if explores and weight > 0.0:
            record.explored = self._explored(beliefs.mix(similarity, draw, weight))
        return record

    def _draw(self, belief: Belief, number: int) -> Floats:
        """th_i of the round."""
        if self.params.policy in ("thompson", "explore_one"):
            return beliefs.thompson(belief, beliefs.generator(self.seed, self.question_id, number))
        if self.params.policy == "ucb":
            return beliefs.upper(belief, self.params.confidence)
        return belief.mean

    def _explored(self, drawn: Floats) -> int | None:
        """The page with the best drawn score that the other slots would not read."""
        if self.slots < 2:
            return None
        safe = self._in_order(self.rounds[-1].score, self.pages)[: self.slots - 1]
        rest = [page for page in self._in_order(drawn.tolist(), self.pages, query_slots=0) if page not in safe]
        return rest[0] if rest else None

    def _in_order(self, first: Sequence[float], pages: Sequence[int], query_slots: int | None = None) -> list[int]:
        """The pages by `first` (ties: current score, then page), after those the query alone chooses.

        Pages read already come last where they are not to be read again.
        """
        current, number = self.rounds[-1], np.asarray(pages, dtype=np.int64)
        rows = np.asarray([self._position[page] for page in pages], dtype=np.int64)
        again = np.zeros(len(rows), dtype=bool)
        if self.params.reading == "unread_first":
            again = np.isin(number, np.asarray(sorted(self.read), dtype=np.int64))
        best, score = np.asarray(first)[rows], np.asarray(current.score)[rows]
        order = number[np.lexsort((number, -score, -best, again))].tolist()
        slots = self.params.query_slots if query_slots is None else query_slots
        if slots == 0 or current.weight == 0.0:
            return [int(page) for page in order]
        similarity = np.asarray(current.similarity)[rows]
        by_query = number[np.lexsort((number, -similarity, again))[:slots]].tolist()
        return [*by_query, *(page for page in order if page not in by_query)]

    def _with_explored(self, pages: Sequence[int]) -> list[int]:
        """The pages with the explored one, if it is among them, in the round's last slot at the latest."""
        page, last = self.rounds[-1].explored, self.slots - 1
        if page is None or page not in pages[self.slots :]:
            return list(pages)
        others = [p for p in pages if p != page]
        return [*others[:last], page, *others[last:]]

    def candidates(self, limit: int) -> list[int]:
        """C(t): the `limit` best pages by this round's score."""
        return self._with_explored(self._in_order(self.rounds[-1].score, self.pages))[:limit]

    def ranked(self, accumulated: Sequence[int]) -> list[int]:
        """The accumulated pages in the order they are read; E(t) is the first n of them.

        By posterior mean (ties: current score, then page), with policy "none" by current similarity; before that,
        as `params` says, the best by this round's query alone, and pages not read yet.
        """
        assert self.belief is not None, "start_round comes first"
        first = self.rounds[-1].similarity if self.params.policy == "none" else self.belief.mean.tolist()
        return self._with_explored(self._in_order(first, accumulated))

    def best_first(self, pages: Sequence[int]) -> list[int]:
        """Pages by posterior mean (with policy "none" by current similarity); ties: current score, then page."""
        assert self.belief is not None, "start_round comes first"
        current = self.rounds[-1]
        first = current.similarity if self.params.policy == "none" else self.belief.mean.tolist()

        def order(page: int) -> tuple[float, float, int]:
            row = self._position[page]
            return -first[row], -current.score[row], page

        return sorted(pages, key=order)

    def feedback(self, useful: Sequence[int], irrelevant: Sequence[int], read: Sequence[int] = ()) -> None:
        """End the round with the pages read and the reader's verdict on them."""
        assert self.belief is not None, "start_round comes first"
        self.rounds[-1].read = list(read)
        self.rounds[-1].useful = list(useful)
        self.rounds[-1].irrelevant = list(irrelevant)
        self.read.update(read)
        if not self.learn:
            return
        self.belief = beliefs.update(
            self.belief,
            self.pages,
            useful,
            irrelevant,
            radius=self.params.radius,
            decay=self.params.decay,
            documents=self.documents,
            sections=self.sections,
            section_gain=self.params.section_gain,
        )
