"""params.yaml as types. Everything here can change a result; what cannot is in docmemo/settings.py."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from docmemo.errors import ConfigError


class Section(BaseModel):
    """Base of the sections: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelParams(Section):
    """A language model behind an OpenAI-compatible server, and how it is asked. Its address is a setting."""

    id: str = Field("", description="Name of the model as its server knows it; a model backend needs one.")
    temperature: float = Field(0.0, ge=0, le=2, description="Sampling temperature.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus sampling.")
    seed: int | None = Field(0, ge=0, description="Sampling seed sent to the server; null sends none.")
    max_tokens: int = Field(2048, ge=16, description="Longest reply in tokens; a longer one is a failed call.")
    context: int = Field(32768, ge=1024, description="Tokens the model takes, reply included; requests are fitted.")
    images: bool = Field(True, description="Whether the model takes images.")
    image_tokens: Literal["qwen2_5_vl", "qwen3_vl", "openai_tiles"] = Field(
        "qwen3_vl", description="How an image is counted: 28 or 32 pixels a token side, or OpenAI's tiles."
    )
    structured: Literal["json_schema", "json_object", "text"] = Field(
        "json_schema", description="How the server is asked for JSON; text: by the prompt alone."
    )
    extra: dict[str, Any] = Field(
        default_factory=dict, description="Further fields of the request body, e.g. chat_template_kwargs."
    )


class DatasetParams(Section):
    """Which documents and questions."""

    root: str = Field("data/sample", description="Folder of the dataset, relative to the project or absolute.")
    format: Literal["sample", "folder", "mmlongbench", "longdocurl", "papertab", "papertext"] = Field(
        "sample", description="How the folder is laid out."
    )
    questions: str | None = Field(
        None,
        description="Questions file inside the root; null means the format's own (folder: none is fine).",
    )
    limit: int | None = Field(None, ge=1, description="Only the first N documents by name; null means all.")


class OcrParams(Section):
    """Text of pages that have no text layer."""

    backend: Literal["rapidocr", "none"] = Field(
        "rapidocr", description="Engine; none leaves such pages without text."
    )
    min_chars: int = Field(30, ge=0, description="Pages with fewer characters in their text layer are read by OCR.")
    max_side: int = Field(1280, ge=320, description="Long side in pixels of the picture given to OCR.")
    min_confidence: float = Field(0.5, ge=0, le=1, description="Lines read with less confidence are dropped.")


class RenderParams(Section):
    """Page images and text."""

    dpi: int = Field(144, ge=36, le=600, description="Resolution of page images.")
    max_side: int = Field(2800, ge=320, description="Long side in pixels no page image exceeds, whatever the dpi.")
    jpeg_quality: int = Field(80, ge=30, le=95, description="JPEG quality of page images.")
    ocr: OcrParams = Field(default_factory=OcrParams, description="Text of pages without a text layer.")


class LayoutParams(Section):
    """Regions (tables, figures, headings, captions) and crops."""

    backend: Literal["pymupdf", "mineru"] = Field("pymupdf", description="Layout analyser.")
    mineru_tier: Literal["flash", "basic", "standard", "advanced"] = Field(
        "flash", description="MinerU: how thorough; all but flash need model weights."
    )
    crop_long_side: int = Field(1500, ge=200, description="Long side of a crop in pixels (paper: 1500).")
    crop_max_dpi: int = Field(300, ge=72, description="Crops of vector content are rendered at no more than this.")
    crop_padding: float = Field(8.0, ge=0, description="Points added around a region, since rules get clipped.")
    min_area: float = Field(0.01, ge=0, le=1, description="Smaller figures (fraction of the page) are dropped.")
    jpeg_quality: int = Field(80, ge=30, le=95, description="JPEG quality of crops.")


class EmbedParams(Section):
    """Page representations for retrieval."""

    backend: Literal["lexical", "colqwen"] = Field(
        "lexical", description="Page encoder: words alone, or ColQwen2.5 page images beside them (extra colqwen)."
    )
    model: str = Field(
        "vidore/colqwen2.5-v0.2", description="ColQwen2.5: name on the hub, or a folder with the weights."
    )
    revision: str | None = Field(None, description="ColQwen2.5: commit on the hub; null is the one in the lock.")
    batch_size: int = Field(4, ge=1, description="ColQwen2.5: pages a batch; embeddings vary slightly with it.")
    window_tokens: int = Field(120, ge=10, description="Length of the windows scored inside a page, in terms.")
    window_stride: int = Field(60, ge=1, description="Step between windows, in terms.")


class SummarizeParams(Section):
    """A summary a page."""

    backend: Literal["extractive", "vlm"] = Field(
        "extractive", description="Summariser: key sentences, or a model that sees the page."
    )
    model: ModelParams = Field(default_factory=ModelParams, description="The model of backend vlm.")
    page_side: int = Field(1400, ge=200, description="vlm: long side in pixels of the page image shown.")
    text_chars: int = Field(8000, ge=0, description="vlm: most characters of the page's text shown.")
    sentences: int = Field(3, ge=1, le=20, description="Key sentences a page.")
    max_chars: int = Field(600, ge=50, description="Longest summary in characters.")
    keywords: int = Field(8, ge=0, description="Keywords a page.")


