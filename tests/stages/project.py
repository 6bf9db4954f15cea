"""A throw-away checkout of the project with a small dataset, driven through `dvc` as a user would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pymupdf
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent
DEPENDED_ON = ("metrics/ablations.csv", "metrics/ablations.json", "metrics/ablations.md", "metrics/history.csv")
"""Files of metrics/ that no stage writes and the report reads."""

READER = '''
"""A reader for tests: slow, noting each read, failing for a question while a file says so."""
import asyncio, os, pathlib
from docmemo.errors import ModelUnavailableError
from docmemo.qa.protocols import ReadReply

class Reader:
    async def read(self, request):
        name = request.question.question_id
        with open("reads.log", "a") as log:
            log.write(name + "\\n")
        await asyncio.sleep(float(os.environ.get("TEST_READER_SECONDS", "0")))
        if name in (pathlib.Path("failing").read_text().split() if os.path.exists("failing") else ()):
            raise ModelUnavailableError(f"the server refused {name}")
        return ReadReply(outcome="answer", answer="412", useful=list(request.evidence[:1]))

def make(params):
    return Reader()
'''


def make_pdf(path: Path, topic: str, pages: int = 2, scanned: bool = False) -> None:
    """A small document about `topic`, as text or as pictures of text."""
    document = pymupdf.open()
    for number in range(1, pages + 1):
        page = document.new_page()
        page.insert_text((72, 90), f"Report on {topic}, part {number}", fontsize=18)
        for row in range(12):
            text = f"Line {row}: the {topic} measured {100 * number + row} units in section {number} of the report."
            page.insert_text((72, 130 + 22 * row), text)
    if scanned:
        pictures = pymupdf.open()
        for page in document:
            pictures.new_page().insert_image(page.rect, pixmap=page.get_pixmap(dpi=110))
        document = pictures
    document.save(path)


class Project:
    """One checkout.

    Args:
        folder: an empty folder.
        topics: one document each.
        environment: more variables for every command.
    """

    def __init__(
        self, folder: Path, topics: list[str], environment: Mapping[str, str] | None = None, **pdf: Any
    ) -> None:
        self._settle(folder, environment)
        files = self._git("ls-files", "-co", "--exclude-standard", cwd=ROOT).split("\n")
        for name in files:
            kept = name in DEPENDED_ON or name.split("/")[0] not in ("data", "tests", "docs", "metrics", "dvc.lock")
            if name and kept and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        (folder / "data").mkdir()
        (folder / "dataset").mkdir()
        for topic in topics:
            make_pdf(folder / "dataset" / f"{topic}.pdf", topic, **pdf)
        self.ask({f"q-{topic}": topic for topic in topics})
        self.set({"dataset.root": "dataset", "dataset.format": "folder"})
        self._git("init", "-q")
        self.commit("start")

    def _settle(self, folder: Path, environment: Mapping[str, str] | None) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "DOCMEMO_HOME": str(folder.parent / "home"),
            "DOCMEMO_RETRY_WAIT": "0.01",
            "DOCMEMO_ATTEMPTS": "2",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **(environment or {}),
        }

    def copy(self, parent: Path) -> Project:
        """This project with its store and cache in another, empty folder."""
        shutil.copytree(self.folder.parent, parent, dirs_exist_ok=True)
        made = Project.__new__(Project)
        given = {name: self.environment[name] for name in ("PREFECT_API_URL",) if name in self.environment}
        made._settle(parent / self.folder.name, given)
        return made

    def _git(self, *arguments: str, cwd: Path | None = None) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            check=True,
            env=self.environment,
        )
        return done.stdout.strip()

    def git(self, *arguments: str) -> str:
        """Run git in the checkout."""
        return self._git(*arguments)

    def commit(self, message: str) -> None:
        """Commit everything."""
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", message)

    def ask(self, topics: Mapping[str, str]) -> None:
        """Write the questions: id to topic."""
        rows = [
            {
                "question_id": name,
                "doc_id": f"{topic}.pdf",
                "question": f"How many units did the {topic} measure on line 3 of section 1?",
                "answer": "103",
                "answer_format": "Int",
                "evidence_pages": [1],
                "evidence_sources": ["text"],
            }
            for name, topic in topics.items()
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.folder / "dataset" / "questions.jsonl").write_text(text)

    def set(self, values: Mapping[str, Any]) -> None:
        """Change params.yaml by dotted keys."""
        path = self.folder / "params.yaml"
        params = yaml.safe_load(path.read_text())
        for key, value in values.items():
            *parts, last = key.split(".")
            at = params
            for part in parts:
                at = at[part]
            at[last] = value
        path.write_text(yaml.safe_dump(params, sort_keys=False))

    def use_test_reader(self) -> None:
        """Answer with the noting reader."""
        (self.folder / "test_reader.py").write_text(READER)
        self.set({"answer.reader": "test_reader:make"})
        self.run("docmemo", "models", "lock")

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command, output to a file."""
        with (self.folder.parent / "output.log").open("w") as output:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**self.environment, **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What the last command printed so far."""
        return (self.folder.parent / "output.log").read_text()

    def run(self, *command: str, expect: int = 0, **variables: str) -> str:
        """Run a command to its end and check its status."""
        status = self.start(*command, **variables).wait(timeout=400)
        assert status == expect or (expect == -1 and status != 0), f"{command} ended with {status}:\n{self.output}"
        return self.output

    def repro(self, *arguments: str, **more: Any) -> Repro:
        """`dvc repro`, read."""
        return Repro(self.run("dvc", "repro", *arguments, **more))

    def reads(self) -> list[str]:
        """Questions the test reader was asked, in order."""
        path = self.folder / "reads.log"
        return path.read_text().split() if path.exists() else []

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Records of a JSON-lines file."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def processes(self) -> list[psutil.Process]:
        """Processes of this checkout's stages that are still alive."""
        found = []
        for process in psutil.process_iter():
            try:
                mine = process.cwd() == str(self.folder) and process.status() != psutil.STATUS_ZOMBIE
                if mine and any("stages." in part or "pebble" in part for part in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def stored(self, kind: str) -> int:
        """Finished artifacts of a kind in the store."""
        folder = Path(self.environment["DOCMEMO_HOME"]) / "store" / kind
        return len(list(folder.rglob("*.json"))) if folder.is_dir() else 0


class Repro:
    """What a `dvc repro` said it did."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.ran = re.findall(r"Running stage '(\w+)'", output)

    def counts(self, step: str) -> tuple[int, int]:
        """(computed, reused) of a step; (0, 0) when it did not run."""
        match = re.search(rf"^{step}: (\d+) computed, (\d+) reused", self.output, re.MULTILINE)
        return (int(match[1]), int(match[2])) if match else (0, 0)


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
