"""A throw-away repository whose commits hold metrics/ of synthetic runs, written by the project's own code."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docmemo.config import Params
from docmemo.evaluation.aggregate import aggregate, build_cases
from docmemo.evaluation.tables import provenance, question_columns, question_rows, to_csv
from docmemo.types import AnswerRecord, Document, Question
from tests.evaluation.builders import answered, failed, judged, one_round, question

DOCUMENTS = 12
EACH = 8
SOURCES = ("text", "table", "chart", "figure")


def make_questions(documents: int = DOCUMENTS, each: int = EACH) -> list[Question]:
    """`each` questions a document: most with one gold page, some with two, the last one unanswerable."""
    made = []
    for d in range(documents):
        for i in range(each):
            gold, pages = ("Not answerable", []) if i == each - 1 else ("yes", [i + 1] if i % 3 else [i + 1, i + 2])
            made.append(
                question(
                    len(made),
                    gold,
                    pages,
                    f"doc{d}.pdf",
                    question_id=f"d{d}-q{i}",
                    evidence_sources=[SOURCES[i % 4]] if pages else [],
                    answer_format="Str" if pages else "None",
                    doc_type="report" if d % 2 else "manual",
                )
            )
    return made


def reply(asked: Question, *, right: bool, found: bool) -> AnswerRecord:
    """An answer that is right or wrong, after reading the gold pages or another."""
    read = asked.evidence_pages if found and asked.evidence_pages else [40]
    text = None if asked.answer == "Not answerable" and right else "yes" if right else "no"
    return answered(asked, text, [one_round(1, [*read, 41], read)], confidence=None)


class Runs:
    """The repository.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "metrics").mkdir(parents=True)
        (folder / "params.yaml").write_text("{}\n")
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def write(
        self,
        answer: Callable[[Question], AnswerRecord],
        *,
        questions: list[Question] | None = None,
        params: Mapping[str, Any] | None = None,
        **made_with: Any,
    ) -> dict[str, Any]:
        """Write metrics/ of a run into the working tree; returns its scores."""
        asked = questions or make_questions()
        answers = [answer(q) for q in asked]
        judgements = judged(asked, answers)
        names = sorted({q.doc_id for q in asked})
        documents = [Document(doc_id=name, path=name, doc_type="report") for name in names]
        scanned = {name: number % 3 == 0 for number, name in enumerate(names)}
        cases = build_cases(asked, answers, judgements, documents, scanned)
        scores = aggregate(asked, answers, judgements, documents, rounds=1, scanned=scanned)
        values = Params(**(params or {"answer": {"reader": "test_reader:make"}}))
        made = {
            "params": values.model_dump(mode="json", by_alias=True, exclude={"report"}),
            "models": {"reasoner": {"provider": "plugin", "id": "reader"}},
            "prompts": {},
            "code": "c0de",
            "dataset": {"format": "folder", "digest": "d1", "n_questions": len(asked)},
            "judge": {"backend": "rule", "scorer": "mmlongbench/1"},
        }
        metrics = self.folder / "metrics"
        (metrics / "scores.json").write_text(json.dumps(scores))
        (metrics / "provenance.json").write_text(json.dumps(provenance(**(made | made_with))))
        (metrics / "questions.csv").write_text(to_csv(question_rows(cases, 1), question_columns(1)))
        return scores

    def commit(self, message: str) -> str:
        """Commit everything; returns the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def run(self, message: str, answer: Callable[[Question], AnswerRecord], **more: Any) -> str:
        """Write and commit a run; returns the commit."""
        self.write(answer, **more)
        return self.commit(message)


def all_right(asked: Question) -> AnswerRecord:
    """Everything found and answered rightly."""
    return reply(asked, right=True, found=True)


def wrong_in(*names: str) -> Callable[[Question], AnswerRecord]:
    """These questions wrong, their pages not found."""
    return lambda q: reply(q, right=q.question_id not in names, found=q.question_id not in names)


def failing_in(*names: str) -> Callable[[Question], AnswerRecord]:
    """These questions failed."""
    return lambda q: failed(q) if q.question_id in names else all_right(q)
