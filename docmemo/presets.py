"""Presets: YAML overlays on params.yaml, kept in the project's presets/ folder.

A preset names sections and keys as params.yaml does. What it leaves out stays as it is, and so do comments.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from docmemo.artifacts import write_atomic
from docmemo.config import Params, load_params, parse_params
from docmemo.errors import ConfigError

PARAMS_FILE = "params.yaml"
FOLDER = "presets"

Key = tuple[str, ...]
_FREE_FORM = "extra"
"""A mapping whose keys are a server's, not ours: a preset replaces it as a whole."""


@dataclass(frozen=True)
class Change:
    """A key of params.yaml that a preset sets to another value."""

    key: str
    """Dotted, e.g. "render.ocr.backend"."""
    old: Any
    new: Any


def preset_names(project: Path) -> list[str]:
    """Names of the project's presets, sorted."""
    return sorted(path.stem for path in (project / FOLDER).glob("*.yaml") if not path.name.startswith("."))


def _read(name: str, project: Path) -> tuple[str, dict[str, Any]]:
    """A preset's text and overlay.

    Raises:
        ConfigError: if there is no such preset, or it is no mapping of sections.
    """
    known = preset_names(project)
    if name not in known:
        listing = ", ".join(known) or f"none, {project / FOLDER} holds no *.yaml"
        raise ConfigError(f"There is no preset {name!r}.", remedy=f"Known presets: {listing}.")
    path = project / FOLDER / f"{name}.yaml"
    try:
        text = path.read_text(encoding="utf-8")
        overlay = yaml.safe_load(text)
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not readable YAML: {error}.", remedy="Correct the preset.") from error
    overlay = {} if overlay is None else overlay
    if not isinstance(overlay, dict):
        raise ConfigError(f"{path} must be a mapping of sections.", remedy="Correct the preset.")
    return text, overlay


def describe(name: str, project: Path) -> str:
    """A preset's description: the comment lines it starts with."""
    lines = []
    for line in _read(name, project)[0].splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return "\n".join(lines).strip()


def _leaves(values: Mapping[Any, Any], path: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in values.items():
        key = (*path, str(name))
        if isinstance(value, dict) and value and name != _FREE_FORM:
            yield from _leaves(value, key)
        else:
            yield key, value


def _merge(base: Mapping[Any, Any], overlay: Mapping[Any, Any]) -> dict[Any, Any]:
    merged = dict(base)
    for name, value in overlay.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict) and name != _FREE_FORM:
            merged[name] = _merge(old, value)
        else:
            merged[name] = value
    return merged


def _effective(params: Params) -> dict[Key, Any]:
    return dict(_leaves(params.model_dump(mode="json", by_alias=True)))


def preset_changes(name: str, project: Path) -> list[Change]:
    """What applying a preset would change, in the order of params.yaml's sections. Defaults count as set.

    Raises:
        ConfigError: if params.yaml, the preset, or the two together are not valid.
    """
    path = project / PARAMS_FILE
    before = _effective(load_params(path))
    values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    merged = _merge(values, _read(name, project)[1])
    after = _effective(parse_params(merged, f"{FOLDER}/{name}.yaml over {PARAMS_FILE}"))
    keys = [*after, *(key for key in before if key not in after)]
    return [
        Change(".".join(key), before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)
    ]


def apply_preset(name: str, project: Path) -> list[Change]:
    """Edit params.yaml so that the preset's values hold; comments and formatting stay.

    Only keys whose value changes are touched. The result is validated before the file is replaced, in one step.

    Returns:
        The changed keys; the file is not written when there are none.

    Raises:
        ConfigError: if params.yaml, the preset, or the two together are not valid; params.yaml is as before.
    """
    from ruamel.yaml import YAML  # 0.1 s that only this function needs
    from ruamel.yaml.comments import CommentedMap

    changes = preset_changes(name, project)
    if not changes:
        return []
    path = project / PARAMS_FILE
    editor = YAML()  # round trip: keeps comments, order and quotes
    editor.preserve_quotes = True
    editor.width = 4096
    editor.representer.add_representer(type(None), _represent_null)
    source = path.read_text(encoding="utf-8")
    document = editor.load(source)
    if document is None:
        document = CommentedMap()
    overlay = dict(_leaves(_read(name, project)[1]))
    wanted = {change.key for change in changes}
    for key, value in overlay.items():
        if any(w == ".".join(key) or w.startswith(".".join(key) + ".") for w in wanted):
            _set(document, key, value, source.splitlines())
    buffer = io.StringIO()
    editor.dump(document, buffer)
    text = buffer.getvalue()
    result = parse_params(yaml.safe_load(text), f"{PARAMS_FILE} with preset {name!r}")
    after = _effective(result)
    missed = [c.key for c in changes if after.get(tuple(c.key.split("."))) != c.new]
    if missed:
        raise ConfigError(
            f"The preset {name!r} could not be written into {path}: {', '.join(missed)}.",
            remedy="Edit these keys by hand.",
        )
    write_atomic(path, text.encode())
    return changes


def _represent_null(representer: Any, _: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


def _set(document: Any, key: Key, value: Any, lines: list[str]) -> None:
    """Set a leaf, making sections on the way; a comment behind it keeps its distance."""
    for name in key[:-1]:
        if not isinstance(document.get(name), dict):
            document[name] = {}
        document = document[name]
    name = key[-1]
    old = document.get(name)
    if isinstance(value, list) and isinstance(old, list):
        old[:] = value  # keeps the list's style and its comment
    else:
        document[name] = copy.deepcopy(value)  # a mapping used twice would be written as an anchor and references
    comment = document.ca.items.get(name, [None] * 3)[2] if hasattr(document, "ca") else None
    if comment is None:
        return
    mark = comment.start_mark
    before = lines[mark.line][: mark.column].rstrip()
    if before.lstrip().startswith(f"{name}:"):  # else a list over several lines
        old_text = before.split(":", 1)[1].strip()
        new_text = yaml.safe_dump([value], default_flow_style=True, width=4096, allow_unicode=True).strip()[1:-1]
        mark.column += len(new_text) - len(old_text)
