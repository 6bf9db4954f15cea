"""Looking at a source before anything is made of it; runs in a worker, since a broken file can end or hang it."""

from __future__ import annotations

from pathlib import Path

from docmemo.documents.pdf import Kind, digest_source, inspect_document


def look_at(path: Path, kind: Kind) -> tuple[int, str]:
    """Page count and sha256 of one source.

    Raises:
        DocumentError: if it cannot be used.
    """
    return inspect_document(path, kind), digest_source(path, kind)
