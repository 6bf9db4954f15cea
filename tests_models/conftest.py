"""Tests with torch and colpali-engine: `make test-models`. A missing package is a failure here, not a skip."""

from __future__ import annotations

import os
import signal
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub: nothing may reach for the hub

import pytest

from docmemo.config import EmbedParams
from docmemo.models.colqwen import ColQwen, import_torch
from docmemo.models.colqwen_files import find_weights
from tests_models import tiny

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # Started in the background of a script, which ignores Ctrl-C and hands that on to every process the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store and journals of a test never touch the user's."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("DOCMEMO_HOME", str(home))
    monkeypatch.setenv("DOCMEMO_DEVICE", "cpu")
    return home


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random ColQwen2.5, saved."""
    torch = import_torch()
    torch.set_num_threads(1)  # two threads that wait for each other take ten times as long on a busy machine
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny-colqwen")


@pytest.fixture(scope="session")
def adapter_folder(tiny_folder: Path) -> Path:
    """A LoRA adapter on it, saved beside it."""
    return tiny.save_adapter(tiny_folder.parent / "tiny-adapter", tiny_folder)


@pytest.fixture(scope="session")
def model(tiny_folder: Path) -> ColQwen:
    """The tiny model, loaded as the real one is."""
    return ColQwen(find_weights(EmbedParams(model=str(tiny_folder))), "cpu")
