"""What the scripted server says as reranker and reasoner: decided by the request alone, as a model at temperature 0.

Any difference in what is shown (pages, text, notes) gives another answer, so equal answers show equal requests. How
many rounds a question takes is a digest of the question.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from tests.servers.counting import text_of

ROUNDS = 3


def share(*parts: object) -> float:
    """A number in [0, 1] that the parts decide."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 255


def answer(body: dict[str, Any]) -> Any:
    """The reply to a request of the reader, the reranker, or a probe."""
    name = body["response_format"]["json_schema"]["name"]
    system = text_of({"messages": body["messages"][:-1]})
    user = text_of({"messages": body["messages"][-1:]})
    if name == "ChosenPages":
        return choose(user, int(re.findall(r"at most (\d+)", system)[0]))
    if name in ("RoundReply", "LastReply"):
        return reason(user, last=name == "LastReply")
    return {"word": "red"}


def choose(user: str, keep: int) -> dict[str, Any]:
    """Some of the candidates; in one reply of ten also a page that is none."""
    candidates = [int(page) for page in re.findall(r'<candidate index="(\d+)"', user)]
    ordered = sorted(candidates, key=lambda page: (share(user, page), page))
    return {"reason": "these", "pages": [*([9999] if share(user) > 0.9 else []), *ordered[:keep]]}


def reason(user: str, last: bool) -> dict[str, Any]:
    """An answer in the round that the question's digest names, or in the last one."""
    question = re.findall(r"<question>\n(.*?)\n</question>", user, re.DOTALL)[0]
    number = int(re.findall(r"This is round (\d+)", user)[0])
    shown = [int(page) for page in re.findall(r'<page index="(\d+)"', user)]
    reply = {
        "reasoning": "step by step",
        "useful_pages": shown[:1],
        "irrelevant_pages": shown[1:][-1:],
        "findings": f"page {shown[0]} was read in round {number}",
        "missing": "" if last else "the rest",
    }
    if number < 1 + int(share("rounds", question) * (ROUNDS - 0.01)) and not last:
        return {**reply, "decision": "query_update", "query": f"{question} line {number * 7}"}
    if share("none", question) > 0.85:
        return {**reply, "decision": "not_answerable", "reason": "The pages do not say."}
    digest = hashlib.sha256(user.encode()).hexdigest()
    return {
        **reply,
        "decision": "answer",
        "answer": f"It is {digest[:12]}.",
        "short_answer": [digest[:12]],
        "answer_format": "Str",
        "confidence": round(share(question, "sure"), 2),
        "citations": [{"page": shown[0], "quote": "units in section"}],
    }
