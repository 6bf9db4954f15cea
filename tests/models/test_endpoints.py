"""Where roles are served: addresses, keys, and what identifies a model."""

from __future__ import annotations

import pytest

from docmemo.config import parse_params
from docmemo.errors import ConfigError, ModelLockError
from docmemo.models.endpoints import endpoint_of, identifying, pick_model, served_model
from docmemo.models.lock import resolve_role
from tests.servers import ScriptedServer


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCMEMO_BASE_URL", "DOCMEMO_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def key_of(role: str) -> str:
    return endpoint_of(role).api_key.get_secret_value()


def test_a_roles_own_address_and_key_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:8000/v1/")
    monkeypatch.setenv("DOCMEMO_API_KEY", "shared")
    monkeypatch.setenv("DOCMEMO_JUDGE_BASE_URL", "https://judge.example/v1")
    monkeypatch.setenv("DOCMEMO_JUDGE_API_KEY", "own")
    assert endpoint_of("reasoner").base_url == "http://127.0.0.1:8000/v1"
    assert key_of("reasoner") == "shared"
    assert endpoint_of("judge").base_url == "https://judge.example/v1"
    assert key_of("judge") == "own"


def test_a_key_goes_only_to_the_server_it_was_given_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("DOCMEMO_API_KEY", "shared")
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    monkeypatch.setenv("DOCMEMO_JUDGE_BASE_URL", "https://elsewhere.example/v1")
    monkeypatch.setenv("DOCMEMO_SCHEMA_BASE_URL", "http://127.0.0.1:8000/other")
    monkeypatch.setenv("DOCMEMO_RERANKER_BASE_URL", "https://api.openai.com/v1")
    assert key_of("judge") == ""
    assert key_of("schema") == "shared"
    assert key_of("reranker") == "openai"
    monkeypatch.delenv("DOCMEMO_API_KEY")
    assert key_of("reasoner") == "", "OPENAI_API_KEY is for api.openai.com"


def test_a_key_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("DOCMEMO_API_KEY", "hidden-key")
    assert "hidden-key" not in repr(endpoint_of("reasoner"))


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://"])
def test_an_address_that_is_none_is_refused_with_its_variable(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DOCMEMO_JUDGE_BASE_URL", url)
    with pytest.raises(ConfigError, match="DOCMEMO_JUDGE_BASE_URL"):
        endpoint_of("judge")


def test_what_changes_between_restarts_identifies_nothing() -> None:
    entry = {"id": "m", "object": "model", "root": "org/m", "max_model_len": 8192, "owned_by": "vllm", "parent": None}
    first = identifying({**entry, "created": 1, "permission": [{"id": "a"}]})
    assert first == identifying({**entry, "created": 2, "permission": [{"id": "b"}]})
    assert first == {"id": "m", "root": "org/m", "owned_by": "vllm", "max_model_len": 8192}


def test_llama_cpp_has_one_model_under_any_name_and_no_path() -> None:
    listed = [{"id": "/models/here/m.gguf", "owned_by": "llamacpp", "meta": {"n_params": 5}}]
    assert pick_model(listed, "whatever") == {"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_params": 5}}
    assert pick_model([{"id": "a", "owned_by": "vllm"}], "whatever") is None


def test_a_server_says_what_identifies_its_model(server: ScriptedServer) -> None:
    fields = served_model(endpoint_of("reasoner"), "scripted")
    assert fields == {"id": "scripted", "root": "scripted/one", "max_model_len": 32768, "owned_by": "vllm"}
    assert fields == served_model(endpoint_of("reasoner"), "scripted")


def test_a_model_that_is_not_served_or_a_wrong_key_says_what_to_do(server: ScriptedServer) -> None:
    with pytest.raises(ModelLockError, match=r"no model 'other'.*It has: scripted"):
        served_model(endpoint_of("reasoner"), "other")
    server.reset(key="another")
    with pytest.raises(ModelLockError, match=r"HTTP 401.*Check the key"):
        served_model(endpoint_of("reasoner"), "scripted")


def test_a_server_that_is_not_there_is_named_by_its_setting(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(ModelLockError, match=r"reasoner cannot be reached.*DOCMEMO_BASE_URL"):
        served_model(endpoint_of("reasoner"), "scripted")


def test_the_lock_of_a_served_role_holds_what_its_server_says(server: ScriptedServer) -> None:
    params = parse_params({"answer": {"reader": "vlm", "reader_model": {"id": "scripted"}}})
    entry = resolve_role(params, "reasoner", ask=True)
    assert entry == {
        "provider": "openai_compatible",
        "id": "scripted",
        "served": {"id": "scripted", "root": "scripted/one", "max_model_len": 32768, "owned_by": "vllm"},
    }
    assert "served" not in resolve_role(params, "reasoner")
