"""Everything needed to judge answers with one configuration, and the key of each judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from docmemo.config import JudgeParams
from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.scorers import Scorer
from docmemo.fingerprint import code_digest, digest
from docmemo.settings import Settings
from docmemo.types import AnswerRecord, Judgement, Question

if TYPE_CHECKING:
    from docmemo.evaluation.llm_judge import LlmJudge

RULE_MODULES = ("docmemo.evaluation.judge", "docmemo.evaluation.scorers")
LLM_MODULES = (*RULE_MODULES, "docmemo.evaluation.llm_judge", "docmemo.models.rendering", "docmemo.prompts")


@dataclass(frozen=True)
class Judging:
    """One way to judge.

    Args:
        params: the section `judge`.
        entry: the lock entry of the role "judge".
        scorer: the benchmark's rule, whose score stands beside every verdict.
        settings: where the judge's model is; decides no judgement.
    """

    params: JudgeParams
    entry: Mapping[str, Any]
    scorer: Scorer
    settings: Settings

    @cached_property
    def _model(self) -> LlmJudge | None:
        """The model that judges; None for the rule alone."""
        if self.params.backend != "llm":
            return None
        from docmemo.evaluation.llm_judge import LlmJudge, judge_name
        from docmemo.models.openai_compatible import open_model
        from docmemo.prompts import load_prompt

        model = open_model("judge", self.params.model, entry=self.entry, settings=self.settings)
        return LlmJudge(model, load_prompt("judge"), judge_name(self.entry))

    def key(self, question: Question, answer: AnswerRecord) -> str:
        """What a judgement is filed under: gold, the answer as scored, the rule and the judge.

        Left out on purpose: rounds and citations, which no judge sees; and for the rule alone the parameters and
        prompt of a model that is not asked.
        """
        return digest(
            {
                "question": question.question,
                "gold": question.answer,
                "references": question.references,
                "answer_format": question.answer_format,
                "question_id": question.question_id,
                "answer": answer.model_dump(mode="json", include={"outcome", "answer", "error"}),
                "scorer": self.scorer.id,
                "judge": dict(self.entry),
                **self._how,
                **({"answerable": question.answerable} if self._model is not None else {}),
            }
        )

    @cached_property
    def _how(self) -> dict[str, Any]:
        if self._model is None:
            return {"code": code_digest(RULE_MODULES)}
        return {
            "code": code_digest(LLM_MODULES),
            "model": self.params.model.model_dump(mode="json"),
            "prompt": self._model.prompt.digest,
        }

    async def judge(self, question: Question, answer: AnswerRecord) -> Judgement:
        """Score one answer.

        Raises:
            ModelError: if the judge gave no verdict and asking again may help, or the run should stop.
        """
        if self._model is None:
            return judge_by_rule(question, answer, self.scorer)
        return await self._model.judge(question, answer, self.scorer)

    async def close(self) -> None:
        """Let go of the running event loop's connections to the judge's server."""
        if self._model is not None:
            from docmemo.models.connection import close_connections

            await close_connections()
