"""Tests with vLLM on the CPU and MinerU: `make test-servers`. A missing server is a failure here, not a skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from docmemo.models.mineru_command import MinerU, find_mineru
from docmemo.models.serve_plan import find_vllm

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store and journals of a test never touch the user's."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("DOCMEMO_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def vllm() -> Path:
    """The command of the environment that `make test-servers` made."""
    return Path(find_vllm(os.environ.get("DOCMEMO_VLLM", "vllm")))


@pytest.fixture(scope="session")
def mineru() -> MinerU:
    """MinerU of the version that is read."""
    return find_mineru(os.environ.get("DOCMEMO_MINERU", "mineru-kit"))
