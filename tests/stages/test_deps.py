"""dvc.yaml names exactly the modules each stage loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.stage_deps import declared_modules, loaded_modules


@pytest.mark.usefixtures("own_home")
def test_the_deps_of_every_stage_are_the_modules_it_loads(tmp_path: Path, prefect_url: str, monkeypatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    (tmp_path / "work").mkdir()
    assert declared_modules() == loaded_modules(tmp_path / "work"), "run `python -m scripts.stage_deps --write`"
