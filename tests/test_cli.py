"""The command line: quick help, data on stdout, one message and an exit code for an error."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import docmemo
from docmemo.cli import app
from docmemo.commands import find_project
from docmemo.errors import ConfigError

ROOT = Path(__file__).parents[1]
runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_lists_the_commands_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from docmemo.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit as e: assert not e.code\n"
        "heavy = ('pydantic', 'numpy', 'pandas', 'pymupdf', 'rapidocr', 'prefect', 'dvc', 'ruamel.yaml')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    for name in ("models", "preset", "version"):
        assert name in done.stdout


def test_version() -> None:
    assert runner.invoke(app, ["version"]).stdout == f"{docmemo.__version__}\n"


def test_models_lock_then_check(project: Path) -> None:
    first = runner.invoke(app, ["models", "lock"])
    assert first.exit_code == 0
    assert "ocr: rapidocr" in first.stdout
    assert runner.invoke(app, ["models", "lock"]).stdout == ""
    checked = runner.invoke(app, ["models", "check"])
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert "matches what is installed" in checked.stderr


def test_models_check_shows_what_differs_and_fails(project: Path) -> None:
    runner.invoke(app, ["models", "lock"])
    path = project / "models.lock.json"
    values = json.loads(path.read_text())
    values["embedder"]["package_version"] = "bm25s 0.0"
    path.write_text(json.dumps(values))
    result = runner.invoke(app, ["models", "check"])
    assert result.exit_code == 2
    assert result.stdout.startswith("embedder: package_version is 'bm25s 0.0' in the lock")
    assert result.stderr.startswith("error: ")
    assert "docmemo models lock" in result.stderr


def test_an_error_is_a_message_with_its_remedy_and_no_traceback(project: Path) -> None:
    result = runner.invoke(app, ["preset", "use", "nope"])
    assert result.exit_code == ConfigError.exit_code
    assert result.stdout == ""
    assert result.stderr == "error: There is no preset 'nope'.\nKnown presets: api, embedded, gpu, laptop, paper.\n"
    debug = runner.invoke(app, ["--debug", "preset", "use", "nope"])
    assert debug.exit_code == ConfigError.exit_code
    assert "Traceback" in debug.stderr


def test_an_error_of_the_program_keeps_its_traceback(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, project: Path) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("docmemo.presets.apply_preset", broken)
    assert isinstance(runner.invoke(app, ["preset", "use", "embedded"]).exception, ZeroDivisionError)


def test_preset_use_prints_the_changes_and_works_from_a_subfolder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "params.yaml"
    path.write_text(path.read_text().replace("rounds: 3", "rounds: 5"))
    (project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/er")
    shown = runner.invoke(app, ["preset", "show", "embedded"])
    assert "loop.rounds: 5 -> 3" in shown.stdout
    assert runner.invoke(app, ["preset", "use", "embedded"]).stdout == "loop.rounds: 5 -> 3\n"
    assert "Would change nothing." in runner.invoke(app, ["preset", "show"]).stdout


def test_outside_a_project_the_error_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No params.yaml in .*Change to the project's folder"):
        find_project(tmp_path)


def test_an_unknown_command_is_refused() -> None:
    result = runner.invoke(app, ["nope"])
    assert result.exit_code == 2
    assert "No such command 'nope'" in result.stderr
