"""Prompts: Markdown files with front matter, rendered strictly; their digests stand in keys and provenance.

A prompt has a system part (what never changes, so that servers keep it in their prefix cache) and a user part, apart
by the line `<!-- user -->`. Variables are Jinja's; the front matter lists them, and a missing or unknown one is an
error. In the user part `{{ image("name") }}` marks the place of a picture.

Text from documents is data. The templates fence it with tags, and every value that is put into a template is cleaned
by `clean`, so that no document can close a fence, open one, or write a model's special tokens.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from jinja2 import Environment, StrictUndefined, Template, TemplateError, UndefinedError, meta

from docmemo.config import Params
from docmemo.errors import ConfigError
from docmemo.fingerprint import digest_bytes

FOLDER = "prompts"
_PACKAGE = Path(__file__).resolve().parent
_FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_USER = re.compile(r"^<!-- user -->\n", re.MULTILINE)
_FIELDS = {"name", "role", "description", "variables"}

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, invisible and direction-changing ones, and halves of characters; no text needs them."""
_TAG = re.compile(r"[<＜﹤](?=[/|!?A-Za-z_]|\s+[/|])")
"""What could begin a tag or a special token; "p < 0.05" and "a < b" stay."""
_IMAGE = re.compile("\x1d([^\x1d]*)\x1d")

P = TypeVar("P")


def clean(text: str) -> str:
    """Text that cannot act as markup: hidden characters taken out, `<` where a tag could begin turned into `‹`."""
    return _TAG.sub("‹", _HIDDEN.sub("", text.replace("\r\n", "\n")))


class _Mark(str):
    """The place of a picture; the only value that is put into a template as it is."""

    __slots__ = ()


def _mark(name: str) -> _Mark:
    return _Mark(f"\x1d{_HIDDEN.sub('', name)}\x1d")


def _finalize(value: Any) -> Any:
    if isinstance(value, _Mark):
        return value
    return clean(value) if isinstance(value, str) else value


def _attribute(value: object) -> str:
    """A value for inside the quotes of a tag: one short line without quotes and brackets."""
    return re.sub(r"[\"<>＜＞]", "'", " ".join(str(value).split()))[:80]


def _environment() -> Environment:
    made = Environment(
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # not HTML; `_finalize` cleans every value instead
    )
    made.filters["attribute"] = _attribute
    made.globals["image"] = _mark
    return made


_JINJA = _environment()


@dataclass(frozen=True)
class Rendered:
    """A prompt with its values."""

    system: str
    """'' where the prompt has no system part."""
    pieces: tuple[str | _Mark, ...]
    """The user part: text, and marks where pictures belong."""

    @property
    def user(self) -> str:
        """The text of the user part, without pictures."""
        return "".join(piece for piece in self.pieces if not isinstance(piece, _Mark))

    def user_parts(self, images: Mapping[str, P] | None = None) -> list[str | P]:
        """The user part with its pictures in their places; a place without a picture is left out.

        Args:
            images: pictures by the names the template gives them.
        """
        found: list[str | P] = []
        text = ""
        for piece in self.pieces:
            if not isinstance(piece, _Mark):
                text += piece
            elif images is not None and str(piece) in images:
                found += [text, images[str(piece)]] if text else [images[str(piece)]]
                text = ""
        return [*found, text] if text else found


@dataclass(frozen=True)
class Prompt:
    """A prompt file."""

    name: str
    role: str
    """The role in models.lock.json that is asked with it."""
    description: str
    variables: frozenset[str]
    digest: str
    """sha256 of the file's bytes."""
    path: Path
    _system: Template
    _user: Template

    def render(self, **values: Any) -> Rendered:
        """The prompt with its values; each string in them is cleaned.

        Raises:
            ConfigError: if a variable is missing or unknown, or a value has not the fields the template reads.
        """
        if values.keys() != self.variables:
            missing, unknown = sorted(self.variables - values.keys()), sorted(values.keys() - self.variables)
            wrong = [f"it lacks {', '.join(missing)}"] * bool(missing) + [f"no {', '.join(unknown)}"] * bool(unknown)
            raise ConfigError(
                f"The prompt {self.path} takes other variables: {'; '.join(wrong)}.",
                remedy="Bring the variables in its front matter back to those of the project's own file.",
            )
        try:
            system, user = self._system.render(values).strip(), self._user.render(values).strip()
        except UndefinedError as error:
            raise ConfigError(f"The prompt {self.path} cannot be rendered: {error}.") from error
        pieces = [_Mark(text) if i % 2 else text for i, text in enumerate(_IMAGE.split(user))]
        return Rendered(system, tuple(piece for piece in pieces if piece))


