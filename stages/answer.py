"""Answers every question: journal -> data/answers. Runs flows/answer.py for what is not answered yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from docmemo.artifacts import write_atomic, write_jsonl
from docmemo.errors import DocMemoError
from docmemo.fingerprint import canonical_json
from docmemo.models.lock import require_lock
from docmemo.pipeline.runner import Index, read_index
from docmemo.qa.answering import Answering, failed_record
from docmemo.qa.corpus import Artifacts, Corpus, DocumentView
from docmemo.qa.journal import Journal
from docmemo.qa.trace import Trace, write_trace
from docmemo.retrieval.encoders import query_encoder
from docmemo.types import AnswerRecord, Question
from stages.common import (
    FOLDERS,
    StageContext,
    log,
    read_documents,
    read_questions,
    stage_main,
    write_timings,
)
from stages.failures import not_asked, report_failures

OUT = Path("data/answers")


def open_answering(context: StageContext) -> Answering:
    """The configured loop over the offline stages' artifacts."""
    indexes = {name: read_index(folder) for name, folder in FOLDERS.items()}

    models = require_lock(context.params, ["embedder", "reranker", "reasoner"])
    encoder = query_encoder(context.params, models, context.settings)

    def artifact(name: str, doc_id: str) -> Path:
        return FOLDERS[name] / indexes[name].documents[doc_id].file

    def opener(doc_id: str) -> DocumentView:
        artifacts = Artifacts(
            pages=artifact("render", doc_id),
            layout=artifact("layout", doc_id),
            embedding=artifact("embed", doc_id),
            summaries=artifact("summarize", doc_id),
            schema=artifact("schema", doc_id),
        )
        return DocumentView(doc_id, artifacts, context.params.retrieval, encoder)

    documents = {document.doc_id: document for document in read_documents()}
    return Answering(
        params=context.params,
        models=models,
        documents=documents,
        failed=failures(indexes),
        content={d: content(indexes, d) for d in documents},
        corpus=Corpus(opener),
        settings=context.settings,
    )


def failures(indexes: Mapping[str, Index]) -> dict[str, str]:
    """doc_id to the reason why a stage has no artifact of it."""
    return {doc_id: reason for index in indexes.values() for doc_id, reason in index.failed.items()}


def content(indexes: Mapping[str, Index], doc_id: str) -> dict[str, str]:
    """Digests of a document's artifacts by stage."""
    return {n: i.documents[doc_id].sha256 for n, i in indexes.items() if doc_id in i.documents}


def run(context: StageContext) -> None:
    """Answer what is missing, then write answers, traces and timings."""
    questions = read_questions()
    answering = open_answering(context)
    keys = {question.question_id: answering.key(question) for question in questions}
    by_key = {keys[question.question_id]: question for question in questions}
    journal = Journal(context.settings.journal_dir / "answers.sqlite")
    pending = {key: by_key[key] for key in journal.missing(by_key)}
    log.info("answer: %d to answer, %d already answered", len(pending), len(questions) - len(pending))
    stopped: DocMemoError | None = None
    if pending:
        from flows.answer import answer_questions

        bar, advance = context.progress("answer", len(pending))
        with bar:
            stopped = answer_questions(
                dict(sorted(pending.items(), key=lambda item: (item[1].doc_id, item[1].question_id))),
                answering,
                journal,
                context.settings,
                advance=advance,
                say=lambda text: context.console.print(f"answer: {text}"),
            )
    written = write_answers(questions, keys, journal, OUT, stopped)
    write_timings("answer", written.seconds)
    write_atomic(OUT / "code.json", canonical_json({"code": answering.code}).encode())
    journal.close()
    report_failures(written.retryable, context.settings.accept_failures, "answer", "questions", stopped)


@dataclass(frozen=True)
class Written:
    """What `write_answers` wrote."""

    records: list[AnswerRecord]
    seconds: dict[str, float]
    """Wall seconds by question id, of those that have a result."""
    retryable: dict[str, str]
    """question_id to the message of its retryable failure."""


def write_answers(
    questions: list[Question],
    keys: Mapping[str, str],
    journal: Journal,
    out: Path,
    stopped: DocMemoError | None = None,
) -> Written:
    """Write answers.jsonl and traces/ into `out` from the journal.

    Args:
        questions: all of them, in the order of the records.
        keys: question id to key.
        journal: holds their results and failures.
        out: folder of the stage.
        stopped: what stopped the run, the reason of those that were not asked.
    """
    results = journal.results(keys.values())
    failed = journal.failures(keys.values())
    records: list[AnswerRecord] = []
    seconds: dict[str, float] = {}
    retryable: dict[str, str] = {}
    traces = out / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    for path in traces.iterdir():
        path.unlink()
    for question in questions:
        key = keys[question.question_id]
        result = results.get(key)
        if result is None:
            attempt = failed.get(key) or not_asked(stopped)
            records.append(failed_record(question, attempt.failure, attempt.usage))
            retryable[question.question_id] = attempt.failure.message
            continue
        records.append(AnswerRecord.model_validate_json(result.record))
        seconds[question.question_id] = round(result.seconds, 4)
        if result.trace:
            write_trace(traces, Trace.model_validate(json.loads(result.trace)))
    write_jsonl(out / "answers.jsonl", records)
    return Written(records, seconds, retryable)


if __name__ == "__main__":
    stage_main("answer", [OUT], run)
