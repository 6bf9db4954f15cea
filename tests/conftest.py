"""What all tests share: a store of their own, and the folder of real benchmark documents where there is one."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.prefect_server import prefect_url as prefect_url
from tests.servers.fixtures import _one_server as _one_server
from tests.servers.fixtures import scripted_server as scripted_server
from tests.servers.fixtures import server as server

ROOT = Path(__file__).resolve().parent.parent
DATASETS = ROOT.parent / "shared" / "datasets"

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # Started in the background of a script, which ignores Ctrl-C and hands that on to every process the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store, journals and locks of a test never touch the user's."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("DOCMEMO_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def datasets() -> Path:
    """The folder of real benchmark documents; skips where it is absent."""
    if not DATASETS.is_dir():
        pytest.skip(f"{DATASETS} is absent: real benchmark documents are not part of the repository")
    return DATASETS
