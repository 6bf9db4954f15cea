"""report.html: one file that opens anywhere, without network. All text from documents is data and is escaped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmemo.config import ReportParams
from docmemo.evaluation import report_views as views
from docmemo.evaluation.ablation_record import AblationTable
from docmemo.evaluation.aggregate import build_cases
from docmemo.evaluation.cases import Case
from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.history import HistoryRow
from docmemo.evaluation.markup import environment, mark_terms, thumbnail_rule
from docmemo.evaluation.report_figures import Figures, too_few
from docmemo.evaluation.report_questions import MAX_QUOTE, pages_to_show, question_view
from docmemo.evaluation.report_worst import worst
from docmemo.evaluation.terminal import EXTRACTS, evidence_curves
from docmemo.evaluation.thumbnails import thumbnails
from docmemo.types import AnswerRecord, Document, Judgement, Question

__all__ = ["MAX_QUOTE", "Beside", "environment", "mark_terms", "thumbnail_rule", "write_report"]


@dataclass(frozen=True)
class Beside:
    """Other runs that the report shows beside this one."""

    ablations: AblationTable | None = None
    """metrics/ablations.csv with what it belongs to."""
    parameters: str = ""
    models: str = ""
    """Digests of this run (`ablation_record`), to say whether the table was made with the same."""
    history: Sequence[HistoryRow] = ()
    """Accepted runs, oldest first."""


def write_report(
    target: Path,
    *,
    scores: Mapping[str, Any],
    questions: Sequence[Question],
    answers: Iterable[AnswerRecord],
    judgements: Iterable[Judgement],
    documents: Sequence[Document],
    pages_dir: Path,
    layout_dir: Path,
    params: ReportParams,
    provenance: Mapping[str, Any],
    beside: Beside | None = None,
    scanned: Mapping[str, bool] | None = None,
    cache: Path | None = None,
) -> None:
    """Write the report to `target` as one HTML file, atomically.

    Args:
        target: the file.
        scores: content of metrics/scores.json; every figure of this run that is printed is one of these.
        questions, answers, judgements, documents: the records the scores were made from.
        pages_dir: folder of the `.pages.zip` archives; a missing one costs only its thumbnails.
        layout_dir: folder of the `.layout.zip` archives; a missing one costs only its crops.
        params: thumbnail width and how much is shown.
        provenance: content of metrics/provenance.json.
        beside: the ablation table and the accepted runs.
        scanned: as `aggregate.aggregate`.
        cache: folder that keeps thumbnails between runs.

    Raises:
        DatasetError: as `aggregate.build_cases`.
    """
    beside = beside or Beside()
    cases = build_cases(questions, answers, judgements, documents, scanned)
    shown = cases[: params.max_questions]
    keys = sorted({(c.question.doc_id, page) for c in shown for page in pages_to_show(c, params)})
    classes = {key: f"t{number}" for number, key in enumerate(keys)}
    wanted: dict[str, set[int]] = {}
    for doc_id, page in keys:
        wanted.setdefault(doc_id, set()).add(page)
    pictures = thumbnails(pages_dir, wanted, params.thumbnail_width, cache)
    curves, curve_kind = evidence_curves(scores)
    ablations = views.ablations(beside.ablations, provenance, beside.parameters, beside.models)
    stream = (
        environment()
        .get_template("report.html")
        .stream(
            scores=scores,
            fig=Figures(scores),
            curves=curves,
            curve_path=("evidence", "forced") if curve_kind == "forced" else ("evidence",),
            curve_kind=curve_kind,
            rounds=sorted(curves["recall_at_round"], key=int),
            last_round=max(curves["recall_at_round"], key=int),
            too_few=too_few(scores["n_documents"]),
            charts=views.evidence_charts(scores, ablations),
            slices=views.grouped_slices(scores),
            judged=scores["accuracy"]["judge"]["value"] is not None,
            ablations=ablations,
            calibrations=views.calibrations(scores),
            history=views.history(beside.history),
            worst=worst(cases, pages_dir, layout_dir),
            anchors={c.question.question_id: f"q{number}" for number, c in enumerate(shown)},
            failed_documents=[d for d in documents if d.status == "failed"],
            problems=[c for c in cases if c.failed or c.score is None],
            why=why,
            questions=(question_view(c, classes, params) for c in shown),
            n_shown=len(shown),
            doc_ids=sorted({c.question.doc_id for c in shown}),
            thumbnail_css=(thumbnail_rule(t, classes[t.key]) for t in pictures),
            thumbnail_width=params.thumbnail_width,
            evidence_finder=any(c.answer and c.answer.confidence == "low" for c in cases),
            extracts=EXTRACTS,
            definitions=DEFINITIONS,
            provenance=provenance,
        )
    )
    stream.enable_buffering(50)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Text of a broken PDF may hold lone surrogates, which UTF-8 cannot.
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as handle:
            handle.writelines(stream)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def why(case: Case) -> str:
    """Why a question failed or has no score."""
    if case.answer is None:
        return "no answer was recorded"
    error = case.answer.error
    if error:
        again = " (the next run asks again)" if error.retryable else ""
        return f"{error.kind}: {error.message}{again}"
    if case.judgement is None:
        return "not judged"
    if case.judgement.error:
        return f"{case.judgement.error.kind}: {case.judgement.error.message}"
    return case.judgement.unscored or "unknown"
