"""Backends by name: known ones, plugins, and what is said about the rest."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from docmemo.errors import ConfigError
from docmemo.models.registry import BACKENDS, known_backends, resolve, target_of


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"Unknown reader 'gpt'.*Known: embedded, vlm, or one's own"):
        resolve("reader", "gpt")
    with pytest.raises(ConfigError, match=r"Unknown kind of backend 'painter'.*reader"):
        known_backends("painter")


def test_a_plugin_is_imported_by_module_and_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_reader.py").write_text("class Readers:\n    def make(params): return 'made'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert resolve("reader", "my_reader:Readers.make")(None) == "made"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:make", r"importing no_such_module failed"),
        ("json:nothing", r"json has no 'nothing'"),
        ("json:__name__", r"not callable"),
        ("json:", "Unknown reader"),
        ("os.path;rm:x", "Unknown reader"),
    ],
)
def test_a_plugin_that_cannot_be_used_says_why(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve("reader", name)


@pytest.mark.parametrize("kind", sorted(BACKENDS))
def test_every_built_in_backend_exists(kind: str) -> None:
    for name in known_backends(kind):
        module = target_of(kind, name).partition(":")[0]
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not written yet")
        assert callable(resolve(kind, name))
