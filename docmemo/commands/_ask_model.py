"""The options of `docmemo ask` that name a model, as parameters and settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmemo.config import Params
    from docmemo.models.endpoints import Endpoint
    from docmemo.settings import Settings

ROLES = ("REASONER", "RERANKER")


def with_model(
    params: Params,
    settings: Settings,
    base_url: str,
    model: str,
    api_key_env: str,
    images: bool,
    context: int | None,
) -> tuple[Params, Settings]:
    """Parameters and settings with which a model reranks and reads.

    The server is asked which models it has: so a wrong address, key or name is an error before any work.

    Args:
        params: of the project, or the defaults.
        settings: from the environment.
        base_url: address of the server; '' for the one the settings name.
        model: its name there; '' for the only one.
        api_key_env: environment variable with the key; '' for the one of the settings, if it is for this server.
        images: whether pages are shown as pictures.
        context: tokens the model takes; None for what the server says, else what params say.

    Raises:
        ConfigError: if a variable is not set, no server is named, or the model cannot be told.
        ModelLockError: if the server cannot be used, or has no such model.
    """
    from docmemo.models.endpoints import endpoint_of, listed_models, missing_model, pick_model

    settings = _server(settings, base_url, api_key_env)
    endpoint = endpoint_of("reasoner", settings)
    listed = listed_models(endpoint)
    name = model or _only_model(endpoint, listed)
    served = pick_model(listed, name)
    if served is None:
        raise missing_model(endpoint, name, listed)
    changes: dict[str, Any] = {"id": name, "images": images}
    takes = context or _context(endpoint, served)
    if takes is not None:
        changes["context"] = takes
        # a small context has no room for the usual reply besides the pages
        changes["max_tokens"] = min(params.answer.reader_model.max_tokens, max(256, takes // 4))
    answer = params.answer.model_copy(
        update={
            "reader": "vlm",
            "reranker": "vlm",
            "reader_model": params.answer.reader_model.model_copy(update=changes),
            "reranker_model": params.answer.reranker_model.model_copy(update=changes),
        }
    )
    return params.model_copy(update={"answer": answer}), settings


def _server(settings: Settings, base_url: str, api_key_env: str) -> Settings:
    """The settings with the server and the key that the options name."""
    from pydantic import SecretStr

    from docmemo.errors import ConfigError

    changes: dict[str, Any] = {}
    if base_url:
        # what the command line names comes before a role's own server, and no key goes where it was not meant to
        for role in ROLES:
            os.environ.pop(f"DOCMEMO_{role}_BASE_URL", None)
            os.environ.pop(f"DOCMEMO_{role}_API_KEY", None)
        changes["base_url"] = base_url
        if _origin(base_url) != _origin(settings.base_url):
            changes["api_key"] = SecretStr("")
    if api_key_env:
        key = os.environ.get(api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"The environment variable {api_key_env} is not set, or empty.",
                remedy=f"Put the key into it (export {api_key_env}=...), or name another with --api-key-env.",
            )
        changes["api_key"] = SecretStr(key)
    return settings.model_copy(update=changes)


def _origin(url: str) -> tuple[str, str]:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]


def _only_model(endpoint: Endpoint, listed: list[dict[str, Any]]) -> str:
    from docmemo.errors import ConfigError

    names = [str(entry.get("id")) for entry in listed]
    if len(names) == 1:
        return names[0]
    shown = ", ".join(sorted(names)[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    raise ConfigError(
        f"The server has {len(names)} models, so one must be named." if names else "The server has no models.",
        remedy=f"Add --model NAME, with one of: {shown}." if names else f"Check {endpoint.variable}.",
    )


def _context(endpoint: Endpoint, served: dict[str, Any]) -> int | None:
    """Tokens a request may have there, where the server says so; None otherwise.

    vLLM names them beside the model; llama.cpp gives each of its slots a part of what it was started with, which it
    tells at another address.
    """
    said: Any = served.get("max_model_len")
    if said is None and served.get("owned_by") == "llamacpp":
        import httpx2

        url = endpoint.base_url.removesuffix("/v1") + "/props"
        key = endpoint.api_key.get_secret_value()
        try:
            answer = httpx2.get(url, headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=10.0)
            said = answer.json()["default_generation_settings"]["n_ctx"]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return None
    return said if isinstance(said, int) and said >= 1024 else None
