"""Retrieval control: which pages each round looks at, by similarity and belief (docs/design.md, section 2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from docmemo.config import BeliefParams
from docmemo.memory import belief as beliefs
from docmemo.memory.belief import Belief, Floats
from docmemo.qa.trace import RoundTrace


class Controller:
    """The belief of one question, and the numbers of its rounds.

    Args:
        pages: pages in scope, ascending.
        params: prior, propagation, schedule and policy.
        seed: run seed; with the question id and the round it fixes every draw.
        question_id: names the question.
        documents: which document each page is of, where there are several.
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
        learn: bool = True,
    ) -> None:
        self.pages = list(pages)
        self.documents = documents
        self.learn = learn
        self.params = params
        self.seed = seed
        self.question_id = question_id
        self.belief: Belief | None = None
        self.rounds: list[RoundTrace] = []
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
            draw = self.belief.mean
            if self.params.policy == "thompson":
                draw = beliefs.thompson(self.belief, beliefs.generator(self.seed, self.question_id, number))
        record = RoundTrace(
            round=number,
            query=query,
            weight=weight,
            similarity=similarity.tolist(),
            a=self.belief.a.tolist(),
            b=self.belief.b.tolist(),
            draw=draw.tolist(),
            score=beliefs.mix(similarity, draw, weight).tolist(),
        )
        self.rounds.append(record)
        return record

    def ranked(self, accumulated: Collection[int]) -> list[int]:
        """The accumulated pages by posterior mean (ties: current score, then page); E(t) is the first n of them.

        With policy "none" by current similarity.
        """
        assert self.belief is not None, "start_round comes first"
        current = self.rounds[-1]
        first = np.asarray(current.similarity) if self.params.policy == "none" else self.belief.mean
        where = self._position
        return sorted(accumulated, key=lambda p: (-float(first[where[p]]), -current.score[where[p]], p))

    def feedback(self, useful: Sequence[int], irrelevant: Sequence[int]) -> None:
        """End the round with the reader's verdict on pages."""
        assert self.belief is not None, "start_round comes first"
        self.rounds[-1].useful = list(useful)
        self.rounds[-1].irrelevant = list(irrelevant)
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
        )
