"""What a run over a model server survives: transient faults, a killed flow, a killed server.

    python -m benchmarks.fault_run [--questions 500] [--concurrency 32] [--faults 0.2]

The real flow (Prefect, journals, client, reader and reranker) against the scripted server of the tests, whose replies
the requests alone decide. Four runs over the same questions of up to three rounds, each with journals of its own:
without faults; with a share of all tries meeting a transient fault; with the flow killed (kill -9) in the middle and
started again; with the server killed in the middle and started again. Each run's answers are compared with the
fault-free ones, and the server's log is counted: a request that was answered without a fault and came again was
paid for twice.

`--worker FOLDER` is the process that is killed: it answers what its journal lacks, and exits as the stage does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmemo.config import AnswerParams, LoopParams, ModelParams, Params, RetrievalParams
from docmemo.errors import DocMemoError, IncompleteRunError
from docmemo.qa.answering import Answering
from docmemo.qa.corpus import Artifacts, Corpus, DocumentView
from docmemo.qa.journal import Journal
from docmemo.settings import load_settings
from docmemo.types import Document, Question
from flows.answer import Pending, answer_questions, answering_work
from flows.tasks import run_all
from stages.answer import write_answers
from stages.failures import report_failures
from tests.qa.archives import make_document
from tests.servers import ROOT, ScriptedServer

ANSWERS = "tests.qa.scripted_answers:answer"
TOPICS = ("heron", "turbine", "orchard", "lantern", "glacier", "harbour", "quarry", "meadow")
MODEL = ModelParams(id="scripted", context=32768, max_tokens=1024)
PARAMS = Params(
    answer=AnswerParams(reader="vlm", reranker="vlm", reader_model=MODEL, reranker_model=MODEL),
    loop=LoopParams(rounds=3, candidates=10, reranked=5, evidence=3),
)


def make_corpus(folder: Path, questions: int, documents: int, pages: int = 12) -> None:
    """Documents with small page pictures, and the questions about them."""
    rows = []
    for number in range(documents):
        topic = TOPICS[number % len(TOPICS)]
        texts = [
            "\n".join(f"Line {r}: the {topic} measured {100 * p + r} units in section {p}." for r in range(9))
            for p in range(1, pages + 1)
        ]
        make_document(folder / f"d{number}", texts, size=(240, 340), doc_id=f"d{number}")
    for number in range(questions):
        topic = TOPICS[number % documents % len(TOPICS)]
        text = f"How many units did the {topic} measure on line {number % 9} of section {number % pages}? ({number})"
        rows.append({"question_id": f"q{number:04d}", "doc_id": f"d{number % documents}", "question": text})
    (folder / "questions.json").write_text(json.dumps(rows), encoding="utf-8")


def open_corpus(folder: Path) -> tuple[Answering, list[Question]]:
    """The configured loop over the documents in `folder`, and the questions."""
    questions = [Question(**row) for row in json.loads((folder / "questions.json").read_text(encoding="utf-8"))]
    names = ("d.pages.zip", "d.safetensors", "d.summaries.json", "d.schema.json", "d.layout.zip")

    def opener(doc_id: str) -> DocumentView:
        return DocumentView(doc_id, Artifacts(*(folder / doc_id / name for name in names)), RetrievalParams())

    documents = {q.doc_id: Document(doc_id=q.doc_id, path=q.doc_id, sha256=q.doc_id) for q in questions}
    return Answering(PARAMS, {}, documents, {}, {}, Corpus(opener, keep=8), load_settings()), questions


def work(folder: Path, out: Path, prefect: bool = True) -> int:
    """Answer what the journal lacks and write the answers, as the stage does; returns the exit status."""
    settings = load_settings()
    answering, questions = open_corpus(folder)
    keys = {question.question_id: answering.key(question) for question in questions}
    by_key = {keys[question.question_id]: question for question in questions}
    journal = Journal(settings.journal_dir / "answers.sqlite")
    pending = {key: by_key[key] for key in journal.missing(by_key)}
    stopped: DocMemoError | None = None
    if pending and prefect:
        stopped = answer_questions(pending, answering, journal, settings)
    elif pending:
        items = {key: Pending(question, answering) for key, question in pending.items()}
        asked = run_all(list(items), answering_work(items, journal), settings.concurrency, lambda _key, _error: None)
        stopped = asyncio.run(asked)
    written = write_answers(questions, keys, journal, out, stopped)
    journal.close()
    try:
        report_failures(written.retryable, settings.accept_failures, "fault_run", "questions", stopped)
    except IncompleteRunError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


@dataclass
class Run:
    """One run with journals of its own; may take several processes."""

    name: str
    folder: Path
    corpus: Path
    server: ScriptedServer
    concurrency: int
    prefect: bool = True
    seconds: float = 0.0
    starts: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """Of its processes."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DOCMEMO_HOME": str(self.folder / "home"),
            "DOCMEMO_STATE": str(self.folder / "state"),
            "DOCMEMO_BASE_URL": self.server.base_url,
            "DOCMEMO_CONCURRENCY": str(self.concurrency),
            "DOCMEMO_RETRY_WAIT": "0.05",
            "DOCMEMO_SERVER_PATIENCE": "60",
        }

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start the process that works."""
        self.starts += 1
        command = [sys.executable, "-m", "benchmarks.fault_run", "--worker", str(self.corpus)]
        command += ["--out", str(self.folder / "out"), *([] if self.prefect else ["--plain"])]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env={**self.environment, **environment}, stdout=log, stderr=log
            )

    def finish(self, process: subprocess.Popen[bytes] | None = None, **environment: str) -> int:
        """Wait for the process, or a new one, to end."""
        begin = time.perf_counter()
        status = (process or self.start(**environment)).wait()
        self.seconds += time.perf_counter() - begin
        return status

    @property
    def n_finished(self) -> int:
        """Questions with a result in the journal so far."""
        path = self.folder / "home" / "journal" / "answers.sqlite"
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as journal:
                return int(journal.execute("SELECT COUNT(*) FROM results").fetchone()[0])
        except sqlite3.Error:
            return 0

    def wait_for(self, finished: int, process: subprocess.Popen[bytes]) -> None:
        """Wait until so many questions are finished."""
        while self.n_finished < finished:
            if process.poll() is not None:
                raise RuntimeError(f"{self.name} ended too early:\n{self.output}")
            time.sleep(0.02)

    @property
    def output(self) -> str:
        """What its processes printed."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    @property
    def answers(self) -> dict[str, dict[str, Any]]:
        """Records by question id."""
        lines = (self.folder / "out" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
        return {record["question_id"]: record for record in map(json.loads, lines)}

    @property
    def paid_twice(self) -> int:
        """Requests that came again although the server had answered them without a fault."""
        whole = [e for e in self.server.requests() if e["status"] == 200 and e["fault"] in (None, "slow")]
        return sum(times - 1 for times in Counter(e["digest"] for e in whole).values())


def differing(run: Run, reference: Mapping[str, dict[str, Any]]) -> list[str]:
    """Questions whose finished record is not the reference's."""
    return [q for q, record in run.answers.items() if record["outcome"] != "failed" and record != reference[q]]


def failed(run: Run) -> dict[str, str]:
    """Failed questions with their reasons."""
    return {q: r["error"]["message"] for q, r in run.answers.items() if r["outcome"] == "failed"}


def kill_flow(run: Run, at: int) -> None:
    """kill -9 of the flow once so many questions are finished."""
    process = run.start()
    run.wait_for(at, process)
    process.send_signal(signal.SIGKILL)
    run.finish(process)


def kill_server(run: Run, at: int, away: float) -> int:
    """kill -9 of the server once so many are finished, and a start `away` seconds later; the exit status."""
    process = run.start()
    run.wait_for(at, process)
    run.server.kill()
    time.sleep(away)
    run.server.start()
    return run.finish(process)


def line(run: Run, reference: Mapping[str, dict[str, Any]], said: str = "") -> str:
    """The figures of a run."""
    requests = run.server.requests()
    faults = sum(e["fault"] is not None for e in requests)
    n_failed = len(failed(run))
    processes = f"{run.starts} process{'' if run.starts == 1 else 'es'}"
    return (
        f"{run.name:22s} {len(run.answers) - n_failed:4d}/{len(run.answers)} finished, "
        f"{len(differing(run, reference))} differ, {len(requests)} requests ({faults} with a fault), "
        f"{run.paid_twice} paid twice, {processes}, {run.seconds:.0f} s{said}"
    )


def main() -> None:
    """Run all four, or be the worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--faults", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help="without Prefect, so without retries of questions")
    chosen = parser.parse_args()
    if chosen.worker is not None:
        sys.exit(work(chosen.worker, chosen.out, prefect=not chosen.plain))
    with tempfile.TemporaryDirectory(prefix="docmemo-faults-") as name:
        compare(Path(name), chosen)


def compare(folder: Path, chosen: argparse.Namespace) -> None:
    """The four runs, a line each."""
    corpus = folder / "corpus"
    make_corpus(corpus, chosen.questions, chosen.documents)
    calm: dict[str, Any] = {"answers": ANSWERS, "context": 32768}
    faults = {"probability": chosen.faults, "seed": chosen.seed}
    rough = {**calm, "faults": faults, "retry_after": 0.05, "slow": 0.1}
    reference: dict[str, dict[str, Any]] = {}

    def begin(name: str, script: dict[str, Any]) -> Run:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        server = ScriptedServer(script, place)
        server.start()
        return Run(name, place / "run", corpus, server, chosen.concurrency, not chosen.plain)

    run = begin("no faults", calm)
    run.finish()
    reference |= run.answers
    rounds = Counter(len(record["rounds"]) for record in reference.values())
    print(line(run, reference, f"; questions by rounds: {dict(sorted(rounds.items()))}"))
    run.server.kill()

    run = begin("transient faults", rough)
    run.finish()
    print(line(run, reference), *(f"  {q}: {why}" for q, why in failed(run).items()), sep="\n")
    while failed(run) and run.starts < 5:
        run.finish()
        print(line(run, reference, " (the next run)"))
    run.server.kill()

    run = begin("flow killed", rough)
    kill_flow(run, chosen.questions // 2)
    kept = run.n_finished
    run.finish()
    print(line(run, reference, f"; killed with {kept} finished"))
    run.server.kill()

    run = begin("server killed", rough)
    kill_server(run, chosen.questions // 2, 3.0)
    print(line(run, reference))
    run.server.kill()


if __name__ == "__main__":
    main()
