"""What a dataset is, whatever its format: documents, questions in one schema, and what is odd about them.

A reader is a function `read(root, params) -> Dataset`, one module a format, imported when its name is used.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath

from docmemo.config import DatasetParams
from docmemo.errors import DatasetError
from docmemo.types import Document, Question

READERS: dict[str, str] = {
    "sample": "docmemo.datasets.sample",
    "folder": "docmemo.datasets.folder",
    "mmlongbench": "docmemo.datasets.mmlongbench",
    "longdocurl": "docmemo.datasets.longdocurl",
    "papertab": "docmemo.datasets.papertab",
    "papertext": "docmemo.datasets.papertab",
}
"""Format name to the module that reads it."""

PAGE_ZERO = "evidence page 0"
PAST_END = "evidence page past the end"
REPEATED_PAGE = "evidence page repeated"
NO_PAGES = "answerable without evidence pages"
SOME_PAGES = "unanswerable with evidence pages"
NO_SOURCES = "answerable without evidence sources"
SOME_SOURCES = "unanswerable with evidence sources"
FORMAT_CLASH = "answer format contradicts answerability"
DUPLICATE = "duplicate question"
WINDOW_PAST_END = "page window past the end"
OUTSIDE_WINDOW = "evidence page outside the page window"
WIDER_WINDOW = "page window wider than the pages the question is about"
OTHER_SOURCE = "evidence source of no known kind"

EXPLANATIONS: dict[str, str] = {
    PAGE_ZERO: "Evidence names page 0, but pages count from 1; kept as given, no page can match it.",
    PAST_END: "Evidence names a page the document does not have; kept as given, no page can match it.",
    REPEATED_PAGE: "Evidence names one page more than once; kept as given, it counts once.",
    NO_PAGES: "A question with an answer lists no evidence pages; it has no part in recall and all-hit.",
    SOME_PAGES: "A question without an answer lists evidence pages; kept as given.",
    NO_SOURCES: "A question with an answer lists no evidence sources; it is in no slice by source.",
    SOME_SOURCES: "A question without an answer lists evidence sources; kept as given.",
    FORMAT_CLASH: "The answer format is None though there is an answer, or the reverse; kept as given.",
    DUPLICATE: "The same question is asked of the same document before; kept, told apart by its id's ending.",
    WINDOW_PAST_END: "The page window reaches past the last page; only existing pages are in scope.",
    OUTSIDE_WINDOW: "Evidence names a page out of scope; kept as given, such a page is never found.",
    WIDER_WINDOW: "The benchmark shows more pages than it names as the question's own; those it shows are in scope.",
    OTHER_SOURCE: "An evidence source that is neither text, layout, table, chart nor figure; it is in no slice.",
}
"""Quirk name (as in `Question.quirks`) to what it means and what is done about it."""


@dataclass(frozen=True)
class Quirk:
    """How often something odd occurs, and what is done about it."""

    count: int
    explanation: str


@dataclass(frozen=True)
class Dataset:
    """Documents (ordered by doc_id) and their questions (by doc_id, then as in the file)."""

    name: str
    """Format, e.g. "mmlongbench"."""
    scorer: str
    """Name of the benchmark's rule scorer."""
    documents: Sequence[Document]
    """Without digests and page counts, which `ingest` adds; "failed" when the file is known to be missing."""
    questions: Sequence[Question]
    notes: Mapping[str, Quirk] = field(default_factory=dict)
    """Oddities of the folder itself, e.g. files ignored; those of questions are in `Question.quirks`."""
    questions_file: str = ""
    """Where the questions were read from, relative to the root; '' when there is no such file."""


def count_quirks(dataset: Dataset) -> dict[str, Quirk]:
    """Every quirk of the dataset by name: the notes, and a count of questions for each of their quirks."""
    counts = Counter(name for question in dataset.questions for name in question.quirks)
    quirks = {name: Quirk(count, EXPLANATIONS[name]) for name, count in counts.items()}
    return dict(sorted({**quirks, **dataset.notes}.items()))


def gold_quirks(question: Question) -> list[str]:
    """What is odd about a question's gold, as far as it shows without the document. Order is fixed."""
    pages = question.evidence_pages
    found = []
    if 0 in pages:
        found.append(PAGE_ZERO)
    if len(set(pages)) != len(pages):
        found.append(REPEATED_PAGE)
    if question.page_window is not None:
        first, last = question.page_window
        found += [OUTSIDE_WINDOW] * any(not first <= page <= last for page in pages)
    if question.answerable is True:
        found += [NO_PAGES] * (not pages) + [NO_SOURCES] * (not question.evidence_sources)
    if question.answerable is False:
        found += [SOME_PAGES] * bool(pages) + [SOME_SOURCES] * bool(question.evidence_sources)
    clash = question.answer_format is not None and question.answerable is not None
    if clash and (question.answer_format == "None") == question.answerable:
        found.append(FORMAT_CLASH)
    return found


