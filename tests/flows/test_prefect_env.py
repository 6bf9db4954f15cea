"""A Prefect server that a killed run left is ended; no other process is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from docmemo.settings import Settings
from flows.prefect_env import configure, end_orphans


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def record(state: Path, pid: int, started: float) -> Settings:
    state.mkdir(parents=True, exist_ok=True)
    (state / "prefect-servers.json").write_text(json.dumps([{"pid": pid, "started": started}]))
    return Settings(state=state)


def test_a_recorded_server_is_ended(tmp_path, sleeper):
    end_orphans(record(tmp_path, sleeper.pid, sleeper.create_time()))
    assert not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "prefect-servers.json").exists()


def test_a_process_that_got_the_same_pid_later_is_left_alone(tmp_path, sleeper):
    end_orphans(record(tmp_path, sleeper.pid, sleeper.create_time() - 100))
    assert sleeper.is_running()
    assert sleeper.status() != psutil.STATUS_ZOMBIE


def test_the_server_of_a_run_that_is_still_alive_is_left_alone(tmp_path, sleeper):
    settings = record(tmp_path, sleeper.pid, sleeper.create_time())
    me = psutil.Process()
    server = {
        "pid": sleeper.pid,
        "started": sleeper.create_time(),
        "owner": me.pid,
        "owner_started": me.create_time(),
    }
    (tmp_path / "prefect-servers.json").write_text(json.dumps([server]))
    end_orphans(settings)
    assert sleeper.is_running()
    assert sleeper.status() != psutil.STATUS_ZOMBIE


def test_a_record_that_cannot_be_read_is_no_obstacle(tmp_path):
    (tmp_path / "prefect-servers.json").write_text("{")
    end_orphans(Settings(state=tmp_path))


def test_prefect_keeps_to_the_projects_folder_and_what_the_user_set_stays(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("PREFECT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "DEBUG")
    before = dict(os.environ)
    try:
        configure(Settings(state=tmp_path / "state"))
        assert os.environ["PREFECT_HOME"] == str(tmp_path / "state" / "prefect")
        assert (tmp_path / "state" / "prefect").is_dir()
        assert os.environ["PREFECT_LOGGING_LEVEL"] == "DEBUG"
        assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    finally:
        os.environ.clear()
        os.environ.update(before)
