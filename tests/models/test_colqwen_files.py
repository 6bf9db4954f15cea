"""Which model would run, told without torch."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from pathlib import Path

import pytest

from docmemo.config import EmbedParams
from docmemo.errors import ConfigError, ModelLockError
from docmemo.models import colqwen_files
from docmemo.models.colqwen_files import find_weights, identify, visual_identity
from docmemo.models.devices import parse_devices

COMMIT, OTHER, BASE = "a" * 40, "b" * 40, "c" * 40


def folder(path: Path, weights: bytes = b"w", **config: object) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.safetensors").write_bytes(weights)
    (path / "config.json").write_text(json.dumps(config))
    (path / "notes.md").write_text("not part of the model")
    return path


def adapter(path: Path, base: str, revision: str | None = None) -> Path:
    path.mkdir(parents=True)
    (path / "adapter_model.safetensors").write_bytes(b"a")
    (path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base, "revision": revision}))
    return path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty local hub cache; call it to put a commit of a model there."""
    from huggingface_hub import constants

    cache = tmp_path / "hub"
    cache.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))

    def add(name: str, commit: str, ref: str = "main") -> Path:
        home = cache / f"models--{name.replace('/', '--')}"
        (home / "refs").mkdir(parents=True, exist_ok=True)
        (home / "refs" / ref).write_text(commit)
        return home / "snapshots" / commit

    return add


def weights(model: str | Path, revision: str | None = None):
    return find_weights(EmbedParams(model=str(model), revision=revision))


def test_a_folder_is_known_by_what_is_in_it_and_not_by_where_it_is(tmp_path: Path) -> None:
    here, there = folder(tmp_path / "a" / "m"), folder(tmp_path / "b" / "m")
    assert weights(here).revision == weights(there).revision
    assert weights(here).name == "m"
    assert sorted(weights(here).files) == ["config.json", "model.safetensors"]


def test_other_weights_or_another_configuration_are_another_revision(tmp_path: Path) -> None:
    revisions = {
        weights(folder(tmp_path / "a")).revision,
        weights(folder(tmp_path / "b", b"other")).revision,
        weights(folder(tmp_path / "c", max_pixels=3)).revision,
    }
    assert len(revisions) == 3


def test_a_file_is_read_again_only_when_its_size_or_time_changed(tmp_path: Path, monkeypatch) -> None:
    made = folder(tmp_path / "m")
    read: list[str] = []
    digest = colqwen_files.digest_file
    monkeypatch.setattr(colqwen_files, "digest_file", lambda path: read.append(path.name) or digest(path))
    first = weights(made).revision
    assert weights(made).revision == first
    assert sorted(read) == ["config.json", "model.safetensors"]
    (made / "model.safetensors").write_bytes(b"v")
    os.utime(made / "model.safetensors", ns=(1, 1))
    assert weights(made).revision != first
    assert read[2:] == ["model.safetensors"]


def test_a_model_of_the_hub_is_its_commit_in_the_local_cache(hub) -> None:
    folder(hub("org/model", COMMIT))
    found = weights("org/model")
    assert (found.name, found.revision, found.base, dict(found.files)) == ("org/model", COMMIT, None, {})


def test_a_commit_asked_for_is_the_one_that_is_used(hub) -> None:
    folder(hub("org/model", OTHER, ref="old"))
    folder(hub("org/model", COMMIT))
    assert weights("org/model", OTHER).revision == OTHER


def test_an_adapter_names_the_commits_of_both_repositories(hub) -> None:
    adapter(hub("org/adapter", COMMIT), "org/base")
    folder(hub("org/base", BASE))
    found = weights("org/adapter")
    assert found.revision == f"{COMMIT} on org/base@{BASE}"
    assert found.base is not None
    assert found.base.folder.name == BASE


def test_an_adapter_in_a_folder_may_stand_beside_its_base(tmp_path: Path) -> None:
    base = folder(tmp_path / "both" / "base")
    found = weights(adapter(tmp_path / "both" / "adapter", "../base"))
    assert found.base is not None
    assert found.base.folder.resolve() == base
    assert {"base/model.safetensors", "adapter_model.safetensors"} <= set(found.files)


def test_a_model_that_is_not_on_this_machine_says_how_to_get_it(hub, tmp_path: Path) -> None:
    with pytest.raises(ModelLockError, match=r"not on this machine.*hf download org/model --revision abc"):
        weights("org/model", "abc")
    adapter(hub("org/adapter", COMMIT), "org/base")
    with pytest.raises(ModelLockError, match="hf download org/base"):
        weights("org/adapter")


def test_what_is_no_model_at_all_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelLockError, match="neither a folder nor a name"):
        weights("/no/such/folder")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelLockError, match="holds no weights"):
        weights(tmp_path / "empty")
    with pytest.raises(ModelLockError, match="revision to null"):
        weights(folder(tmp_path / "m"), COMMIT)
    broken = adapter(tmp_path / "broken", "x")
    (broken / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelLockError, match="does not name the adapter's base model"):
        weights(broken)


def test_without_the_extra_the_lock_says_how_to_install_it(tmp_path: Path, monkeypatch) -> None:
    version = importlib.metadata.version

    def absent(name: str) -> str:
        if name == "colpali-engine":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(ModelLockError, match=r"colpali-engine is not installed.*\[colqwen\]"):
        identify(EmbedParams(backend="colqwen", model=str(folder(tmp_path / "m"))))


def test_the_entry_holds_versions_without_their_build_and_no_torch_is_imported(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "2.13.0+cpu")
    entry = identify(EmbedParams(backend="colqwen", model=str(folder(tmp_path / "m"))))
    assert (entry.provider, entry.id) == ("colpali-engine", "m")
    assert "torch 2.13.0, " in entry.package_version
    assert "torch" not in sys.modules


def test_versions_of_lexical_packages_decide_no_embedding() -> None:
    entry = {"id": "m", "package_version": "torch 2, bm25s 0.3, PyStemmer 3"}
    assert visual_identity(entry) == {"id": "m", "package_version": "torch 2"}


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("auto", ["auto"]),
        ("CPU", ["cpu"]),
        ("cuda", ["cuda:0"]),
        ("cuda:1", ["cuda:1"]),
        ("cuda:0,2,0", ["cuda:0", "cuda:2"]),
    ],
)
def test_devices_are_named_as_the_settings_say(text: str, devices: list[str]) -> None:
    assert parse_devices(text) == devices


@pytest.mark.parametrize("text", ["", "gpu", "cuda:", "cuda:a", "cuda:0;1"])
def test_an_unknown_device_is_an_error_that_names_the_setting(text: str) -> None:
    with pytest.raises(ConfigError, match="DOCMEMO_DEVICE"):
        parse_devices(text)
