"""The full method beside each of its ablations and the baselines, on the offline artifacts that are there.

`python -m flows.ablations` (`make ablations`) answers every question once a configuration, all in one process and
one Prefect flow, and writes metrics/ablations.csv, .md and .json (which run they belong to). A task holds all
configurations of one question, since a task for each answer would cost more than the embedded reader does.
Configurations differ in `loop.ablation` alone, so they share documents in memory; each answer is filed under its own
key in the journal that the stage `answer` uses, so finished answers are used again and an interrupted run goes on.
Judging by the benchmark's rule asks nobody: it is done at the end, each time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from docmemo.artifacts import write_atomic, write_json
from docmemo.config import Ablation, Params
from docmemo.errors import ArtifactError, ConfigError, DocMemoError
from docmemo.evaluation.ablation_record import (
    RECORD,
    ROLES,
    TABLE,
    AblationRecord,
    curves_of,
    models_digest,
    parameters_digest,
)
from docmemo.evaluation.ablations import CSV_COLUMNS, FULL, Configuration, MadeWith, csv_rows, markdown
from docmemo.evaluation.aggregate import aggregate, build_cases
from docmemo.evaluation.judge import judge_by_rule
from docmemo.evaluation.scorers import Scorer, get_scorer
from docmemo.evaluation.tables import to_csv
from docmemo.models.lock import require_lock
from docmemo.qa.answering import Answering
from docmemo.qa.journal import Journal
from docmemo.types import Question
from flows.answer import Pending, answering_work, batch_work, check_parts, run_flow
from stages.answer import Written, open_answering, write_answers
from stages.common import CORPUS, FOLDERS, StageContext, log, read_questions, stage_main
from stages.dataset import read_dataset_info
from stages.failures import report_failures
from stages.report import documents_after_all_stages

OUT = Path("data/ablations")
"""Answers and traces, one folder a configuration; neither git nor DVC tracks it."""
NAMES: tuple[str, ...] = (FULL, *(name for name in get_args(Ablation) if name != "none"))
REPRO = "dvc repro embed schema"


def with_ablation(params: Params, name: str) -> Params:
    """The parameters of one configuration. Questions stop by themselves: forced rounds are for curves only."""
    ablation = "none" if name == FULL else name
    return params.model_copy(
        update={"loop": params.loop.model_copy(update={"ablation": ablation, "force_rounds": False})}
    )


def check_names(names: Sequence[str]) -> list[str]:
    """The names without repetitions, "full" first, since differences are to it.

    Raises:
        ConfigError: if one is unknown.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ConfigError(f"Unknown configurations {', '.join(unknown)}.", remedy=f"Known: {', '.join(NAMES)}.")
    return sorted(set(names), key=lambda name: (name != FULL, names.index(name)))


def check_artifacts() -> None:
    """Make sure that the offline stages have run, and warn where DVC says that they would run again.

    Raises:
        ArtifactError: if something is missing.
    """
    missing = [str(folder) for folder in (CORPUS, *FOLDERS.values()) if not folder.is_dir()]
    if missing:
        raise ArtifactError(f"There is no {', '.join(missing)}.", remedy=f"Run `{REPRO}` first.")
    if Path(".dvc").is_dir():
        command = [sys.executable, "-m", "dvc", "status", "--quiet", "--with-deps", "embed", "schema"]
        changed = 1
        if subprocess.run(command, capture_output=True, check=False).returncode == changed:
            log.warning("ablations: the offline stages are not up to date; `%s` brings them so.", REPRO)


