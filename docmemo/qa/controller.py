"""Retrieval control: which pages each round looks at, by similarity and belief (docs/design.md, section 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from docmemo.config import BeliefParams
from docmemo.memory import belief as beliefs
from docmemo.memory.belief import Belief, Floats
from docmemo.qa.trace import RoundTrace
from docmemo.retrieval.candidates import top_k
from docmemo.types import Section


class Controller:
    """The belief of one question, and the numbers of its rounds.

    Args:
        pages: pages in scope, ascending.
        params: prior, propagation, schedule, policy and what is read again.
        seed: run seed; with the question id and the round it fixes every draw.
        question_id: names the question.
        documents: which document each page is of, where there are several.
        sections: schema sections of the document, for `params.section_gain`.
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
        sections: Sequence[Section] = (),
        slots: int = 5,
        learn: bool = True,
    ) -> None:
        self.pages = list(pages)
        self.documents = documents
        self.learn = learn
        self.params = params
        self.seed = seed
        self.question_id = question_id
        self.slots = slots
        self.belief: Belief | None = None
        self.rounds: list[RoundTrace] = []
        self.read: set[int] = set()
        self._position = {page: i for i, page in enumerate(self.pages)}
        self._sections: list[int] | None = None
        if params.section_gain > 0.0:
            self._sections = beliefs.section_numbers(self.pages, sections, params.section_pages)

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
        score = beliefs.mix(similarity, draw, weight)
        explored = None
        if self.params.policy == "explore_one" and weight > 0.0:
            drawn, score = score, beliefs.mix(similarity, self.belief.mean, weight)
            explored = self._explored(drawn, score)
        record = RoundTrace(
            round=number,
            query=query,
            weight=weight,
            similarity=similarity.tolist(),
            a=self.belief.a.tolist(),
            b=self.belief.b.tolist(),
            draw=draw.tolist(),
            score=score.tolist(),
            explored=explored,
        )
        self.rounds.append(record)
        return record

    def _draw(self, belief: Belief, number: int) -> Floats:
        """th_i of the round."""
        if self.params.policy in ("thompson", "explore_one"):
            return beliefs.thompson(belief, beliefs.generator(self.seed, self.question_id, number))
        if self.params.policy == "ucb":
            return beliefs.upper(belief, self.params.confidence)
        return belief.mean

    def _explored(self, drawn: Floats, score: Floats) -> int | None:
        """The page with the best drawn score that the other slots would not read."""
        safe = set(self._in_order(top_k(score, self.pages, len(self.pages)))[: max(0, self.slots - 1)])
        rest = [page for page in self._in_order(top_k(drawn, self.pages, len(self.pages))) if page not in safe]
        return rest[0] if rest and self.slots > 1 else None

    def _in_order(self, pages: Sequence[int]) -> list[int]:
        """The pages in their order, those read already last where they are not to be read again."""
        if self.params.reading == "by_belief" or not self.read:
            return list(pages)
        return [p for p in pages if p not in self.read] + [p for p in pages if p in self.read]

    def _with_explored(self, pages: Sequence[int]) -> list[int]:
        """The pages with the explored one, if it is among them, in the round's last slot at the latest."""
        page, last = self.rounds[-1].explored, self.slots - 1
        if page is None or page not in pages[self.slots :]:
            return list(pages)
        others = [p for p in pages if p != page]
        return [*others[:last], page, *others[last:]]

    def candidates(self, limit: int) -> list[int]:
        """C(t): the `limit` best pages by this round's score."""
        ranked = top_k(np.asarray(self.rounds[-1].score), self.pages, len(self.pages))
        return self._with_explored(self._in_order(ranked))[:limit]

    def ranked(self, accumulated: Collection[int]) -> list[int]:
        """The accumulated pages in the order they are read; E(t) is the first n of them.

        By posterior mean (ties: current score, then page), with policy "none" by current similarity; as
        `params.reading` says, pages not read yet first, and those by score.
        """
        assert self.belief is not None, "start_round comes first"
        current = self.rounds[-1]
        first = np.asarray(current.similarity) if self.params.policy == "none" else self.belief.mean
        if self.params.reading == "unread_by_score":
            first = np.asarray(current.score)
        where = self._position
        order = sorted(accumulated, key=lambda p: (-float(first[where[p]]), -current.score[where[p]], p))
        return self._with_explored(self._in_order(order))

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
            sections=self._sections,
            section_gain=self.params.section_gain,
        )
