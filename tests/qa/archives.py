"""Documents as the offline stages leave them: archives with pictures, statistics, summaries, schema."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from docmemo.artifacts import LAYOUT_MEMBER, PAGES_MEMBER, write_archive, write_json
from docmemo.config import RetrievalParams
from docmemo.qa.corpus import Artifacts, DocumentView
from docmemo.retrieval.lexical import LexicalIndex
from docmemo.types import (
    LayoutSet,
    Line,
    Page,
    PageSet,
    PageSummary,
    Region,
    SchemaMemory,
    Section,
    SummarySet,
)

BOX = (0.1, 0.2, 0.9, 0.6)


def jpeg(size: tuple[int, int], text: str = "", kind: str = "JPEG") -> bytes:
    """A picture with some writing on it."""
    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).text((4, 4), text, fill="black")
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def lines_of(text: str) -> list[Line]:
    """Lines down the page."""
    rows = text.split("\n")
    return [
        Line(text=row, bbox=(0.1, (i + 1) / (len(rows) + 2), 0.9, (i + 1.5) / (len(rows) + 2)), block=0)
        for i, row in enumerate(rows)
    ]


def make_document(
    folder: Path,
    texts: Sequence[str],
    *,
    size: tuple[int, int] = (400, 560),
    tables: Sequence[int] = (),
    crop_size: tuple[int, int] = (1500, 900),
    printed: int = 0,
    sections: int = 0,
    doc_id: str = "d.pdf",
) -> DocumentView:
    """A document's view over archives in `folder`.

    Args:
        folder: where the archives go.
        texts: a page each.
        size: pixels of page pictures.
        tables: pages with a table, which has a crop.
        crop_size: pixels of crops.
        printed: how much the printed page numbers lag behind; 0: none are printed.
        sections: number of sections of the schema; 0: one for each ten pages.
        doc_id: its name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = [
        Page(
            page=number,
            printed=str(number - printed) if printed and number > printed else "",
            width=600,
            height=840,
            image=f"images/{number:04d}.jpg",
            image_width=size[0],
            image_height=size[1],
            text_source="text_layer",
            lines=lines_of(text),
        )
        for number, text in enumerate(texts, 1)
    ]
    page_set = PageSet(doc_id=doc_id, sha256="0", language="en", pages=pages)
    pictures = [(page.image, jpeg(size, f"page {page.page} of {doc_id}")) for page in pages]
    write_archive(folder / "d.pages.zip", PAGES_MEMBER, page_set, pictures)
    regions = [
        Region(page=p, kind="table", bbox=BOX, text=f"Table {p}: figures of page {p}", crop=f"crops/{p}.jpg")
        for p in tables
    ]
    crops = [(region.crop, jpeg(crop_size, region.text)) for region in regions]
    write_archive(folder / "d.layout.zip", LAYOUT_MEMBER, LayoutSet(doc_id=doc_id, regions=regions), crops)
    LexicalIndex.build(list(texts), "en").save(folder / "d.safetensors")
    summaries = [PageSummary(page=p.page, summary=f"Page {p.page}: {p.text[:300]}") for p in pages]
    write_json(folder / "d.summaries.json", SummarySet(doc_id=doc_id, summaries=summaries))
    n_sections = sections or max(1, len(texts) // 10)
    step = max(1, len(texts) // n_sections)
    schema = SchemaMemory(
        doc_id=doc_id,
        doc_type="annual report",
        topic="Water sold in a year",
        sections=[
            Section(label=f"Part {i + 1} of the report", first_page=i * step % len(texts) + 1, last_page=len(texts))
            for i in range(n_sections)
        ],
        carries={page: ["table"] for page in tables},
    )
    write_json(folder / "d.schema.json", schema)
    names = ("d.pages.zip", "d.safetensors", "d.summaries.json", "d.schema.json", "d.layout.zip")
    return DocumentView(doc_id, Artifacts(*(folder / name for name in names)), RetrievalParams())