def annotate_page_bounds(questions: Iterable[Question], n_pages: Mapping[str, int]) -> list[Question]:
    """Add the quirks that only page counts reveal.

    Args:
        questions: any questions.
        n_pages: doc_id to page count; questions about other documents are returned as they are.
    """
    annotated = []
    for question in questions:
        last = n_pages.get(question.doc_id)
        extra = []
        if last is not None:
            if any(page > last for page in question.evidence_pages):
                extra.append(PAST_END)
            if question.page_window is not None and question.page_window[1] > last:
                extra.append(WINDOW_PAST_END)
        extra = [name for name in extra if name not in question.quirks]
        annotated.append(question.model_copy(update={"quirks": [*question.quirks, *extra]}))
    return annotated


_STEM_LENGTH = 32


def question_ids(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Ids that stay the same when rows are left out or reordered.

    An id is the document's stem, shortened, with "-" and 8 hex digits of the sha256 of the question's text.
    Where the shortened stem does not give the document away, the digest is over document and question.
    Exact repetitions get "-2", "-3", ... in the order of their third item, then as given.

    Args:
        rows: (doc_id, question, tie-breaker; nothing gold, or a corrected answer would change an id).
    """
    groups: dict[str, list[int]] = {}
    for index, (doc_id, text, _) in enumerate(rows):
        stem = re.sub(r"[^\w.-]+", "_", PurePosixPath(doc_id).stem)[:_STEM_LENGTH].strip("._-") or "document"
        hashed = text if doc_id in (stem, f"{stem}.pdf") else f"{doc_id}\0{text}"
        groups.setdefault(f"{stem}-{hashlib.sha256(hashed.encode()).hexdigest()[:8]}", []).append(index)
    ids = [""] * len(rows)
    for base, members in groups.items():
        for number, index in enumerate(sorted(members, key=lambda i: rows[i][2]), 1):
            ids[index] = base if number == 1 else f"{base}-{number}"
    return ids


def mark_duplicates(questions: Sequence[Question]) -> list[Question]:
    """Give every question but the first (by id) of equal text and document the quirk "duplicate question"."""
    first: dict[tuple[str, str], str] = {}
    for q in questions:
        key = (q.doc_id, q.question)
        first[key] = min(first.get(key, q.question_id), q.question_id)
    return [
        q
        if first[(q.doc_id, q.question)] == q.question_id
        else q.model_copy(update={"quirks": [*q.quirks, DUPLICATE]})
        for q in questions
    ]


def limit_documents(dataset: Dataset, limit: int | None) -> Dataset:
    """The first `limit` documents by name, with only their questions; None keeps all."""
    documents = sorted(dataset.documents, key=lambda d: d.doc_id)[:limit]
    order = {document.doc_id: index for index, document in enumerate(documents)}
    questions = sorted(
        (q for q in dataset.questions if q.doc_id in order), key=lambda question: order[question.doc_id]
    )
    return replace(dataset, documents=documents, questions=questions)


def dataset_root(params: DatasetParams, project: Path) -> Path:
    """The dataset's folder.

    Raises:
        DatasetError: if it is not there or not a folder.
    """
    root = project / Path(params.root).expanduser()
    remedy = "Set dataset.root in params.yaml to the dataset's folder (relative to the project, or absolute)."
    if not root.exists():
        raise DatasetError(f"The dataset folder {root} does not exist.", remedy=remedy)
    if not root.is_dir():
        raise DatasetError(f"The dataset root {root} is a file, not a folder.", remedy=remedy)
    return root


def reader_of(name: str) -> Callable[[Path, DatasetParams], Dataset]:
    """The `read` function of a format, imported on demand.

    Raises:
        DatasetError: if the format is not known.
    """
    if name not in READERS:
        raise DatasetError(
            f"Unknown dataset format {name!r}.", remedy=f"Known formats: {', '.join(sorted(READERS))}."
        )
    read: Callable[[Path, DatasetParams], Dataset] = importlib.import_module(READERS[name]).read
    return read


def load_dataset(params: DatasetParams, project: Path) -> Dataset:
    """Read the dataset that params.yaml names, cut to `limit`, ordered by doc_id.

    Args:
        params: section `dataset` of params.yaml.
        project: the folder that a relative root starts from.

    Raises:
        DatasetError: if the folder or its questions cannot be used; nothing has been processed by then.
    """
    read = reader_of(params.format)
    named = PurePath(params.questions or "")
    if named.is_absolute() or ".." in named.parts:
        raise DatasetError(
            f"dataset.questions is {params.questions!r}, which is outside the dataset's folder.",
            remedy="Put the file into the folder: what lies elsewhere is not noticed when it changes.",
        )
    return limit_documents(read(dataset_root(params, project), params), params.limit)
