"""Figures of a run: answers and judgements -> metrics/ (in git) and metrics/report.html."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docmemo.artifacts import read_jsonl, read_pages, write_atomic
from docmemo.evaluation.ablation_record import models_digest, parameters_digest, read_ablations
from docmemo.evaluation.aggregate import Spend, aggregate, build_cases
from docmemo.evaluation.history import read_history
from docmemo.evaluation.report import Beside, write_report
from docmemo.evaluation.tables import (
    CURVE_COLUMNS,
    ROUND_COLUMNS,
    SLICE_COLUMNS,
    curve_rows,
    provenance,
    question_columns,
    question_rows,
    round_rows,
    slice_rows,
    to_csv,
)
from docmemo.evaluation.terminal import print_headline
from docmemo.fingerprint import digest
from docmemo.models.lock import load_lock
from docmemo.pipeline.runner import read_index
from docmemo.prompts import digests_for
from docmemo.types import AnswerRecord, Document, Judgement
from docmemo.usage import Usage
from stages.common import (
    FOLDERS,
    StageContext,
    read_documents,
    read_questions,
    read_timings,
    stage_main,
)
from stages.dataset import read_dataset_info

METRICS = Path("metrics")
SCORES = METRICS / "scores.json"
REPORT = METRICS / "report.html"
HISTORY = METRICS / "history.csv"


def documents_after_all_stages() -> list[Document]:
    """The manifest, with documents that an offline stage could not process marked as failed."""
    reasons = {d: r for folder in FOLDERS.values() for d, r in read_index(folder).failed.items()}
    return [
        document
        if document.status != "ok" or document.doc_id not in reasons
        else document.model_copy(update={"status": "failed", "reason": reasons[document.doc_id]})
        for document in read_documents()
    ]


def scanned_documents() -> dict[str, bool]:
    """doc_id to whether most of its pages have no text layer; read one archive at a time."""
    index = read_index(FOLDERS["render"])
    return {
        doc_id: read_pages(FOLDERS["render"] / entry.file).is_scanned for doc_id, entry in index.documents.items()
    }


def spend(answers: Sequence[AnswerRecord]) -> Spend:
    """Offline spend and the seconds of both sides; None where this checkout has not run the stage."""
    offline = [read_timings(stage) for stage in FOLDERS]
    online, judging = read_timings("answer"), read_timings("judge")
    known = all(answer.question_id in online for answer in answers if answer.outcome != "failed")
    return Spend(
        offline=sum((read_index(folder).usage for folder in FOLDERS.values()), Usage()),
        seconds_offline=round(sum(sum(t.values()) for t in offline), 1) if all(offline) else None,
        seconds_online=round(sum(online.values()), 1) if online and known else None,
        seconds_judge=round(sum(judging.values()), 1) if judging else None,
    )


def steady_seconds(scores: dict[str, Any], committed: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keep the committed seconds when nothing else differs, so that the same run elsewhere leaves git clean."""
    if committed is None or "seconds" not in committed:
        return scores
    without = [{key: value for key, value in s.items() if key != "seconds"} for s in (scores, committed)]
    return {**scores, "seconds": committed["seconds"]} if without[0] == without[1] else scores


def code_of_run() -> str:
    """Digest of the code that made this run's artifacts, answers and judgements."""
    made_by = {name: read_index(folder).code for name, folder in FOLDERS.items()}
    made_by["answer"] = json.loads(Path("data/answers/code.json").read_bytes())["code"]
    return digest(made_by)


def judge_identity(backend: str, judgements: Sequence[Judgement]) -> dict[str, str]:
    """Rule, and of a language model its name and its prompt's digest as they stand beside the verdicts."""
    identity = {"backend": backend, "scorer": judgements[0].scorer if judgements else ""}
    verdicts = [judgement.verdict for judgement in judgements if judgement.verdict]
    if verdicts:
        identity["model"] = ", ".join(sorted({verdict.judge for verdict in verdicts}))
        identity["prompt"] = ", ".join(sorted({verdict.prompt for verdict in verdicts}))
    return identity


def committed_scores() -> dict[str, Any] | None:
    """scores.json of the last commit; None without git or without such a file."""
    try:
        done = subprocess.run(
            ["git", "show", f"HEAD:./{SCORES.as_posix()}"], capture_output=True, check=True, timeout=30
        )
        value = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def run(context: StageContext) -> None:
    """Write scores, tables, provenance and the report; print the headline."""
    params = context.params
    questions = read_questions()
    answers = list(read_jsonl(Path("data/answers/answers.jsonl"), AnswerRecord))
    judgements = list(read_jsonl(Path("data/judgements/judgements.jsonl"), Judgement))
    documents = documents_after_all_stages()
    scanned = scanned_documents()
    forced = params.loop.force_rounds
    scores = aggregate(
        questions,
        answers,
        judgements,
        documents,
        rounds=params.loop.rounds,
        forced=forced,
        scanned=scanned,
        spend=spend(answers),
    )
    scores = steady_seconds(scores, committed_scores())
    cases = build_cases(questions, answers, judgements, documents, scanned)
    info = read_dataset_info()
    made_with = provenance(
        params=params.model_dump(mode="json", by_alias=True, exclude={"report"}),
        models=load_lock(),
        prompts=digests_for(params),
        code=code_of_run(),
        dataset={"format": info.format, "digest": info.digest, "n_questions": info.n_questions},
        judge=judge_identity(params.judge.backend, judgements),
    )
    rounds = params.loop.rounds
    write_text(SCORES, json.dumps(scores, indent=1, sort_keys=True))
    write_text(METRICS / "provenance.json", json.dumps(made_with, indent=1, sort_keys=True))
    write_text(METRICS / "rounds.csv", to_csv(round_rows(cases, rounds, forced=forced), ROUND_COLUMNS))
    write_text(METRICS / "curves.csv", to_csv(curve_rows(cases, rounds), CURVE_COLUMNS))
    write_text(METRICS / "slices.csv", to_csv(slice_rows(scores), SLICE_COLUMNS))
    write_text(METRICS / "questions.csv", to_csv(question_rows(cases, rounds), question_columns(rounds)))
    write_report(
        REPORT,
        scores=scores,
        questions=questions,
        answers=answers,
        judgements=judgements,
        documents=documents,
        pages_dir=FOLDERS["render"],
        layout_dir=FOLDERS["layout"],
        params=params.report,
        provenance=made_with,
        beside=Beside(
            ablations=read_ablations(METRICS),
            parameters=parameters_digest(params),
            models=models_digest(load_lock()),
            history=read_history(HISTORY),
        ),
        scanned=scanned,
        cache=context.settings.store_dir / "thumbnails",
    )
    print_headline(scores, context.console, evidence_finder=params.answer.reader == "embedded")


def write_text(path: Path, text: str) -> None:
    """Write a text file that ends in one newline."""
    write_atomic(path, (text.rstrip("\n") + "\n").encode())


if __name__ == "__main__":
    stage_main("report", [METRICS], run)
