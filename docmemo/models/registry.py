"""Backends by name: a table of where each lives, imported only when it is chosen.

A name of the form `package.module:attribute` is a plugin: any importable object, taken as the factory.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from docmemo.errors import ConfigError

BACKENDS: dict[str, dict[str, str]] = {
    "reader": {"embedded": "docmemo.qa.evidence:EmbeddedReader", "vlm": "docmemo.qa.reasoner:VlmReader"},
    "reranker": {"embedded": "docmemo.qa.evidence:EmbeddedReranker", "vlm": "docmemo.qa.rerank:VlmReranker"},
}
"""Kind to backend name to `module:attribute`. Names resolve at run time, so upper layers may be named here."""

_PLUGIN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_plugin(name: str) -> bool:
    """Whether a backend name has the form `package.module:attribute`."""
    return _PLUGIN.fullmatch(name) is not None


def known_backends(kind: str) -> list[str]:
    """The built-in names of a kind, sorted.

    Raises:
        ConfigError: if there is no such kind.
    """
    if kind not in BACKENDS:
        raise ConfigError(f"Unknown kind of backend {kind!r}.", remedy=f"Known: {', '.join(sorted(BACKENDS))}.")
    return sorted(BACKENDS[kind])


def target_of(kind: str, name: str) -> str:
    """Where a backend lives, as `module:attribute`; nothing is imported.

    Raises:
        ConfigError: if the name is neither known nor a plugin's.
    """
    known = known_backends(kind)
    target = BACKENDS[kind].get(name, name)
    if not is_plugin(target):
        raise ConfigError(
            f"Unknown {kind} {name!r}.",
            remedy=f"Known: {', '.join(known)}, or one's own as package.module:attribute.",
        )
    return target


def resolve(kind: str, name: str) -> Any:
    """The factory of a backend, imported now.

    Args:
        kind: "reader" or "reranker".
        name: a known name, or `package.module:attribute`.

    Raises:
        ConfigError: if the name is unknown, its module cannot be imported, or has no such attribute.
    """
    module_name, _, attribute = target_of(kind, name).partition(":")
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f"The {kind} {name!r} cannot be used: importing {module_name} failed ({error}).",
            remedy="Install its package, or put its folder on PYTHONPATH.",
        ) from error
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            raise ConfigError(
                f"The {kind} {name!r} cannot be used: {module_name} has no {attribute!r}.",
                remedy="Correct the name after the colon.",
            ) from error
    if not callable(value):
        raise ConfigError(
            f"The {kind} {name!r} cannot be used: {attribute!r} is not callable.",
            remedy="Name a function or class that builds the backend.",
        )
    return value