class SchemaParams(Section):
    """Schema memory."""

    backend: Literal["structural", "vlm"] = Field(
        "structural", description="From outline, headings and captions, or a model that reads them and the summaries."
    )
    model: ModelParams = Field(default_factory=ModelParams, description="The model of backend vlm.")
    max_sections: int = Field(120, ge=1, description="Most sections kept for one document.")


class RetrievalParams(Section):
    """How pages are scored against a query. Weights multiply z-scores over the pages in scope."""

    k1: float = Field(1.2, gt=0, description="BM25 term saturation.")
    b: float = Field(0.75, ge=0, le=1, description="BM25 length normalisation.")
    page_weight: float = Field(0.5, ge=0, description="Weight of BM25 over whole pages.")
    window_weight: float = Field(0.5, ge=0, description="Weight of BM25 of a page's best window.")
    bigram_weight: float = Field(0.3, ge=0, description="Weight of BM25 over bigrams.")
    reference_weight: float = Field(4.0, ge=0, description="Added to pages the query names outright.")
    visual_weight: float = Field(1.0, ge=0, description="Weight of MaxSim over page images, where they are embedded.")


class BeliefParams(Section):
    """Page belief memory (docs/design.md, section 2)."""

    policy: Literal["none", "mean", "thompson", "explore_one", "ucb"] = Field(
        "mean",
        description="th of each round: nothing (similarity alone), posterior mean, a draw (paper), the mean with "
        "one page a round by a draw, or mean + confidence * standard deviation.",
    )
    prior_strength: float = Field(1.0, ge=0, description="k, weight of the first round's similarity.")
    radius: int = Field(2, ge=0, description="r, pages a useful page's feedback spreads to on either side.")
    decay: float = Field(0.5, ge=0, le=1, description="g, what is left of the feedback per page of distance.")
    section_gain: float = Field(
        0.0, ge=0, le=1, description="Added to a of the other pages of a useful page's section; 0 is off."
    )
    section_pages: int = Field(12, ge=2, description="Sections with more pages spread nothing.")
    schedule: tuple[float, ...] = Field(
        (0.0, 0.3, 0.5),
        min_length=1,
        description="l_t, weight of belief in round t; the last value holds on.",
    )
    confidence: float = Field(1.0, ge=0, description="Standard deviations that policy ucb adds to the mean.")
    reading: Literal["by_belief", "unread_first"] = Field(
        "unread_first",
        description="What E(t) takes from A(t): the best by posterior mean, read before or not (paper), or pages "
        "not read yet before those.",
    )
    query_slots: int = Field(
        1, ge=0, description="Pages of each round that this round's query alone chooses, before belief does."
    )


Ablation = Literal[
    "none",
    "no_schema",
    "no_belief",
    "no_episodic",
    "no_memory",
    "no_bayes",
    "greedy",
    "no_crops",
    "no_propagation",
    "static",
    "requery",
    "fixed_rounds",
]


class LoopParams(Section):
    """The rounds."""

    rounds: int = Field(3, ge=1, le=10, description="T, the most rounds a question gets (paper: 3).")
    candidates: int = Field(20, ge=1, description="K, pages handed to the reranker each round.")
    reranked: int = Field(10, ge=1, description="m, pages the reranker may keep each round.")
    evidence: int = Field(5, ge=1, description="n, pages the reader reads each round.")
    crops: int = Field(5, ge=0, description="Most crops of tables and figures shown each round (paper: 5).")
    keep_useful: int = Field(
        0, ge=0, description="Useful pages of earlier rounds shown again beside the n of the round, best first."
    )
    page_budget: int | None = Field(None, ge=1, description="Most different pages a question may read; null: all.")
    separate_needs: bool = Field(
        True, description="Score up to three needs of a query_update each on its own and take each page's best."
    )
    gate_rounds: int = Field(1, ge=1, le=10, description="not_answerable is accepted from this round on.")
    gate_coverage: float = Field(
        0.0, ge=0, le=1, description="not_answerable is accepted once this share of the pages in scope was read."
    )
    force_rounds: bool = Field(False, description="Run all rounds whatever the reader says; for recall curves only.")
    ablation: Ablation = Field("none", description="A part switched off, or a baseline (docmemo/qa/ablations.py).")


