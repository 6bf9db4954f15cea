"""report.html: one file that opens anywhere, without network. All text from documents is data and is escaped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import Stemmer
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from docmemo.config import ReportParams
from docmemo.evaluation import charts
from docmemo.evaluation import retrieval_metrics as metrics
from docmemo.evaluation.aggregate import Case, build_cases
from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.tables import iterate_slices
from docmemo.evaluation.terminal import EXTRACTS, evidence_curves, limits, percent
from docmemo.evaluation.thumbnails import Thumbnail, thumbnails
from docmemo.types import AnswerRecord, Box, Citation, Document, Judgement, Question

MAX_MISSED_PAGES = 3
"""Thumbnails of gold pages that were not read, a question; the rest are named only."""
MAX_QUOTE = 600

_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]")
_PLAIN_WORDS = """
    a an and are as at be by did do does document for from had has have how in is it its many much of on or page
    that the their there these they this to was were what when where which who whose why with
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words of a question that are not marked in quotes."""


@dataclass(frozen=True)
class PageView:
    """A page as a question shows it."""

    page: int
    label: str
    status: str
    """hit (gold and read), read (not gold), missed (gold, not read), or unknown (no gold pages to compare with)."""
    thumbnail: str
    """CSS class of the thumbnail; '' when there is none."""
    boxes: Sequence[Box]
    quotes: Sequence[Markup]


@dataclass(frozen=True)
class QuestionView:
    """A question as the report shows it."""

    case: Case
    outcome: str
    score: float | None
    pages: Sequence[PageView]
    recall: float | None
    """Of the gold pages, after the last round; None without gold pages."""

    @property
    def hit(self) -> str:
        """all, some, none, or no-gold."""
        if self.recall is None:
            return "no-gold"
        return "all" if self.recall == 1 else "some" if self.recall > 0 else "none"


def write_report(
    target: Path,
    *,
    scores: Mapping[str, Any],
    questions: Sequence[Question],
    answers: Iterable[AnswerRecord],
    judgements: Iterable[Judgement],
    documents: Sequence[Document],
    pages_dir: Path,
    params: ReportParams,
    provenance: Mapping[str, Any],
    cache: Path | None = None,
) -> None:
    """Write the report to `target` as one HTML file, atomically.

    Args:
        target: the file.
        scores: content of metrics/scores.json; every figure printed is one of these.
        questions, answers, judgements, documents: the records the scores were made from.
        pages_dir: folder of the `.pages.zip` archives; a missing one costs only its thumbnails.
        params: thumbnail width and how much is shown.
        provenance: content of metrics/provenance.json.
        cache: folder that keeps thumbnails between runs.

    Raises:
        DatasetError: as `aggregate.build_cases`.
    """
    cases = build_cases(questions, answers, judgements, documents)
    shown = cases[: params.max_questions]
    keys = sorted({(c.question.doc_id, page) for c in shown for page in _pages_to_show(c, params)})
    classes = {key: f"t{number}" for number, key in enumerate(keys)}
    wanted: dict[str, set[int]] = {}
    for doc_id, page in keys:
        wanted.setdefault(doc_id, set()).add(page)
    pictures = thumbnails(pages_dir, wanted, params.thumbnail_width, cache)
    evidence_finder = any(c.answer and c.answer.confidence == "low" for c in cases)
    curves, curve_kind = evidence_curves(scores)
    stream = (
        environment()
        .get_template("report.html")
        .stream(
            scores=scores,
            curves=curves,
            curve_kind=curve_kind,
            last_round=max(curves["recall_at_round"], key=int),
            rounds_chart=charts.rounds_chart(scores),
            retrieval_chart=charts.retrieval_chart(scores),
            slices=_grouped_slices(scores),
            failed_documents=[d for d in documents if d.status == "failed"],
            problems=[c for c in cases if c.failed or c.score is None],
            questions=(_question_view(c, classes, params) for c in shown),
            n_shown=len(shown),
            doc_ids=sorted({c.question.doc_id for c in shown}),
            thumbnail_css=(thumbnail_rule(t, classes[t.key]) for t in pictures),
            thumbnail_width=params.thumbnail_width,
            evidence_finder=evidence_finder,
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


def environment() -> Environment:
    """Templates of docmemo/evaluation/templates, everything escaped, with the filters they share."""
    made = Environment(
        loader=PackageLoader("docmemo.evaluation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = percent
    made.filters["pretty_json"] = lambda value: json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)
    made.globals["limits"] = limits
    return made


def _grouped_slices(scores: Mapping[str, Any]) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for dimension, name, figures in iterate_slices(scores):
        if figures["n"]:
            groups.setdefault(dimension, []).append((name, figures))
    return groups


def _pages_to_show(case: Case, params: ReportParams) -> list[int]:
    """Pages read (cited ones first, then the last round's evidence backwards), then gold pages that were missed."""
    cited = [c.page for c in case.answer.citations] if case.answer else []
    read = [page for pages in reversed(case.reads) for page in pages]
    found = list(dict.fromkeys([*cited, *read]))
    missed = sorted(case.gold.difference(read))
    # A gold page that was read is worth its place more than one that was only read.
    found.sort(key=lambda page: (page not in cited, page not in case.gold))
    return found[: params.pages_per_question] + missed[:MAX_MISSED_PAGES]


def _question_view(case: Case, classes: Mapping[tuple[str, int], str], params: ReportParams) -> QuestionView:
    read = {page for pages in case.reads for page in pages}
    citations = case.answer.citations if case.answer else []
    return QuestionView(
        case=case,
        outcome=case.answer.outcome if case.answer else "failed",
        score=case.judgement.rule_score if case.judgement else None,
        pages=[_page_view(case, page, read, citations, classes) for page in _pages_to_show(case, params)],
        recall=metrics.recall(case.gold, read) if case.gold else None,
    )


def _page_view(
    case: Case, page: int, read: set[int], citations: Sequence[Citation], classes: Mapping[tuple[str, int], str]
) -> PageView:
    here = [c for c in citations if c.page == page]
    if not case.gold:
        status = "unknown"
    elif page in case.gold:
        status = "hit" if page in read else "missed"
    else:
        status = "read"
    return PageView(
        page=page,
        label=next((c.label for c in here if c.label), ""),
        status=status,
        thumbnail=classes.get((case.question.doc_id, page), ""),
        boxes=[c.bbox for c in here if c.bbox],
        quotes=[mark_terms(c.quote[:MAX_QUOTE], case.question.question) for c in here if c.quote],
    )


def thumbnail_rule(thumbnail: Thumbnail, name: str) -> Markup:
    """The CSS rule that gives class `name` the picture, so that a page shown often is embedded once."""
    return Markup(".{0}{{background-image:url({1});aspect-ratio:1/{2:.4f}}}\n").format(
        name, Markup(thumbnail.uri), thumbnail.ratio
    )


def mark_terms(quote: str, question: str) -> Markup:
    """`quote`, escaped, with the question's terms in `<mark>`: words by English stem, CJK text by shared bigrams."""
    stemmer = Stemmer.Stemmer("english")
    terms: set[str] = set()
    for word in _WORD.findall(question.casefold()):
        if _CJK.search(word):
            terms.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in _PLAIN:
            terms.add(stemmer.stemWord(word))
    parts: list[Markup] = []
    position = 0
    for match in _WORD.finditer(quote):
        parts.append(escape(quote[position : match.start()]))
        parts.append(_mark_word(match.group(), terms, stemmer))
        position = match.end()
    parts.append(escape(quote[position:]))
    return Markup("").join(parts)


def _mark_word(word: str, terms: set[str], stemmer: Any) -> Markup:
    folded = word.casefold()
    if not _CJK.search(word):
        marked = stemmer.stemWord(folded) in terms
        return Markup("<mark>{}</mark>").format(word) if marked else escape(word)
    covered = [False] * len(word)
    for i in range(len(word) - 1):
        if folded[i : i + 2] in terms:
            covered[i] = covered[i + 1] = True
    parts = [
        Markup("<mark>{}</mark>").format(char) if mark else escape(char)
        for char, mark in zip(word, covered, strict=True)
    ]
    return Markup("").join(parts).replace(Markup("</mark><mark>"), Markup(""))
