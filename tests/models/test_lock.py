"""The lock names what really runs, and stages refuse to run with anything else."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docmemo.config import Params, parse_params
from docmemo.errors import ConfigError, ModelLockError
from docmemo.models import installed, lock
from docmemo.models.lock import ROLES, check_lock, load_lock, require_lock, resolve_lock, write_lock


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    path = tmp_path / "models.lock.json"
    write_lock(resolve_lock(Params()), path)
    return path


def edit(path: Path, role: str, **changes: Any) -> None:
    values = json.loads(path.read_text())
    values[role].update(changes)
    path.write_text(json.dumps(values))


def test_every_role_has_an_entry_with_a_provider_and_an_id() -> None:
    entries = resolve_lock(Params())
    assert sorted(entries) == sorted(ROLES)
    assert all(entry["provider"] and entry["id"] for entry in entries.values())


def test_the_lock_is_written_sorted_and_the_same_each_time(locked: Path, tmp_path: Path) -> None:
    text = locked.read_text()
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(ROLES)
    write_lock(resolve_lock(Params()), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == text
    assert check_lock(Params(), locked) == []
    assert require_lock(Params(), ROLES, locked) == load_lock(locked)


def test_ocr_weights_are_the_files_in_rapidocrs_own_wheel() -> None:
    files = installed.rapidocr_files()
    assert len(files) == 3
    folder = installed.package_folder("rapidocr") / "models"
    assert {path.parent for path in files} == {folder}
    entry = resolve_lock(Params())["ocr"]
    assert entry["files"] == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_without_ocr_there_is_no_ocr_model() -> None:
    params = parse_params({"render": {"ocr": {"backend": "none"}}})
    assert resolve_lock(params)["ocr"] == {"provider": "none", "id": "none"}


def test_resolving_imports_nothing_heavy() -> None:
    code = (
        "import sys; from docmemo.config import Params; from docmemo.models.lock import resolve_lock;"
        "resolve_lock(Params());"
        "print([m for m in ('pymupdf', 'rapidocr', 'onnxruntime', 'numpy', 'bm25s') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_version_is_refused_naming_role_both_sides_and_the_remedy(locked: Path) -> None:
    edit(locked, "renderer", package_version="pymupdf 1.0")
    with pytest.raises(ModelLockError) as caught:
        require_lock(Params(), ["ocr", "renderer"], locked)
    text = str(caught.value)
    assert "renderer: package_version is 'pymupdf 1.0' in the lock, 'pymupdf " in text
    assert "docmemo models lock" in text
    assert "ocr:" not in text


def test_a_role_that_is_not_asked_for_may_differ(locked: Path) -> None:
    edit(locked, "renderer", package_version="pymupdf 1.0")
    assert set(require_lock(Params(), ["ocr", "judge"], locked)) == {"ocr", "judge"}


def test_changed_weights_are_noticed(locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "model.onnx"
    fake.write_bytes(b"one")
    monkeypatch.setattr(installed, "rapidocr_files", lambda: [fake])
    write_lock(resolve_lock(Params()), locked)
    assert check_lock(Params(), locked) == []
    fake.write_bytes(b"other")
    (difference,) = check_lock(Params(), locked)
    assert difference.role == "ocr"
    assert "revision is" in str(difference)


def test_a_missing_role_and_an_unknown_one_are_differences(locked: Path) -> None:
    values = json.loads(locked.read_text())
    values["painter"] = values.pop("judge")
    locked.write_text(json.dumps(values))
    judge, painter = (str(d) for d in check_lock(Params(), locked))
    assert judge.startswith("judge: not in the lock; installed is docmemo / rule")
    assert painter == "painter: in the lock, but there is no such role"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist"),
        ("{", "not readable JSON"),
        ("[]", "must hold an object"),
        ('{"ocr": {"id": "x"}}', "ocr.provider: Field required"),
        ('{"ocr": 3}', "ocr: "),
        ('{"ocr": {"provider": "p", "id": "x", "colour": "red"}}', "ocr.colour: Extra inputs"),
    ],
)
def test_a_damaged_lock_is_one_clear_error(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "models.lock.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelLockError, match=message) as caught:
        load_lock(path)
    assert caught.value.remedy == "Run `docmemo models lock`."


def test_a_plugins_code_is_part_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "house_reader.py"
    module.write_text("def make(params):\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    params = parse_params({"answer": {"reader": "house_reader:make"}})
    entry = lock.resolve_role(params, "reasoner")
    assert (entry["provider"], entry["id"]) == ("plugin", "house_reader:make")
    module.write_text("# a comment\ndef make(params):\n    return 1\n")
    assert lock.resolve_role(params, "reasoner") == entry
    module.write_text("def make(params):\n    return 2\n")
    assert lock.resolve_role(params, "reasoner") != entry
    assert "house_reader" not in sys.modules
    packaged = lock.resolve_role(parse_params({"answer": {"reader": "typer.main:get_command"}}), "reasoner")
    assert packaged["package_version"].startswith("typer ")


def test_a_reader_that_is_not_there_is_named(locked: Path) -> None:
    with pytest.raises(ModelLockError, match="plugin module no_such_house cannot be found"):
        require_lock(parse_params({"answer": {"reader": "no_such_house:make"}}), ["reasoner"], locked)
    with pytest.raises(ModelLockError, match=r"plugin module no_such.house cannot be found"):
        require_lock(parse_params({"answer": {"reader": "no_such.house:make"}}), ["reasoner"], locked)
    with pytest.raises(ConfigError, match="Unknown reader 'gpt'"):
        resolve_lock(parse_params({"answer": {"reader": "gpt"}}))
    with pytest.raises(ModelLockError, match="Unknown reader 'gpt'"):
        require_lock(parse_params({"answer": {"reader": "gpt"}}), ["reasoner"], locked)


def test_the_projects_own_lock_names_every_role() -> None:
    assert sorted(load_lock(Path(__file__).parents[2] / "models.lock.json")) == sorted(ROLES)