class AnswerParams(Section):
    """Who reranks and who reads."""

    reader: str = Field(
        "embedded", description="Reader: embedded, vlm, or package.module:attribute of one's own factory."
    )
    reranker: str = Field("embedded", description="Reranker: embedded, vlm, or package.module:attribute.")
    reader_model: ModelParams = Field(default_factory=ModelParams, description="The model of reader vlm.")
    reranker_model: ModelParams = Field(default_factory=ModelParams, description="The model of reranker vlm.")
    page_side: int = Field(1600, ge=200, description="vlm: long side in pixels of page images shown.")
    min_page_side: int = Field(
        900, ge=100, description="vlm: page images are brought down to no less than this before pages are left out."
    )
    page_text_chars: int = Field(6000, ge=0, description="vlm: most characters of a page's text shown beside it.")
    question_calls: int | None = Field(None, ge=1, description="Requests one question may take; null: no limit.")
    question_tokens: int | None = Field(None, ge=1, description="Tokens one question may take; null: no limit.")
    question_usd: float | None = Field(None, gt=0, description="Dollars one question may cost; null: no limit.")
    clear_margin: float = Field(
        2.0,
        ge=0,
        description="Embedded reader: stop when the top page leads by this many standard deviations.",
    )
    query_terms: int = Field(4, ge=0, description="Embedded reader: terms added to the next round's query.")
    rare_terms: int = Field(
        3, ge=1, description="Embedded reader: the question's rarest terms that decide usefulness."
    )
    useful_coverage: float = Field(
        0.6,
        ge=0,
        le=1,
        description="Embedded reader: share (by idf) of the rare terms a useful page's snippet covers.",
    )
    snippets: int = Field(3, ge=1, description="Highlighted snippets a page.")
    seed: int = Field(0, ge=0, description="Seed of everything drawn at random.")


class JudgeParams(Section):
    """How answers are scored."""

    backend: Literal["rule", "llm"] = Field(
        "rule", description="The benchmark's official rule alone, or a language model's verdict beside it."
    )
    scorer: Literal["auto", "mmlongbench", "longdocurl", "token_f1"] = Field(
        "auto", description="Which rule; auto takes the dataset's own."
    )
    model: ModelParams = Field(default_factory=ModelParams, description="The judge of backend llm.")


class ReportParams(Section):
    """Tables and the page."""

    thumbnail_width: int = Field(180, ge=40, le=800, description="Width of page thumbnails in pixels.")
    max_questions: int = Field(400, ge=0, description="Questions shown in report.html; all are in questions.csv.")
    pages_per_question: int = Field(5, ge=1, le=20, description="Pages shown for each question.")


class Params(Section):
    """All of params.yaml."""

    dataset: DatasetParams = Field(default_factory=DatasetParams, description="Documents and questions.")
    render: RenderParams = Field(default_factory=RenderParams, description="Page images and text.")
    layout: LayoutParams = Field(default_factory=LayoutParams, description="Regions and crops.")
    embed: EmbedParams = Field(default_factory=EmbedParams, description="Page representations.")
    summarize: SummarizeParams = Field(default_factory=SummarizeParams, description="Page summaries.")
    schema_: SchemaParams = Field(default_factory=SchemaParams, alias="schema", description="Schema memory.")
    retrieval: RetrievalParams = Field(default_factory=RetrievalParams, description="Page scores.")
    belief: BeliefParams = Field(default_factory=BeliefParams, description="Page belief memory.")
    loop: LoopParams = Field(default_factory=LoopParams, description="Rounds.")
    answer: AnswerParams = Field(default_factory=AnswerParams, description="Reader and reranker.")
    judge: JudgeParams = Field(default_factory=JudgeParams, description="Scoring.")
    report: ReportParams = Field(default_factory=ReportParams, description="Tables and the page.")

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _model_at(path: tuple[Any, ...]) -> type[BaseModel] | None:
    """The section class that the keys in `path` lead to."""
    model: type[BaseModel] = Params
    for key in path:
        fields = {f.alias or name: f for name, f in model.model_fields.items()}
        if key not in fields:
            return None
        kind = fields[key].annotation
        options = [kind, *get_args(kind)]
        nested = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
        if not nested:
            return None
        model = nested[0]
    return model


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"]) or "(top level)"
        if item["type"] == "extra_forbidden":
            model = _model_at(tuple(item["loc"][:-1]))
            known = sorted(f.alias or n for n, f in model.model_fields.items()) if model else []
            near = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            lines.append(f"{where}: unknown key.{hint} Known keys here: {', '.join(known)}.")
        else:
            lines.append(f"{where}: {item['msg']} (got {item['input']!r}).")
    return f"{source} is not valid:\n  " + "\n  ".join(lines)


def parse_params(values: Any, source: str = "params.yaml") -> Params:
    """Validate a mapping.

    Raises:
        ConfigError: naming every wrong key or value; unknown keys are answered with the known ones.
    """
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must be a mapping of sections, not {type(values).__name__}.")
    try:
        return Params.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, source), remedy="Correct these entries and run again.") from error


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and validate a params file.

    Raises:
        ConfigError: if it is missing, not YAML, or not valid.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist.", remedy="Run from the project's root folder.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not readable YAML: {error}.") from error
    return parse_params(values, str(path))
