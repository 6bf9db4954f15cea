"""Datasets made on the spot. The "documents" are plain bytes: nothing here opens a PDF."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from docmemo.config import DatasetParams
from docmemo.datasets.base import Dataset, load_dataset
from docmemo.errors import EmptyDocumentError, UnreadableDocumentError

BENCHMARKS = Path(__file__).resolve().parents[2].parent / "shared" / "datasets"

needs_benchmarks = pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason=f"benchmark data is not here ({BENCHMARKS}); it may not be committed"
)


def make_files(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"bytes of {name}".encode())


def write_lines(path: Path, *rows: dict[str, Any] | str) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load(root: Path, form: str = "folder", **params: Any) -> Dataset:
    return load_dataset(DatasetParams(root=str(root), format=form, **params), root)  # type: ignore[arg-type]


def inspect_bytes(path: Path, kind: str) -> tuple[int, str]:
    """A stand-in for opening documents: ten pages, unless the bytes say otherwise."""
    if kind == "images":
        pages = sorted(path.iterdir())
        return len(pages), hashlib.sha256(b"".join(p.read_bytes() for p in pages)).hexdigest()
    data = path.read_bytes()
    if b"broken" in data:
        raise UnreadableDocumentError("It is damaged.", remedy="Get another copy.")
    if not data:
        raise EmptyDocumentError("It has no pages.")
    return 10, hashlib.sha256(data).hexdigest()


def sample_row(**changes: Any) -> dict[str, Any]:
    """A row as MMLongBench-Doc writes it."""
    row = {
        "doc_id": "report.pdf",
        "doc_type": "Research report / Introduction",
        "question": "How many?",
        "answer": "8",
        "evidence_pages": "[2, 3]",
        "evidence_sources": "['Table', 'Pure-text (Plain-text)']",
        "answer_format": "Int",
    }
    return {**row, **changes}


def make_benchmark(root: Path, *rows: dict[str, Any], documents: tuple[str, ...] = ("report.pdf",)) -> Path:
    make_files(root, *(f"documents/{name}" for name in documents))
    (root / "samples.json").write_text(json.dumps(list(rows)), encoding="utf-8")
    return root
