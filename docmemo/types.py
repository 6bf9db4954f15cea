"""The nouns of the project. Pages are 1-based; boxes are fractions of the page as displayed."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from docmemo.usage import Usage

Box = tuple[float, float, float, float]
"""(x0, y0, x1, y1) as fractions 0..1 of the displayed (rotated) page; origin at the top left."""

AnswerFormat = Literal["Str", "Int", "Float", "List", "None"]
EvidenceSource = Literal["text", "layout", "table", "chart", "figure"]
RegionKind = Literal["table", "figure", "heading", "caption"]
TextSource = Literal["text_layer", "ocr", "none"]
Outcome = Literal["answer", "not_answerable", "failed"]

NOT_ANSWERABLE = "Not answerable"


class Record(BaseModel):
    """Base of everything that is written to a file: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Document(Record):
    """One document of a dataset, usable or not."""

    doc_id: str
    path: str
    """Relative to the dataset's root, with forward slashes: a PDF file, a folder of page images, or
    FOLDER/PATTERN with a `*` for those images of a folder that other documents share."""
    kind: Literal["pdf", "images"] = "pdf"
    sha256: str = ""
    """Of the file's bytes; for page images of the ordered list of (name, sha256). Empty when it could not be read."""
    n_pages: int = 0
    status: Literal["ok", "failed"] = "ok"
    reason: str = ""
    """Why it failed, with the remedy."""
    doc_type: str = ""
    access_labels: list[str] = Field(default_factory=list)


class Question(Record):
    """One question about one document."""

    question_id: str
    doc_id: str
    question: str
    answer: str | None = None
    """Gold answer as the benchmark writes it; None when the dataset has none."""
    references: list[str] = Field(default_factory=list)
    """Further acceptable gold answers; the best one counts."""
    answer_format: AnswerFormat | None = None
    evidence_pages: list[int] = Field(default_factory=list)
    """Gold pages by physical index, as given (also those no document has)."""
    evidence_sources: list[EvidenceSource] = Field(default_factory=list)
    answerable: bool | None = None
    """False when the gold answer is that there is none; None when unknown."""
    doc_type: str = ""
    page_window: tuple[int, int] | None = None
    """First and last page in scope, both included; None means the whole document."""
    access_labels: list[str] = Field(default_factory=list)
    quirks: list[str] = Field(default_factory=list)
    """What is odd about this row of the dataset, e.g. "evidence page 0"."""

    def without_gold(self) -> Question:
        """The question as a system may see it: nothing that gives the answer or its place away."""
        return Question(
            question_id=self.question_id,
            doc_id=self.doc_id,
            question=self.question,
            page_window=self.page_window,
            access_labels=self.access_labels,
        )


class Line(Record):
    """One line of text on a page."""

    text: str
    bbox: Box
    block: int
    """Lines with the same number belong to one block (paragraph)."""
    size: float = 0.0
    """Font size in points; 0 when unknown (OCR)."""
    bold: bool = False


class Page(Record):
    """One page as the render stage stores it."""

    page: int
    label: str = ""
    """The PDF's own page label; '' when it has none."""
    printed: str = ""
    """The number printed on the page, as far as it could be read; '' otherwise."""
    width: float = 0.0
    """Points, after rotation."""
    height: float = 0.0
    rotation: int = 0
    image: str = ""
    """Member of the archive; '' when the page failed."""
    image_width: int = 0
    image_height: int = 0
    text_source: TextSource = "none"
    lines: list[Line] = Field(default_factory=list)
    failure: str = ""
    """Why this page is missing; '' when it is not."""

    @property
    def text(self) -> str:
        """The page's text: one line a line, a blank line between blocks."""
        parts: list[str] = []
        for i, line in enumerate(self.lines):
            if i:
                parts.append("\n" if line.block == self.lines[i - 1].block else "\n\n")
            parts.append(line.text)
        return "".join(parts)


class Outline(Record):
    """One entry of a PDF's outline (bookmarks)."""

    level: int
    title: str
    page: int


class PageSet(Record):
    """`pages.json` of a page archive: one document's pages."""

    doc_id: str
    sha256: str
    outline: list[Outline] = Field(default_factory=list)
    language: str = ""
    """ISO 639-1 code of the main language; '' when it could not be told."""
    pages: list[Page] = Field(default_factory=list)

    @property
    def is_scanned(self) -> bool:
        """Whether more than half of the pages have no text layer."""
        return sum(p.text_source != "text_layer" for p in self.pages) * 2 > len(self.pages)


class Region(Record):
    """A table, figure, heading or caption on a page."""

    page: int
    kind: RegionKind
    bbox: Box
    text: str = ""
    """The heading, the caption, or the caption that belongs to a table or figure."""
    crop: str = ""
    """Member of the layout archive with its picture; '' for headings and captions."""
    level: int = 0
    """Heading depth, 1 is the top; 0 otherwise."""


class LayoutSet(Record):
    """`layout.json` of a layout archive: one document's regions."""

    doc_id: str
    regions: list[Region] = Field(default_factory=list)
    failures: dict[int, str] = Field(default_factory=dict)
    """Page to the reason why its layout is missing."""


