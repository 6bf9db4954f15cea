"""The journal of paid calls: what a key depends on, and what survives a killed process."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import BaseModel

from docmemo.errors import ArtifactError
from docmemo.models.calls import CallJournal, PaidCall, request_key
from docmemo.models.chat import Message
from docmemo.models.openai_compatible import open_model
from docmemo.usage import Usage
from tests.models.asking import ModelParams, Verdict, model, page, say
from tests.servers import ROOT, ScriptedServer

CALL = PaidCall('{"pages": [], "why": "x"}', Usage(calls=2, input_tokens=5, cost_usd=None), repaired=True)


class Other(BaseModel):
    pages: list[int]
    why: str


def test_a_key_depends_on_model_words_images_and_schema_alone() -> None:
    identity = {"entry": {"id": "m"}}
    key = request_key(identity, say("q", page()), Verdict)
    assert key == request_key(dict(identity), say("q", page()), Verdict)
    others = [
        request_key({"entry": {"id": "n"}}, say("q", page()), Verdict),
        request_key(identity, say("r", page()), Verdict),
        request_key(identity, say("q", page(color="black")), Verdict),
        request_key(identity, say("q"), Verdict),
        request_key(identity, say("q", page()), Other),
        request_key(identity, [Message("user", ["Read the pages."]), Message("user", ["q", page()])], Verdict),
    ]
    assert len({key, *others}) == 7


async def test_a_recorded_reply_is_found_as_it_was_also_by_another_connection(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path / "calls.sqlite")
    assert journal.find("k") is None
    assert await journal.record("k", CALL, "m") == CALL
    assert journal.find("k") == CALL
    assert CallJournal(tmp_path / "calls.sqlite").find("k") == CALL


async def test_replies_that_come_together_are_all_recorded(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path / "calls.sqlite")
    calls = [PaidCall(f'{{"n": {n}}}', Usage(calls=1), repaired=False) for n in range(50)]
    recorded = await asyncio.gather(*(journal.record(str(n), call, "m") for n, call in enumerate(calls)))
    assert recorded == calls
    assert [CallJournal(journal.path).find(str(n)) for n in range(50)] == calls


async def test_a_reply_that_cannot_be_written_is_an_error_and_not_lost_in_silence(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path / "calls.sqlite")
    with sqlite3.connect(journal.path) as other:
        other.execute("DROP TABLE calls")
    with pytest.raises(ArtifactError, match="cannot be used: no such table"):
        await journal.record("k", CALL, "m")
    with pytest.raises(ArtifactError, match="no such table"):
        journal.check()


async def test_nothing_more_is_paid_for_once_a_reply_could_not_be_recorded(
    server: ScriptedServer, own_home: Path
) -> None:
    reader = model()
    with sqlite3.connect(own_home / "journal" / "calls.sqlite") as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    for number in range(3):
        with pytest.raises(ArtifactError, match="disk is full"):
            await reader.ask(say(f"Which {number}?"), Verdict)
    assert len(server.requests()) == 1


async def test_the_first_of_two_processes_decides_what_both_see(tmp_path: Path) -> None:
    first, second = CallJournal(tmp_path / "calls.sqlite"), CallJournal(tmp_path / "calls.sqlite")
    later = PaidCall('{"pages": [1], "why": "y"}', Usage(calls=1), repaired=False)
    await first.record("k", CALL, "m")
    assert await second.record("k", later, "m") == CALL
    assert await second.record("k", later, "m", replace=True) == later


def test_a_file_that_is_no_journal_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").write_text("this is not a database, and long enough to be noticed as such" * 20)
    with pytest.raises(ArtifactError, match="move the file away"):
        CallJournal(tmp_path / "calls.sqlite")


async def test_a_recorded_reply_that_no_longer_fits_is_asked_again(server: ScriptedServer, own_home: Path) -> None:
    reader = model()
    key = request_key(reader.identity, say("Which?"), Verdict)
    journal = CallJournal(own_home / "journal" / "calls.sqlite")
    await journal.record(key, PaidCall('{"pages": "old form"}', Usage(calls=1), repaired=False), "scripted")
    reply = await reader.ask(say("Which?"), Verdict)
    assert not reply.from_journal
    assert (await reader.ask(say("Which?"), Verdict)).from_journal


async def test_a_check_of_a_server_can_leave_the_journal_alone(server: ScriptedServer) -> None:
    for _ in range(2):
        await open_model("reasoner", ModelParams(id="scripted"), journal=False).ask(say("Which?"), Verdict)
    assert len(server.requests()) == 2


ASKER = "import asyncio; from tests.models.test_calls import forty; asyncio.run(forty())"


async def forty() -> list[str]:
    """Ask forty questions and print each reply as it comes."""
    reader = model()

    async def one(number: int) -> str:
        text = (await reader.ask(say(f"Which {number}?"), Verdict)).value.model_dump_json()
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        return text

    return list(await asyncio.gather(*(one(number) for number in range(40))))


def test_a_killed_process_repeats_only_what_was_in_flight(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reset(delay=0.15)
    monkeypatch.setenv("DOCMEMO_CONCURRENCY", "4")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen([sys.executable, "-c", ASKER], env=environment, stdout=subprocess.PIPE, text=True)
    while len(server.requests()) < 20:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    printed = (killed.stdout.read() if killed.stdout else "").splitlines()
    killed.wait()
    sent_before = len(server.requests())
    server.change(delay=0)
    after = asyncio.run(forty())
    assert sent_before < 40
    assert printed
    assert set(printed) <= set(after), "what was seen before the kill is the same after it"
    attempts = [entry["attempt"] for entry in server.requests()]
    assert max(attempts) <= 2
    # In flight: four requests, and the four before them if their replies were not on the disk yet.
    assert attempts.count(2) <= 8
    assert len(attempts) == 40 + attempts.count(2)
