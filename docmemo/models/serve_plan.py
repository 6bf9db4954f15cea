"""What a server has to offer so that a role's requests fit, and the command that starts one.

A model that plays several roles is served once: the server takes the longest context and the most images of them all.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docmemo.config import ModelParams, Params
from docmemo.errors import ConfigError
from docmemo.models.lock import SERVED_PARAMS, served_roles

Backend = Literal["vllm", "llamacpp"]

VLLM_VERSION = "0.32"
"""The release whose options are used here."""
VLLM_INSTALL = (
    "Give it an environment of its own: `python3 -m venv .venv-vllm && .venv-vllm/bin/pip install "
    f"'vllm~={VLLM_VERSION}.0'`, then set DOCMEMO_VLLM=.venv-vllm/bin/vllm."
)
LLAMACPP_INSTALL = (
    "Install the extra: `pip install 'docmemo[llamacpp]'` (in a checkout: `pip install -e '.[llamacpp]'`)."
)

_HUB = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<file>[\w./-]+))?")


@dataclass(frozen=True)
class Plan:
    """What is served."""

    role: str
    roles: tuple[str, ...]
    """All roles that this model plays, `role` among them."""
    name: str
    """What the server calls the model: its id in params.yaml."""
    source: str
    """Weights: a folder or name on the hub (vLLM), a GGUF file or REPO:FILE on the hub (llama.cpp)."""
    context: int
    """Tokens a request may have, reply included."""
    images: int
    """Most images in one request; 0 for a role without."""
    seed: int | None
    covers_all: bool
    """Whether no other model plays a role with these parameters."""


def images_of(role: str, params: Params) -> int:
    """Most images one request of a role holds."""
    loop = params.loop
    counts = {"reasoner": loop.evidence + loop.keep_useful + loop.crops, "summarizer": 1}
    return counts.get(role, 0)


def model_of(role: str, params: Params) -> ModelParams:
    """A role's section of params.yaml, whether or not the role is played by a model behind a server.

    Raises:
        ConfigError: if there is no such role.
    """
    models = {
        "summarizer": params.summarize.model,
        "schema": params.schema_.model,
        "reranker": params.answer.reranker_model,
        "reasoner": params.answer.reader_model,
        "judge": params.judge.model,
    }
    if role not in models:
        raise ConfigError(f"Unknown role {role!r}.", remedy=f"Known roles: {', '.join(models)}.")
    return models[role]


def plan(role: str, params: Params, source: str | None = None) -> Plan:
    """What to serve for a role.

    Args:
        role: summarizer, schema, reranker, reasoner or judge.
        params: all parameters.
        source: the weights, where the model's id in params.yaml does not say where they are.

    Raises:
        ConfigError: if there is no such role, or neither params.yaml nor `source` names a model.
    """
    model = model_of(role, params)
    if not model.id and not source:
        raise ConfigError(
            f"The role {role} has no model.",
            remedy=f"Name one in params.yaml ({SERVED_PARAMS[role]}.id), or with --model.",
        )
    name = model.id or _name(source or "")
    used = served_roles(params)
    roles = tuple(r for r in SERVED_PARAMS if r == role or (r in used and used[r].id == name))
    models = [model_of(r, params) for r in roles]
    return Plan(
        role=role,
        roles=roles,
        name=name,
        source=source or model.id,
        context=max(m.context for m in models),
        images=max(images_of(r, params) if m.images else 0 for r, m in zip(roles, models, strict=True)),
        seed=model.seed,
        covers_all=all(r in roles for r in used),
    )


def _name(source: str) -> str:
    hub = None if Path(source).exists() else _HUB.fullmatch(source)
    if hub and not hub["file"]:
        return source
    return Path(hub["file"] if hub else source).stem if source.endswith(".gguf") else Path(source).name


def vllm_command(what: Plan, command: str, host: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """`vllm serve` with the options a role needs (vLLM 0.32).

    - the context of params.yaml, so that what is fitted is taken, and no more memory is held;
    - as many images as a request may hold, and no videos, for which memory would be set aside;
    - JSON without white space between tokens: a weak model can write blanks until its reply is cut;
    - no generation_config.json of the model: what params.yaml says is how it samples.
    """
    options = [
        "serve",
        what.source,
        *("--served-model-name", what.name),
        *("--host", host),
        *("--port", str(port)),
        *("--max-model-len", str(what.context)),
        *("--limit-mm-per-prompt", json.dumps({"image": what.images, "video": 0})),
        *("--structured-outputs-config", json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})),
        *("--generation-config", "vllm"),
        "--enable-prefix-caching",
        "--enable-prompt-tokens-details",
    ]
    if what.seed is not None:
        options += ["--seed", str(what.seed)]
    return [command, *options, *extra]


def find_vllm(command: str) -> str:
    """The vLLM command: on PATH, or beside this Python.

    Raises:
        ConfigError: if there is none; says how to install it.
    """
    found = shutil.which(command) or shutil.which(command, path=str(Path(sys.executable).parent))
    if found is None:
        raise ConfigError(f"vLLM is not installed: there is no command {command!r}.", remedy=VLLM_INSTALL)
    return found


def llamacpp_command(
    what: Plan, host: str, port: int, *, mmproj: str | None, parallel: int, extra: Sequence[str] = ()
) -> list[str]:
    """Our own small server process around `xllamacpp`; each of `parallel` slots gets the whole context."""
    options = [
        *("--model", what.source),
        *("--alias", what.name),
        *("--host", host),
        *("--port", str(port)),
        *("--slot-context", str(what.context)),
        *("--parallel", str(parallel)),
    ]
    if mmproj:
        options += ["--mmproj", mmproj]
    return [sys.executable, "-m", "docmemo.models.llamacpp_server", *options, *extra]


def need_xllamacpp() -> None:
    """Make sure that llama.cpp can be started.

    Raises:
        ConfigError: if the package is missing; says how to install it.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError("llama.cpp is not installed: there is no package xllamacpp.", remedy=LLAMACPP_INSTALL)


