"""Where each role's model is served, and what its server says of it.

    DOCMEMO_BASE_URL, DOCMEMO_API_KEY                    the server of every role and its key
    DOCMEMO_<ROLE>_BASE_URL, DOCMEMO_<ROLE>_API_KEY      one role's own

with SUMMARIZER, SCHEMA, RERANKER, REASONER or JUDGE as ROLE. A key goes only to the server it was given for: the
shared key not to a role's own server elsewhere, and OPENAI_API_KEY only to api.openai.com. Addresses and keys are no
part of any digest, record or error text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from docmemo.errors import ConfigError, ModelLockError
from docmemo.settings import Settings, load_settings

IDENTIFYING = ("id", "root", "parent", "owned_by", "max_model_len", "meta", "canonical_slug", "hugging_face_id")
"""Fields of a /models entry that tell one model from another. `created` and `permission` change at every start."""
NO_KEY = "none"
"""Sent where no key is set: servers of one's own ask for none, and the client insists on one."""


@dataclass(frozen=True)
class Endpoint:
    """A server and the key for it."""

    role: str
    base_url: str
    """http(s) address without a trailing slash, usually ending in /v1."""
    api_key: SecretStr
    """Empty where none is set."""

    @property
    def variable(self) -> str:
        """The setting a person changes to point the role elsewhere."""
        return "DOCMEMO_BASE_URL" if _own(self.role, "BASE_URL") == "" else f"DOCMEMO_{self.role.upper()}_BASE_URL"

    @property
    def server(self) -> tuple[str, str]:
        """What one limiter and one served-model check are kept for."""
        return self.base_url, self.api_key.get_secret_value()


def _own(role: str, what: str) -> str:
    return os.environ.get(f"DOCMEMO_{role.upper()}_{what}", "").strip()


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]


def _checked(url: str, variable: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{variable} is not an address.", remedy="Write it as http://HOST:PORT/v1 or https://HOST/v1."
        )
    return url.rstrip("/")


def _key(role: str, url: str, settings: Settings) -> SecretStr:
    own = _own(role, "API_KEY")
    if own:
        return SecretStr(own)
    shared = settings.api_key.get_secret_value()
    if shared and (not settings.base_url or _origin(url) == _origin(settings.base_url)):
        return SecretStr(shared)
    if urlsplit(url).hostname == "api.openai.com":
        return SecretStr(os.environ.get("OPENAI_API_KEY", "").strip())
    return SecretStr("")


def endpoint_of(role: str, settings: Settings | None = None) -> Endpoint:
    """The server that plays a role, from the environment.

    Args:
        role: a role of models.lock.json, e.g. "reasoner".
        settings: environment settings; read anew when None.

    Raises:
        ConfigError: if no address is set, or it is none.
    """
    settings = settings or load_settings()
    variable = f"DOCMEMO_{role.upper()}_BASE_URL"
    own = _own(role, "BASE_URL")
    url = own or settings.base_url.strip()
    if not url:
        raise ConfigError(
            f"No server is set for the role {role}.",
            remedy=(
                f"Set DOCMEMO_BASE_URL (or {variable}) to an OpenAI-compatible address, such as"
                " http://127.0.0.1:8000/v1."
            ),
        )
    url = _checked(url, variable if own else "DOCMEMO_BASE_URL")
    return Endpoint(role=role, base_url=url, api_key=_key(role, url, settings))


def identifying(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a /models entry that identify the model; empty ones left out."""
    fields = {name: entry[name] for name in IDENTIFYING if entry.get(name) not in (None, "", {}, [])}
    if fields.get("owned_by") == "llamacpp" and "id" in fields:
        # llama.cpp names a model by the path of its file, which differs between machines.
        fields["id"] = PurePath(str(fields["id"]).replace("\\", "/")).name
    return fields


def pick_model(listed: list[dict[str, Any]], model_id: str) -> dict[str, Any] | None:
    """What a server's list says of a model, reduced to what identifies it; None if it is not there.

    llama.cpp takes any name for the one model it has, so its only entry stands for every name.
    """
    for entry in listed:
        if entry.get("id") == model_id:
            return identifying(entry)
    if len(listed) == 1 and listed[0].get("owned_by") == "llamacpp":
        return identifying(listed[0])
    return None


def missing_model(endpoint: Endpoint, model_id: str, listed: list[dict[str, Any]]) -> ModelLockError:
    """The error of a model that its server does not list."""
    known = [str(entry.get("id")) for entry in listed]
    shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    return ModelLockError(
        f"The server of the role {endpoint.role} has no model {model_id!r}.",
        remedy=f"It has: {shown or 'none'}. Serve the model, or correct its id (params.yaml) or {endpoint.variable}.",
    )


def listed_models(endpoint: Endpoint) -> list[dict[str, Any]]:
    """What a server says of its models, one entry each.

    Raises:
        ModelLockError: if the server cannot be reached, or refuses.
    """
    import openai

    key = endpoint.api_key.get_secret_value() or NO_KEY
    try:
        with openai.OpenAI(base_url=endpoint.base_url, api_key=key, max_retries=1, timeout=30.0) as client:
            return [model.to_dict() for model in client.models.list()]
    except openai.APIStatusError as error:
        remedy = (
            "Check the key." if error.status_code in (401, 403) else f"Check {endpoint.variable}; it ends in /v1."
        )
        raise ModelLockError(
            f"The server of the role {endpoint.role} does not list its models (HTTP {error.status_code}).",
            remedy=remedy,
        ) from None
    except openai.OpenAIError as error:
        raise ModelLockError(
            f"The server of the role {endpoint.role} cannot be reached ({type(error.__cause__ or error).__name__}).",
            remedy=f"Start it, or correct {endpoint.variable}.",
        ) from None


def served_model(endpoint: Endpoint, model_id: str) -> dict[str, Any]:
    """What the server says of a model, without anything that changes between restarts.

    Args:
        endpoint: whom to ask.
        model_id: the model's name there.

    Raises:
        ModelLockError: if the server cannot be reached, refuses, or does not have the model.
    """
    listed = listed_models(endpoint)
    found = pick_model(listed, model_id)
    if found is None:
        raise missing_model(endpoint, model_id, listed)
    return found
