"""Extractive page summaries: headings, captions, what a table's rows and columns are called, and key sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from docmemo.config import SummarizeParams
from docmemo.documents.captions import caption_of
from docmemo.documents.headings import Heading, find_headings, is_running, running_texts
from docmemo.documents.passages import Passage, passages
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.retrieval.stopwords import weak_words
from docmemo.retrieval.tokenize import Analyzer, analyzer, document_language
from docmemo.types import Page, PageSet, PageSummary, SummarySet

MIN_TERMS = 4
"""Shorter sentences say too little."""
REPEATS = 0.6
"""A sentence that shares more of its terms with one already chosen is left out."""


def _readable(text: str) -> bool:
    """Whether a sentence is language rather than figures or OCR noise."""
    dense = [c for c in text if not c.isspace()]
    letters = sum(c.isalpha() for c in dense)
    words = text.split()
    single = sum(len(w) == 1 and w.isascii() for w in words)
    return bool(dense) and letters >= 0.6 * len(dense) and single <= 0.35 * len(words) + 1


def _key_sentences(
    sentences: Sequence[Passage], weight: Mapping[str, float], analyse: Analyzer, limit: int
) -> list[Passage]:
    """The sentences that carry most of the page's weight, in page order.

    A sentence's score is the mean weight (tf on the page times idf in the document) of its different terms, a length
    of 8 terms assumed at least, raised by up to 30% towards the page's top, lowered by 30% for a fragment that starts
    in lower case.
    """
    scored = []
    for at, sentence in enumerate(sentences):
        terms = set(analyse.terms(sentence.text))
        if len(terms) < MIN_TERMS or not _readable(sentence.text):
            continue
        mean = sum(weight.get(term, 0.0) for term in terms) / max(8, len(terms))
        fragment = 0.7 if sentence.text[0].islower() else 1.0
        scored.append((mean * fragment * (1.3 - 0.3 * at / len(sentences)), at, terms))
    scored.sort(key=lambda item: (-item[0], item[1]))
    chosen: list[tuple[int, set[str]]] = []
    for _, at, terms in scored:
        if len(chosen) == limit:
            break
        if all(len(terms & other) <= REPEATS * min(len(terms), len(other)) for _, other in chosen):
            chosen.append((at, terms))
    return [sentences[at] for at, _ in sorted(chosen, key=lambda item: item[0])]


def _table_digest(rows: Sequence[Passage]) -> list[str]:
    """A table in a line: its header, then the labels of its rows; one string a table."""
    tables: dict[int, list[Passage]] = {}
    for row in rows:
        tables.setdefault(row.paragraph, []).append(row)
    digests = []
    for table in tables.values():
        header = table[-1].text.split("\n")[0] if "\n" in table[-1].text else ""
        cells = [row.text.rsplit("\n", 1)[-1].split(" | ") for row in table]
        labels = dict.fromkeys(next((c for c in row if any(x.isalpha() for x in c)), "") for row in cells)
        named = ", ".join(label for label in labels if label and label not in header)
        digests.append(": ".join(part for part in (header, named) if part))
    return [d for d in digests if d]


def _cut(text: str, limit: int) -> str:
    """`text` within `limit` characters, cut at a space where there is one near."""
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - 1)]
    space = head.rfind(" ")
    return (head[:space] if space > limit * 0.7 else head).rstrip() + "…"


def _compose(parts: Sequence[str], limit: int) -> str:
    text = ""
    for part in dict.fromkeys(p.strip() for p in parts):
        if part and part not in text:
            stop = "" if part.endswith((".", "!", "?", "。", "！", "？", "…", ":", "؟", "।")) else "."
            text += (" " if text else "") + part + stop
    return _cut(text, limit)


def _keywords(page: Page, weight: Mapping[str, float], analyse: Analyzer, limit: int) -> list[str]:
    """The page's heaviest terms, as they are most often written there."""
    weak = weak_words(analyse.language)
    written: dict[str, Counter[str]] = {}
    for word, term in analyse.words(page.text):
        if (
            len(word) > 1
            and word not in weak
            and any(c.isalpha() for c in word)
            and not any(c.isdigit() for c in word)
        ):
            written.setdefault(term, Counter())[word] += 1
    best = sorted(written, key=lambda term: (-weight.get(term, 0.0), term))[:limit]
    return [min(written[term].items(), key=lambda item: (-item[1], item[0]))[0] for term in best]


def summarize_pages(page_set: PageSet, params: SummarizeParams) -> SummarySet:
    """One summary a page, in page order; '' for a page without text.

    A summary is at most `params.max_chars` long: headings first, then captions, tables, and key sentences. Headings,
    captions and tables together take at most 60% of it where the page has sentences.
    """
    texts = [page.text for page in page_set.pages]
    language = document_language(texts, page_set.language)
    analyse = analyzer(language)
    index = LexicalIndex.build(texts, language)
    running = running_texts(page_set)
    headings: dict[int, list[Heading]] = {}
    for heading in find_headings(page_set):
        headings.setdefault(heading.page, []).append(heading)
    summaries = []
    for row, page in enumerate(page_set.pages):
        tf = Counter(index.page_tokens(row).tolist())
        weight = {index.vocabulary[i]: n * float(index.idf[i]) for i, n in tf.items()}
        shown = page.model_copy(update={"lines": [line for line in page.lines if not is_running(line, running)]})
        summary = _page_summary(shown, headings.get(page.page, []), weight, analyse, params)
        summaries.append(
            PageSummary(page=page.page, summary=summary, keywords=_keywords(shown, weight, analyse, params.keywords))
        )
    return SummarySet(doc_id=page_set.doc_id, summaries=summaries)


def _page_summary(
    page: Page,
    headings: Sequence[Heading],
    weight: Mapping[str, float],
    analyse: Analyzer,
    params: SummarizeParams,
) -> str:
    found = passages(page)
    titles = [h.text for h in sorted(headings, key=lambda h: (h.level, h.line))[:4]]
    captions = [p.text for p in found if caption_of(p.text) and p.kind == "sentence"]
    sentences = [
        p for p in found if p.kind == "sentence" and p.text not in captions and not any(p.text in t for t in titles)
    ]
    key = [p.text for p in _key_sentences(sentences, weight, analyse, params.sentences)]
    tables = _table_digest([p for p in found if p.kind == "row"])
    share = int(params.max_chars * (0.6 if key else 1.0))
    parts = [*(_cut(t, share // 2) for t in titles), *(_cut(c, share // 2) for c in captions)]
    parts += [_cut(t, max(80, share // 2)) for t in tables[:2]]
    head = _compose(parts, share)
    if not head and not key:
        return _cut(" ".join(page.text.split()), params.max_chars)
    return _compose([head, *key], params.max_chars)
