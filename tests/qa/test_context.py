"""Requests never outgrow the model's context, as a server sees it that counts tokens in a way of its own."""

from __future__ import annotations

import random

import pytest

from docmemo.config import AnswerParams, LoopParams, ModelParams, Params
from docmemo.errors import ContextLengthError
from docmemo.qa.loop import Loop, Policy
from docmemo.qa.reasoner import VlmReader
from docmemo.qa.rerank import VlmReranker
from docmemo.types import Question
from tests.qa.archives import make_document
from tests.servers.fixtures import StartServer

WORDS = ("the", "water", "board", "sold", "more", "litres", "in", "every", "year,", "and", "paid", "4,120", "for")


def prose(seed: int, words: int) -> str:
    """Text of a page, in lines."""
    draw = random.Random(seed)
    return "\n".join(" ".join(draw.choices(WORDS, k=12)) for _ in range(words // 12))


def loop_of(context: int, **loop) -> tuple[Loop, Params]:
    """Reader and reranker behind the server, with a context of so many tokens."""
    model = ModelParams(id="scripted", context=context, max_tokens=1024, image_tokens="qwen2_5_vl")
    params = Params(
        answer=AnswerParams(reader="vlm", reranker="vlm", reader_model=model, reranker_model=model),
        loop=LoopParams(evidence=10, reranked=10, **loop),
    )
    return Loop(VlmReranker(params), VlmReader(params), Policy(params.loop, params.belief)), params


async def ask(loop: Loop, view, number: int = 0):
    question = Question(question_id=f"q{number}", doc_id=view.doc_id, question=f"What was paid in year {number}?")
    return (await loop.answer(question, view))[0]


async def test_a_document_of_60_pages_never_overflows_a_context_of_32k(tmp_path, scripted_server: StartServer):
    server = scripted_server(answers="tests.qa.scripted_answers:answer", context=32768)
    texts = [prose(page, 300 + 40 * (page % 30)) for page in range(60)]
    view = make_document(tmp_path, texts, size=(1236, 1600), tables=range(1, 61), crop_size=(900, 600), sections=200)
    loop, _ = loop_of(32768, keep_useful=2)
    records = [await ask(loop, view, number) for number in range(4)]
    requests = server.requests()
    assert {entry["status"] for entry in requests} == {200}
    assert max(e["text_tokens"] + e["image_tokens"] for e in requests) + 1024 <= 32768
    assert max(e["text_tokens"] + e["image_tokens"] for e in requests) > 20_000, "the context is used, not avoided"
    assert max(e["image_tokens"] for e in requests) > 8_000
    rounds = [r for record in records for r in record.rounds]
    assert len(rounds) > len(records)
    for r in rounds:
        assert r.fitting is not None
        assert r.fitting.tokens <= r.fitting.limit < r.fitting.wanted
        assert r.fitting.crops > 0, "crops go first"
        assert len(r.crops) <= 5 - r.fitting.crops
        assert not set(r.evidence) & set(r.fitting.pages)
        assert len(r.evidence) + len(r.fitting.pages) >= 10
    assert view.images.encoded <= len({page for r in rounds for page in r.evidence}), (
        "each page once, not once a question"
    )


@pytest.mark.parametrize(
    ("name", "text", "size"),
    [
        ("dense text", "\n".join("§±(;:)!" * 12 for _ in range(400)), (1236, 1600)),
        ("another script", "\n".join("水务局每年售出更多的水并为水泵支付费用" * 4 for _ in range(120)), (1236, 1600)),
        ("huge pictures", "one line", (2800, 2800)),
        ("tapes", "one line", (2800, 20)),
        ("nothing at all", "", (8, 8)),
    ],
)
async def test_odd_documents_fit_as_well(tmp_path, scripted_server: StartServer, name, text, size):
    server = scripted_server(answers="tests.qa.scripted_answers:answer", context=16384)
    view = make_document(tmp_path, [text] * 6, size=size, tables=[1, 2])
    loop, _ = loop_of(16384)
    record = await ask(loop, view)
    assert record.rounds[0].evidence, name
    assert {entry["status"] for entry in server.requests()} == {200}, name


async def test_a_context_too_small_for_one_page_is_an_error_before_anything_is_sent(
    tmp_path, scripted_server: StartServer
):
    server = scripted_server(answers="tests.qa.scripted_answers:answer", context=2048)
    view = make_document(tmp_path, [prose(1, 900)] * 3, size=(1236, 1600))
    loop, _ = loop_of(2048)
    with pytest.raises(ContextLengthError, match=r"tokens at the least .* has room for \d+. Nothing was sent"):
        await ask(loop, view)
    assert {entry["status"] for entry in server.requests()} <= {200}