def folders() -> list[Path]:
    """Where prompts are looked for, in order: the project one stands in, beside the package, the installed copy."""
    here = Path.cwd()
    project = [here / FOLDER] if (here / "params.yaml").is_file() else []
    return [*project, _PACKAGE.parent / FOLDER, Path(sysconfig.get_path("data")) / "share" / "docmemo" / FOLDER]


def find_prompt(name: str) -> Path:
    """The file of a prompt.

    Raises:
        ConfigError: if it is nowhere.
    """
    for folder in folders():
        if (folder / f"{name}.md").is_file():
            return folder / f"{name}.md"
    raise ConfigError(
        f"There is no prompt {name!r}: no {name}.md in {', '.join(map(str, folders()))}.",
        remedy="Run from the project's root folder, or install the package again.",
    )


def load_prompt(name: str) -> Prompt:
    """A prompt by name, e.g. "reason".

    Raises:
        ConfigError: if there is none, or its file is not a prompt.
    """
    path = find_prompt(name)
    data = path.read_bytes()
    try:
        return _parse(name, path, data)
    except (UnicodeDecodeError, yaml.YAMLError, TemplateError, ValueError) as error:
        raise ConfigError(f"The prompt {path} cannot be used: {error}.", remedy="Correct the file.") from error


def _parse(name: str, path: Path, data: bytes) -> Prompt:
    match = _FRONT.fullmatch(data.decode("utf-8").replace("\r\n", "\n"))
    front = yaml.safe_load(match[1]) if match else None
    if not match or not isinstance(front, dict):
        raise ValueError("it does not begin with front matter between two lines of ---")
    if front.keys() != _FIELDS:
        raise ValueError(f"its front matter must have the fields {', '.join(sorted(_FIELDS))}, and no others")
    if front["name"] != name:
        raise ValueError(f"its front matter names it {front['name']!r}")
    system, *user = _USER.split(match[2])
    if len(user) != 1:
        raise ValueError("it must have exactly one line <!-- user -->")
    used = meta.find_undeclared_variables(_JINJA.parse(match[2])) - _JINJA.globals.keys()
    variables = frozenset(map(str, front["variables"] or []))
    if used != variables:
        raise ValueError(f"its text uses {sorted(used)}, its front matter lists {sorted(variables)}")
    return Prompt(
        name,
        str(front["role"]),
        str(front["description"]),
        variables,
        digest_bytes(data),
        path,
        _JINJA.from_string(system),
        _JINJA.from_string(user[0]),
    )


def prompt_digests(names: Iterable[str]) -> dict[str, str]:
    """sha256 of prompt files by name.

    Raises:
        ConfigError: if one is missing.
    """
    return {name: digest_bytes(find_prompt(name).read_bytes()) for name in sorted(set(names))}


def prompts_in_use(params: Params) -> list[str]:
    """Names of the prompts that a run with these parameters sends, in the order of the pipeline."""
    used = {
        "summary": params.summarize.backend == "vlm",
        "schema": params.schema_.backend == "vlm",
        "rerank": params.answer.reranker == "vlm",
        "reason": params.answer.reader == "vlm",
        "judge": params.judge.backend == "llm",
    }
    return [name for name, is_used in used.items() if is_used]


def digests_for(params: Params) -> dict[str, str]:
    """sha256 by name of the prompts that a run with these parameters sends; for provenance."""
    return prompt_digests(prompts_in_use(params))
