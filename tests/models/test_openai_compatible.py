"""The client against a scripted server process: what it asks, retries, refuses to retry, waits for and keeps."""

from __future__ import annotations

import asyncio
import json

import pytest

from docmemo import errors
from docmemo.models.budget import RUN_BUDGET
from docmemo.models.connection import close_connections
from tests.models.asking import Verdict, model, page, say
from tests.servers import ScriptedServer


@pytest.fixture(autouse=True)
async def closing() -> object:
    RUN_BUDGET.reset()
    yield
    await close_connections()


async def test_a_reply_fits_its_schema_and_says_what_it_cost(server: ScriptedServer) -> None:
    reply = await model().ask(say("Which page?", page()), Verdict)
    seen = server.requests()[0]
    assert isinstance(reply.value, Verdict)
    assert reply.usage.calls == 1
    assert reply.usage.input_tokens == seen["text_tokens"] + seen["image_tokens"]
    assert reply.usage.image_tokens == seen["image_tokens"] > 0
    assert reply.usage.cached_tokens == seen["text_tokens"] // 2
    assert reply.usage.cost_usd is None, "a server of one's own has no known price"


async def test_the_request_carries_sampling_schema_and_further_fields(server: ScriptedServer) -> None:
    server.reset(answers="tests.models.rules:echo")
    params = {"temperature": 0.5, "seed": 7, "max_tokens": 99, "extra": {"top_k": 4, "top_p": None}}
    reply = await model(**params).ask(say("Which?"), Verdict)
    sent = json.loads(reply.value.why)
    assert (sent["temperature"], sent["seed"], sent["max_tokens"], sent["top_k"]) == (0.5, 7, 99, 4)
    assert "top_p" not in sent, "null in extra leaves a field out"
    assert sent["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]


@pytest.mark.parametrize("form", ["json_object", "text"])
async def test_without_schema_support_the_prompt_names_the_schema(server: ScriptedServer, form: str) -> None:
    server.reset(answers="tests.models.rules:echo")
    sent = json.loads((await model(structured=form).ask(say("Which?"), Verdict)).value.why)
    assert "additionalProperties" in sent["messages"][-1]["content"][-1]["text"]
    assert sent.get("response_format", {}).get("type") == (None if form == "text" else form)


@pytest.mark.parametrize(
    "fault", ["429", "500", "503", "cut", "close", "engine_dead", "loading", "no_json", "error_200"]
)
async def test_a_fault_that_passes_is_tried_again_and_costs_nothing(server: ScriptedServer, fault: str) -> None:
    server.reset(faults_at={"1": fault, "2": fault})
    reply = await model().ask(say("Which?"), Verdict)
    assert [entry["fault"] for entry in server.requests()] == [fault, fault, None]
    assert reply.usage.calls == 1


async def test_a_lasting_fault_ends_after_the_set_number_of_tries(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_CALL_ATTEMPTS", "3")
    server.reset(faults={"probability": 1, "kinds": ["500"]})
    with pytest.raises(errors.ModelUnavailableError, match="HTTP 500") as caught:
        await model().ask(say("Which?"), Verdict)
    assert len(server.requests()) == 3
    assert caught.value.retryable
    assert not caught.value.stops_run


@pytest.mark.parametrize(
    ("script", "expected", "stops"),
    [
        ({"faults_at": {"1": "400"}}, errors.ModelRequestError, False),
        ({"faults_at": {"1": "422"}}, errors.ModelRequestError, False),
        ({"faults_at": {"1": "403"}}, errors.ModelAccessError, True),
        ({"faults_at": {"1": "quota"}}, errors.ModelAccessError, True),
        ({"faults_at": {"1": "image_500"}}, errors.ImageInputError, False),
        ({"images": False, "dialect": "llamacpp"}, errors.ImageInputError, False),
        ({"max_images": 0}, errors.ImageInputError, False),
        ({"key": "other"}, errors.ModelAccessError, True),
        ({"models": [{"id": "another"}]}, errors.ModelAccessError, True),
        ({"context": 200}, errors.ContextLengthError, False),
        ({"context": 200, "dialect": "llamacpp"}, errors.ContextLengthError, False),
    ],
)
async def test_a_refused_request_is_never_sent_again(
    server: ScriptedServer, script: dict[str, object], expected: type[errors.ModelError], stops: bool
) -> None:
    server.reset(**script)
    with pytest.raises(expected) as caught:
        await model().ask(say("Which?", page()), Verdict)
    assert type(caught.value) is expected
    assert caught.value.stops_run is stops
    assert caught.value.remedy
    assert len(server.requests()) == 1


async def test_a_request_past_the_context_is_told_with_figures_and_what_to_change(server: ScriptedServer) -> None:
    server.reset(context=300)
    with pytest.raises(errors.ContextLengthError) as caught:
        await model(max_tokens=256).ask(say("Which? " * 50), Verdict)
    text = str(caught.value)
    assert "takes 300" in text
    assert "up to 256" in text
    assert "Lower answer.reader_model.context to 300" in text


@pytest.mark.parametrize("fault", ["think", "reasoning", "fence", "around", "control", "malformed", "single_quotes"])
async def test_odd_replies_are_read_without_asking_again(server: ScriptedServer, fault: str) -> None:
    plain = await model(extra={"top_k": 1}).ask(say("Which?"), Verdict)
    server.reset(faults_at={"1": fault})
    odd = await model(extra={"top_k": 2}).ask(say("Which?"), Verdict)
    assert odd.value.why.strip() == plain.value.why
    assert odd.value.pages == plain.value.pages
    assert not odd.repaired
    assert len(server.requests()) == 1


async def test_a_reply_out_of_format_is_shown_its_error_once(server: ScriptedServer) -> None:
    server.reset(replies=['{"pages": "none", "why": 3}', '{"pages": [2], "why": "seen"}'])
    reply = await model().ask(say("Which?"), Verdict)
    assert reply.repaired
    assert reply.value == Verdict(pages=[2], why="seen")
    assert reply.usage.calls == 2
    server.reset(answers="tests.models.rules:broken_until_told")
    told = await model().ask(say("Which now?"), Verdict)
    assert '"pages": "none"' in told.value.why
    assert "pages: Input should be a valid array" in told.value.why


async def test_a_reply_that_stays_out_of_format_fails_with_what_it_cost(server: ScriptedServer) -> None:
    server.reset(replies=["I would rather not."])
    with pytest.raises(errors.ModelResponseError, match="did not keep to the format") as caught:
        await model().ask(say("Which?"), Verdict)
    assert type(caught.value) is errors.ModelResponseError
    assert caught.value.usage.calls == 2
    assert caught.value.usage.input_tokens > 0
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("fault", "expected", "calls"),
    [
        ("length", errors.TruncatedReplyError, 1),
        ("refusal", errors.RefusalError, 1),
        ("content_filter", errors.RefusalError, 1),
        ("empty", errors.ModelResponseError, 2),
    ],
)
async def test_an_unusable_reply_is_a_failure_that_keeps_its_spend(
    server: ScriptedServer, fault: str, expected: type[errors.ModelError], calls: int
) -> None:
    server.reset(faults={"probability": 1, "kinds": [fault]})
    with pytest.raises(expected) as caught:
        await model().ask(say("Which?"), Verdict)
    assert type(caught.value) is expected
    assert caught.value.usage.calls == calls
    assert len(server.requests()) == calls
    server.reset()
    assert not (await model().ask(say("Which?"), Verdict)).from_journal, "an unusable reply is not recorded"


async def test_images_for_a_text_model_are_refused_before_anything_is_sent(server: ScriptedServer) -> None:
    with pytest.raises(errors.ImageInputError, match=r"answer\.reader_model\.images"):
        await model(images=False).ask(say("Which?", page()), Verdict)
    assert server.requests() == []


async def test_a_paid_reply_is_not_paid_for_again_and_has_the_same_usage(server: ScriptedServer) -> None:
    first = await model().ask(say("Which?", page()), Verdict)
    again = await model(role="judge").ask(say("Which?", page()), Verdict)
    assert again.from_journal
    assert (again.value, again.usage, again.text) == (first.value, first.usage, first.text)
    other = await model().ask(say("Which?", page(color="black")), Verdict)
    assert not other.from_journal
    assert len(server.requests()) == 2


async def test_journaled_replies_need_no_server(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    await model().ask(say("Which?"), Verdict)
    monkeypatch.delenv("DOCMEMO_BASE_URL")
    assert (await model().ask(say("Which?"), Verdict)).from_journal
    with pytest.raises(errors.ConfigError, match="DOCMEMO_BASE_URL"):
        await model().ask(say("Which else?"), Verdict)


async def test_equal_requests_at_the_same_time_are_sent_once(server: ScriptedServer) -> None:
    server.reset(delay=0.1)
    reader = model()
    replies = await asyncio.gather(*(reader.ask(say("Which?"), Verdict) for _ in range(5)))
    assert len(server.requests()) == 1
    assert sum(not reply.from_journal for reply in replies) == 1
    assert len({reply.value.why for reply in replies}) == 1


async def test_a_cancelled_asker_leaves_the_request_to_the_others(server: ScriptedServer) -> None:
    server.reset(delay=0.2)
    reader = model()
    first = asyncio.create_task(reader.ask(say("Which?"), Verdict))
    second = asyncio.create_task(reader.ask(say("Which?"), Verdict))
    await asyncio.sleep(0.05)
    first.cancel()
    assert isinstance((await second).value, Verdict)
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_identity_names_model_and_sampling_and_no_address_or_key(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_API_KEY", "sk-very-secret")
    entry = {"provider": "openai_compatible", "id": "scripted", "served": {"id": "scripted"}}
    identity = model(entry=entry, temperature=0.25).identity
    assert identity["entry"] == entry
    assert identity["sampling"]["temperature"] == 0.25
    text = json.dumps(identity)
    assert "127.0.0.1" not in text
    assert "sk-very" not in text
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("DOCMEMO_CONCURRENCY", "3")
    assert model(entry=entry, temperature=0.25).identity == identity
    assert model(entry=entry, temperature=0.25, extra={"top_k": 1}).identity != identity


async def test_no_error_prints_a_key_or_an_address(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_API_KEY", "sk-very-secret")
    monkeypatch.setenv("DOCMEMO_SERVER_PATIENCE", "0.05")
    server.reset(key="another")
    with pytest.raises(errors.ModelAccessError) as refused:
        await model().ask(say("Which?"), Verdict)
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(errors.ServerDownError) as down:
        await model().ask(say("Which?"), Verdict)
    for caught in (refused, down):
        shown = f"{caught.value} {caught.value!r} {caught.getrepr(style='short')}"
        assert "sk-very" not in str(caught.value)
        assert "127.0.0.1" not in str(caught.value)
        assert "sk-very" not in shown


@pytest.mark.parametrize(
    ("params", "message"),
    [({"id": ""}, "has no model"), ({"context": 1024, "max_tokens": 1020}, "leaves no room")],
)
def test_a_model_that_cannot_be_asked_is_refused_at_once(params: dict[str, object], message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        model(**params)
