"""A project whose pipeline does no work: three stages of a few lines that write metrics/ by the project's own code.

Whether its answers are right depends on the model in the lock, so what re-evaluation does around a pipeline can be
tested in seconds. It has no code of the project inside: what is installed does the work.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from tests.servers import ScriptedServer
from tests.stages.project import ROOT, Project

DVC = """
stages:
  prepare:
    cmd: exec python prepare.py
    deps: [prepare.py]
    params: [dataset]
    outs: [data/prepared]
  answer:
    cmd: exec python answer.py
    deps: [answer.py, data/prepared]
    params: [{models.lock.json: [reasoner]}]
    outs: [data/answers]
  report:
    cmd: exec python report.py
    deps: [report.py, data/answers]
    params: [{models.lock.json: }]
    outs:
      - metrics/questions.csv: {cache: false}
      - metrics/provenance.json: {cache: false}
    metrics: [metrics/scores.json: {cache: false}]
"""

PREPARE = """
import pathlib
pathlib.Path("data").mkdir(exist_ok=True)
pathlib.Path("data/prepared").write_text("ready")
"""

ANSWER = """
import json, os, pathlib, sys, time
notes = pathlib.Path(os.environ["TEST_NOTES"])
with open(notes / "reads.log", "a") as log:
    log.write("answered\\n")
time.sleep(float(os.environ.get("TEST_READER_SECONDS", "0")))
if (notes / "failing").exists():
    sys.exit(3)
entry = json.loads(pathlib.Path("models.lock.json").read_text())["reasoner"]
pathlib.Path("data/answers").write_text(entry["served"]["root"])
"""

REPORT = f"""
import json, pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.evaluation.runs import Runs, all_right, wrong_in, make_questions
quality = pathlib.Path("data/answers").read_text()
runs = Runs.__new__(Runs)
runs.folder = pathlib.Path.cwd()
(runs.folder / "metrics").mkdir(exist_ok=True)
wrong = [q.question_id for q in make_questions() if q.question_id.endswith(("q0", "q1", "q2"))]
lock = json.loads(pathlib.Path("models.lock.json").read_text())
runs.write(all_right if "good" in quality else wrong_in(*wrong), models=lock)
"""

GOOD, WORSE = "maker/good-1", "maker/worse-2"
"""What the server says its model is."""


class Toy(Project):
    """One such project, with a committed and accepted run of a good model behind a scripted server.

    Args:
        folder: an empty folder.
        environment: more variables for every command.
        server: says what its model is.
    """

    server: ScriptedServer

    @classmethod
    def make(cls, folder: Path, environment: dict[str, str], server: ScriptedServer) -> Toy:
        """A new one."""
        made = cls.__new__(cls)
        made.server = server
        made._settle(folder, {**environment, "DOCMEMO_BASE_URL": server.base_url, "TEST_NOTES": str(folder.parent)})
        texts = {
            "dvc.yaml": DVC,
            "prepare.py": PREPARE,
            "answer.py": ANSWER,
            "report.py": REPORT,
            "params.yaml": "dataset: {root: documents}\nanswer: {reader: vlm, reader_model: {id: scripted}}\n",
            ".gitignore": "/data\n/.docmemo/\n",
            ".dvcignore": ".docmemo\n",
        }
        for name, text in texts.items():
            (folder / name).write_text(text)
        made.change_model(GOOD)
        made.git("init", "-q", "-b", "main")
        made.run("dvc", "init", "-q")
        made.run("docmemo", "models", "lock")
        made.repro()
        made.commit("first run")
        made.run("docmemo", "accept")
        return made

    def copied(self, parent: Path) -> Toy:
        """The project as it was made, in another, empty folder."""
        shutil.copytree(self.folder.parent, parent, dirs_exist_ok=True)
        made = Toy.__new__(Toy)
        made.server, made.folder = self.server, parent / self.folder.name
        made.environment = {**self.environment, "DOCMEMO_HOME": str(parent / "home"), "TEST_NOTES": str(parent)}
        (parent / "reads.log").unlink()
        made.change_model(GOOD)
        return made

    def change_model(self, root: str) -> None:
        """Another model is served under the same name."""
        self.server.reset(models=[{"id": "scripted", "root": root}])

    def stop(self) -> None:
        """End what still runs in the project or in a checkout below it."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd().startswith(str(self.folder)):
                    process.kill()

    @property
    def answered(self) -> int:
        """How often the stage `answer` really ran."""
        path = self.folder.parent / "reads.log"
        return len(path.read_text().split()) if path.exists() else 0


def api(project: Project, path: str, body: dict[str, Any]) -> Any:
    """A request to the Prefect API."""
    request = urllib.request.Request(
        f"{project.environment['PREFECT_API_URL']}/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def flow_runs(project: Project) -> list[dict[str, Any]]:
    """Runs of the flow `reevaluate` on this project, oldest first."""
    body = {"flows": {"name": {"any_": ["reevaluate"]}}, "sort": "EXPECTED_START_TIME_ASC"}
    found = api(project, "flow_runs/filter", body)
    return [run for run in found if run["parameters"].get("repository") == str(project.folder)]


def artifacts(project: Project, run: dict[str, Any]) -> dict[str, str]:
    """Artifacts of a flow run: key to text."""
    found = api(project, "artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}})
    return {artifact["key"]: artifact["data"] for artifact in found}
