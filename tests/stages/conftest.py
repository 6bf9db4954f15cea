"""Throw-away checkouts for all pipeline tests; they share one Prefect server (tests/prefect_server.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stages.project import Project


@pytest.fixture
def checkout(tmp_path: Path, prefect_url: str):
    """Makes projects that share the Prefect server."""
    made: list[Project] = []

    def make(topics: list[str], **pdf: object) -> Project:
        folder = tmp_path / f"project{len(made)}"
        folder.mkdir()
        made.append(Project(folder, topics, {"PREFECT_API_URL": prefect_url}, **pdf))
        return made[-1]

    yield make
    for project in made:
        for process in project.processes():
            process.kill()