def answer_all(
    context: StageContext, questions: Sequence[Question], configured: Mapping[str, Answering]
) -> tuple[dict[str, Written], DocMemoError | None]:
    """Answer what the journal lacks, then write each configuration's answers and traces.

    Returns:
        What was written, by configuration, and what stopped the run before its end.
    """
    keys = {name: {q.question_id: a.key(q) for q in questions} for name, a in configured.items()}
    items = {keys[n][q.question_id]: Pending(q, a) for q in questions for n, a in configured.items()}
    journal = Journal(context.settings.journal_dir / "answers.sqlite")
    missing = journal.missing(items)
    done = len(items) - len(missing)
    log.info("ablations: %d configurations, %d to answer, %d already", len(configured), len(missing), done)
    batches: dict[str, list[str]] = {}
    for key in sorted(missing, key=lambda key: (items[key].question.doc_id, items[key].question.question_id)):
        batches.setdefault(items[key].question.question_id, []).append(key)
    stopped: DocMemoError | None = None
    if batches:
        bar, advance = context.progress("ablations", len(batches))
        with bar:
            stopped = check_parts(configured.values()) or run_flow(
                "ablations",
                list(batches),
                batch_work(batches, answering_work(items, journal), journal),
                context.settings,
                advance=advance,
                say=lambda text: context.console.print(f"ablations: {text}"),
                label=lambda question_id: question_id,
            )
    written = {n: write_answers(list(questions), keys[n], journal, OUT / n, stopped) for n in configured}
    journal.close()
    return written, stopped


def score(written: Written, name: str, questions: Sequence[Question], scorer: Scorer, rounds: int) -> Configuration:
    """Judge a configuration's answers by the rule, and aggregate."""
    by_id = {question.question_id: question for question in questions}
    judgements = [judge_by_rule(by_id[a.question_id], a, scorer) for a in written.records]
    documents = documents_after_all_stages()
    cases = build_cases(questions, written.records, judgements, documents)
    return Configuration(name, cases, aggregate(questions, written.records, judgements, documents, rounds=rounds))


def made_with(context: StageContext, scorer: Scorer, code: str, title: str) -> MadeWith:
    """Models and digests that stand under the table."""
    models = require_lock(with_ablation(context.params, FULL), list(ROLES))
    info = read_dataset_info()
    digests = {"parameters": parameters_digest(context.params), "code": code, f"dataset ({info.format})": info.digest}
    return MadeWith(
        models={**models, "judge": {"provider": "rule", "id": scorer.id}},
        digests=digests,
        evidence_finder=context.params.answer.reader == "embedded",
        title=title,
    )


def record(context: StageContext, made: MadeWith, scored: Sequence[Configuration]) -> AblationRecord:
    """What says which run the table belongs to."""
    return AblationRecord(
        dataset=read_dataset_info().digest,
        parameters=parameters_digest(context.params),
        models=models_digest(made.models),
        code=made.digests["code"],
        evidence_finder=made.evidence_finder,
        n_questions=scored[0].scores["n_questions"],
        n_documents=scored[0].scores["n_documents"],
        curves=curves_of(scored),
    )


def run(context: StageContext, names: Sequence[str], target: Path, title: str) -> None:
    """Answer, judge and write the table into `target`.

    Raises:
        IncompleteRunError: if questions failed in a way that may pass; the table is written, and counts them.
    """
    names = check_names(names)
    check_artifacts()
    questions = read_questions()
    base = open_answering(context)
    configured = {name: replace(base, params=with_ablation(context.params, name)) for name in names}
    written, stopped = answer_all(context, questions, configured)
    chosen = context.params.judge.scorer
    scorer = get_scorer(read_dataset_info().scorer if chosen == "auto" else chosen)
    rounds = context.params.loop.rounds
    scored = [score(written[name], name, questions, scorer, rounds) for name in names]
    made = made_with(context, scorer, base.code, title)
    write_atomic(target / TABLE, to_csv(csv_rows(scored), CSV_COLUMNS).encode())
    write_json(target / RECORD, record(context, made, scored))
    write_atomic(target / "ablations.md", markdown(scored, made).encode())
    log.info("ablations: %s and %s", target / "ablations.md", target / TABLE)
    failed = {f"{q} ({name})": why for name, w in written.items() for q, why in w.retryable.items()}
    report_failures(failed, context.settings.accept_failures, "ablations", "answers", stopped)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m flows.ablations", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--names", nargs="+", default=list(NAMES), help=f"of: {', '.join(NAMES)} (all)")
    parser.add_argument("--out", type=Path, default=Path("metrics"), help="folder of the table (metrics)")
    parser.add_argument("--title", default="Ablations and baselines", help="heading of the table")
    chosen = parser.parse_args(arguments)
    stage_main("ablations", [OUT], lambda context: run(context, chosen.names, chosen.out, chosen.title))


if __name__ == "__main__":
    main()