class PageSummary(Record):
    """What one page is about."""

    page: int
    summary: str
    keywords: list[str] = Field(default_factory=list)


class SummarySet(Record):
    """One document's page summaries."""

    doc_id: str
    summaries: list[PageSummary] = Field(default_factory=list)


class Section(Record):
    """A labelled page range of the schema memory."""

    label: str
    first_page: int
    last_page: int
    level: int = 1


class SchemaMemory(Record):
    """The document's schema (DESIGN section 2): type, topic, sections, and what each page carries."""

    doc_id: str
    doc_type: str = ""
    topic: str = ""
    language: str = ""
    sections: list[Section] = Field(default_factory=list)
    carries: dict[int, list[Literal["table", "chart", "figure", "prose"]]] = Field(default_factory=dict)


class Citation(Record):
    """Where an answer's evidence stands."""

    page: int
    label: str = ""
    """The number printed on the page or the PDF's label for it; '' when equal to the index or unknown."""
    bbox: Box | None = None
    quote: str | None = None


class Candidate(Record):
    """A page and its score in one round."""

    page: int
    score: float


class PageCrop(Record):
    """A crop shown to the reader."""

    page: int
    kind: RegionKind
    bbox: Box
    caption: str = ""


class Note(Record):
    """One entry of the episodic memory."""

    query: str
    findings: str = ""
    missing: str = ""


class Failure(Record):
    """Why a question has no answer."""

    kind: str
    """Name of the error class."""
    message: str
    retryable: bool = False


class Fitting(Record):
    """What was left out of a request so that it fits the model's context, in the order of the policy."""

    crops: int = 0
    """Crops left out."""
    page_side: int | None = None
    """Long side in pixels that page images were brought down to; None when they kept theirs."""
    pages: list[int] = Field(default_factory=list)
    """Pages left out altogether; they count as not read."""
    text_chars: int = 0
    """Characters of page text (of summaries, when reranking) left out."""
    schema_sections: int = 0
    """Sections of the schema memory left out."""
    wanted: int = 0
    """Estimated size with nothing left out, in tokens."""
    tokens: int = 0
    """Estimated size of the request that was sent, in tokens."""
    limit: int = 0
    """Tokens there was room for."""


class RoundRecord(Record):
    """One round of a question as answers.jsonl keeps it."""

    round: int
    query: str
    needs: list[str] = Field(default_factory=list)
    """Separate needs the query was made of, each scored on its own; [] when it is one query."""
    candidates: list[Candidate] = Field(default_factory=list)
    """Best first."""
    reranked: list[int] = Field(default_factory=list)
    rerank_note: str = ""
    """What was odd about the reranker's reply, e.g. pages it named that were no candidates; '' when nothing was."""
    evidence: list[int] = Field(default_factory=list)
    """Pages the reader read in this round."""
    crops: list[PageCrop] = Field(default_factory=list)
    useful: list[int] = Field(default_factory=list)
    irrelevant: list[int] = Field(default_factory=list)
    dropped: list[int] = Field(default_factory=list)
    """Pages the reader named (or cited) without having been shown them, and pages it called both."""
    note: str = ""
    missing: str = ""
    gated: bool = False
    """A not_answerable came before the gate allows it, so the question went on."""
    fitting: Fitting | None = None
    """What was left out so that the request fits the model's context; None when nothing was."""
    rerank_fitting: Fitting | None = None
    """The same of the reranker's request."""
    usage: Usage = Field(default_factory=Usage)


class AnswerRecord(Record):
    """One question's result: a line of answers.jsonl. No times in it."""

    question_id: str
    doc_id: str
    question: str
    outcome: Outcome
    answer: str | None = None
    """In its short form, which scorers and judges compare: a number, a phrase, or a list as JSON."""
    full_answer: str = ""
    """The same in full sentences, where the reasoner gives one."""
    confidence: Literal["low"] | None = None
    """"low" marks an extract by the embedded evidence finder, which is not question answering."""
    confidence_score: float | None = Field(None, ge=0, le=1)
    """The reasoner's own confidence in its answer, where it gives one."""
    reason: str = ""
    """For not_answerable: pages read of N, queries tried, and why."""
    citations: list[Citation] = Field(default_factory=list)
    rounds: list[RoundRecord] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    error: Failure | None = None


class Verdict(Record):
    """An LLM judge's verdict."""

    judge: str
    """Model identity."""
    prompt: str
    """Digest of the prompt."""
    correct: bool
    reason: str = ""


class Judgement(Record):
    """One question's scores: a line of judgements.jsonl. A score of None means unscored, never 0."""

    question_id: str
    outcome: Outcome
    scorer: str
    """Rule and its version, e.g. "mmlongbench/1"."""
    rule_score: float | None = None
    """0..1; None when there is no gold answer or the question failed."""
    verdict: Verdict | None = None
    unscored: str = ""
    """Why there is no score; '' when there is one."""
    usage: Usage = Field(default_factory=Usage)
    error: Failure | None = None
    """Why judging failed."""
