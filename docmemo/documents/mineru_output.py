"""What MinerU 4.0.12 writes (`-f zip`): the fields that are read, validated.

`middle_json.json` names its own schema and version, so that another release is noticed and not misread. Boxes are
fractions of the displayed page with the origin at the top left, pages count from 0. Other fields may be anything.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from docmemo.errors import DocumentError
from docmemo.types import Box

MEMBER = "middle_json.json"
VISUALS = ("table", "image", "chart")
TITLES = ("doc_title", "paragraph_title")

BlockType = Literal[
    "image",
    "image_body",
    "image_caption",
    "image_footnote",
    "table",
    "table_body",
    "table_caption",
    "table_footnote",
    "chart",
    "chart_body",
    "chart_caption",
    "chart_footnote",
    "code",
    "code_body",
    "algorithm_body",
    "code_caption",
    "code_footnote",
    "text",
    "equation",
    "list",
    "index",
    "ref_text",
    "header",
    "footer",
    "page_number",
    "aside_text",
    "page_footnote",
    "doc_title",
    "paragraph_title",
]
Fraction = Annotated[float, Field(ge=0, le=1)]


class _Read(BaseModel):
    """Base: a document's text in other fields is not kept."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Block(_Read):
    """A block of a page, or a part of one (the body, caption or footnote of a table, image or chart)."""

    type: BlockType
    bbox: tuple[Fraction, Fraction, Fraction, Fraction] | None = None
    content: Any = None
    """Text, a list of spans of text, or a list of blocks."""
    image_path: str | None = None

    @property
    def parts(self) -> list[Block]:
        """The blocks it is made of; [] for text.

        Raises:
            ValidationError: if one is none of the known blocks.
        """
        if not isinstance(self.content, list):
            return []
        return [Block.model_validate(item) for item in self.content if isinstance(item, dict) and "bbox" in item]

    @property
    def text(self) -> str:
        """Its text without markup, in one line."""
        return " ".join(" ".join(_texts(self.content)).split())


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, dict):
                yield from _texts(item.get("content"))


class PageBlocks(_Read):
    """One page; an empty page has no blocks."""

    page_idx: Annotated[int, Field(ge=0)]
    blocks: list[Block] = Field(default_factory=list)


class PageSize(_Read):
    """Displayed size of a page in points."""

    page_idx: int
    width_pt: Annotated[float, Field(gt=0)]
    height_pt: Annotated[float, Field(gt=0)]


class _Sizes(_Read):
    pages: list[PageSize]


class _Extensions(_Read):
    docvortex_layout: _Sizes


class MinerUOutput(_Read):
    """A document as MinerU sees it."""

    schema_: Literal["docvortex.middle"] = Field(alias="schema")
    schema_version: Literal["2.0"]
    pages: list[PageBlocks]
    extensions: _Extensions

    def page(self, number: int) -> PageBlocks | None:
        """A page by its 1-based number; None if MinerU gives none."""
        return next((page for page in self.pages if page.page_idx == number - 1), None)

    def size(self, number: int) -> PageSize | None:
        """The size MinerU takes a page to have."""
        sizes = self.extensions.docvortex_layout.pages
        return next((size for size in sizes if size.page_idx == number - 1), None)


def read_output(path: Path) -> MinerUOutput:
    """The validated output in a zip of MinerU's.

    Raises:
        DocumentError: if it is not what MinerU 4.0.12 writes; names the field.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            values = json.loads(archive.read(MEMBER))
        output = MinerUOutput.model_validate(values)
        for page in output.pages:
            for block in page.blocks:
                _ = block.parts
    except (
        OSError,
        KeyError,
        ValueError,
        zipfile.BadZipFile,
    ) as error:  # pydantic's and JSON's errors are ValueErrors
        raise DocumentError(
            f"MinerU's output is not what version 4.0.12 writes: {_reason(error)}.",
            remedy="Install the version DocMemo names (`docmemo doctor` shows it), or use layout.backend: pymupdf.",
        ) from error
    return output


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        return f"{where}: {first['msg']} (got {str(first['input'])[:60]!r}){more}"
    return " ".join(str(error).split()).removesuffix(".")


def image_of(path: Path, name: str) -> bytes:
    """A picture MinerU cut out.

    Raises:
        KeyError: if there is none of that name.
    """
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def box_of(block: Block) -> Box | None:
    """Its box with an area, else None."""
    if block.bbox is None:
        return None
    x0, y0, x1, y1 = block.bbox
    return (round(x0, 5), round(y0, 5), round(x1, 5), round(y1, 5)) if x0 < x1 and y0 < y1 else None
