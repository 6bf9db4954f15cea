"""What an answer is filed under, and which parts get what."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from docmemo.config import AnswerParams, ModelParams, Params
from docmemo.errors import ConfigError
from docmemo.models.budget import current_question_budget
from docmemo.prompts import find_prompt
from docmemo.qa.answering import Answering
from docmemo.qa.corpus import Corpus
from docmemo.qa.parts import limited, make_reader, make_reranker
from docmemo.types import Document, Question

QUESTION = Question(question_id="q1", doc_id="d", question="What?")
ENTRY = {"provider": "openai_compatible", "id": "one"}


def params(reader: str = "vlm", reranker: str = "vlm", **model: Any) -> Params:
    chosen = ModelParams(id="one", **model)
    answer = AnswerParams(reader=reader, reranker=reranker, reader_model=chosen, reranker_model=chosen)
    return Params(answer=answer)


def key(chosen: Params, entry: dict[str, Any] | None = None) -> str:
    models = {"reasoner": entry or ENTRY, "reranker": ENTRY, "embedder": {"id": "lexical"}}
    documents = {"d": Document(doc_id="d", path="d", sha256="1")}
    return Answering(chosen, models, documents, {}, {}, Corpus(lambda _: SimpleNamespace())).key(QUESTION)


@pytest.fixture
def own_prompts(tmp_path, monkeypatch):
    """A project with prompts of its own, and a way to change one."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "params.yaml").write_text("")
    for name in ("reason", "rerank"):
        (tmp_path / "prompts" / f"{name}.md").write_bytes(find_prompt(name).read_bytes())
    monkeypatch.chdir(tmp_path)

    def change(name: str) -> None:
        path = tmp_path / "prompts" / f"{name}.md"
        path.write_text(path.read_text() + "\nThink twice.\n")

    return change


def test_a_changed_word_of_a_prompt_asks_again_where_the_prompt_is_sent(own_prompts):
    for chosen, name, changes in (
        (params(), "reason", True),
        (params(), "rerank", True),
        (params(reranker="embedded"), "reason", True),
        (params(reranker="embedded"), "rerank", False),
        (params("embedded", "embedded"), "reason", False),
    ):
        before = key(chosen)
        own_prompts(name)
        assert (key(chosen) != before) == changes, (chosen.answer.reader, chosen.answer.reranker, name)


def test_another_model_behind_the_same_name_asks_again():
    assert key(params()) != key(params(), {**ENTRY, "served": {"root": "other"}})
    assert key(params()) != key(params(temperature=0.5))


def test_opening_a_configuration_needs_no_server():
    reader, reranker = make_reader(params(), {"reasoner": ENTRY}), make_reranker(params(), {})
    assert reader._role.entry == ENTRY
    assert (reader._role.role, reranker._role.role) == ("reasoner", "reranker")
    with pytest.raises(ConfigError, match="has no model"):
        _ = make_reader(Params(answer=AnswerParams(reader="vlm")), {})._model


def test_other_parts_are_given_the_parameters_alone():
    assert type(make_reader(Params(), {})).__name__ == "EmbeddedReader"
    assert type(make_reranker(Params(), {})).__name__ == "EmbeddedReranker"


def test_a_question_has_a_budget_only_where_one_is_set():
    assert isinstance(limited(AnswerParams()), nullcontext)
    with limited(AnswerParams(question_calls=3, question_usd=0.5)) as budget:
        assert current_question_budget() is budget
        assert (budget.calls, budget.tokens, budget.usd) == (3, None, 0.5)
    assert current_question_budget() is None