def weights(reference: str, what: str) -> str:
    """A GGUF file: a path as it is, or REPO[:FILE] fetched from the hub (kept in the hub's own cache).

    Args:
        reference: the path or the name on the hub.
        what: what it is, for messages, e.g. "--model".

    Raises:
        ConfigError: if there is no such file, or the hub does not give one.
    """
    path = Path(reference).expanduser()
    if path.is_file():
        return str(path.absolute())
    hub = _HUB.fullmatch(reference)
    if path.suffix == ".gguf" and (hub is None or not hub["file"]):
        raise ConfigError(f"There is no file {reference} ({what}).", remedy="Check the path of the GGUF file.")
    if hub is None:
        raise ConfigError(
            f"{what} {reference!r} is neither a GGUF file nor a name on the hub.",
            remedy="Name a file, or REPO:FILE, e.g. Qwen/Qwen3-VL-4B-Instruct-GGUF:Qwen3VL-4B-Instruct-Q4_K_M.gguf.",
        )
    return _fetch(hub["repo"], hub["file"], what)


def _fetch(repo: str, file: str | None, what: str) -> str:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ConfigError(
            f"{what} names the hub, but the package huggingface_hub is not installed.", remedy=LLAMACPP_INSTALL
        ) from error
    try:
        if file is not None:
            return str(huggingface_hub.hf_hub_download(repo, file))
        names = sorted(str(name) for name in huggingface_hub.list_repo_files(repo) if str(name).endswith(".gguf"))
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"{repo} could not be fetched from the hub ({type(error).__name__}): {reason}",
            remedy="Check the name and the network, or download the file by hand and give its path.",
        ) from error
    raise ConfigError(
        f"{repo} holds several files; {what} needs one of them.",
        remedy=f"Write {repo}:FILE; its GGUF files: {', '.join(names) or 'none'}.",
    )
