"""A language model as judge: its reason first, then yes or no, beside the score of the benchmark's rule.

The judge sees the question, the reference answers and the answer, and nothing else: no page, no citation, no round.
Its verdict is binary, as in the paper. What is decided without asking it, since there is nothing to weigh:

- A failed question is never judged; it stays unscored here, and accuracy counts it as 0.
- A question without gold answer is never judged.
- The gold says that there is no answer, and so did the system (outcome not_answerable): correct.
- The gold is an answer, and the system said that there is none: not correct.

The gold says that there is no answer and the system answered something: the judge decides, since the answer may say
in its own words that the document does not tell.

A judge that fails, refuses or keeps to no format leaves the question unscored by the judge, with the rule's score and
the reason kept: never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from docmemo.errors import ModelError, ModelRequestError
from docmemo.evaluation.judge import judge_by_rule, prediction_of
from docmemo.evaluation.scorers import Scorer
from docmemo.models.asking import Watch
from docmemo.models.chat import ChatModel
from docmemo.models.rendering import messages_of
from docmemo.prompts import Prompt
from docmemo.types import NOT_ANSWERABLE, AnswerRecord, Failure, Judgement, Question, Verdict

BOTH_NONE = "Gold and answer both say that the question cannot be answered; decided by rule, without the model."
ONLY_GOLD = "The gold is an answer and the system said that there is none; decided by rule, without the model."


class JudgeReply(BaseModel):
    """The verdict as the model gives it; the order of the fields makes it reason first."""

    reason: str = Field(description="What the reference says, what the answer says, and whether they agree.")
    correct: bool


def judge_name(entry: Mapping[str, Any]) -> str:
    """How a judge is called in verdicts: the model's id, with its revision where the lock has one."""
    revision = str(entry.get("revision", ""))
    return f"{entry['id']}@{revision}" if revision else str(entry["id"])


def gold_is_none(question: Question) -> bool:
    """Whether the gold says that the question has no answer."""
    if question.answerable is not None:
        return not question.answerable
    return (question.answer or "").strip().casefold() == NOT_ANSWERABLE.casefold()


@dataclass(frozen=True)
class LlmJudge:
    """Judges answers by a model."""

    model: ChatModel
    prompt: Prompt
    name: str
    """Stands in each verdict."""
    watch: Watch = field(default_factory=Watch)

    async def judge(self, question: Question, answer: AnswerRecord, scorer: Scorer) -> Judgement:
        """Score an answer by the rule, and by the model.

        Raises:
            ModelError: if asking again may give a verdict, or the run should stop.
            ValueError: if the two records are not about the same question.
        """
        judgement = judge_by_rule(question, answer, scorer)
        if answer.outcome == "failed" or question.answer is None:
            return judgement
        if answer.outcome == "not_answerable":
            correct = gold_is_none(question)
            verdict = self._verdict(correct, BOTH_NONE if correct else ONLY_GOLD)
            return judgement.model_copy(update={"verdict": verdict})
        rendered = self.prompt.render(
            question=question.question,
            reference_answers=[question.answer, *question.references],
            answer=prediction_of(answer),
        )
        label = f"judging {question.question_id}"
        reply = await self.watch.ask(lambda: self.model.ask(messages_of(rendered), JudgeReply, label=label))
        if isinstance(reply, ModelError):
            if reply.retryable or (isinstance(reply, ModelRequestError) and self.watch.taken == 0):
                raise reply
            return unjudged(judgement, reply)
        verdict = self._verdict(reply.value.correct, " ".join(reply.value.reason.split()))
        return judgement.model_copy(update={"verdict": verdict, "usage": reply.usage})

    def _verdict(self, correct: bool, reason: str) -> Verdict:
        return Verdict(judge=self.name, prompt=self.prompt.digest, correct=correct, reason=reason)


def unjudged(judgement: Judgement, error: ModelError) -> Judgement:
    """A judgement whose judge failed for good: the rule's score, and why there is no verdict."""
    failure = Failure(kind=type(error).__name__, message=str(error), retryable=error.retryable)
    why = f"no verdict: {failure.kind}: {failure.message}"
    return judgement.model_copy(update={"unscored": why, "error": failure, "usage": error.usage})
