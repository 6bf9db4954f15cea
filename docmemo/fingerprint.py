"""Digests that decide what may be reused: of values, of files, and of the code that does the work."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """`value` as JSON with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 (64 hex digits) of a JSON-like value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_bytes(data: bytes) -> str:
    """sha256 (64 hex digits) of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """sha256 (64 hex digits) of a file, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


class _StripDocstrings(ast.NodeTransformer):
    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _strip  # noqa: N815


def source_digest(source: str) -> str:
    """Digest of Python source that ignores comments, docstrings and formatting."""
    tree = _StripDocstrings().visit(ast.parse(source))
    return digest_bytes(ast.unparse(tree).encode())


@lru_cache(maxsize=256)
def _module_digest(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source for module {name!r}")
    return source_digest(Path(spec.origin).read_text(encoding="utf-8"))


def code_digest(modules: Iterable[str]) -> str:
    """Digest of the named modules' code (comments and docstrings do not count; the modules' order does not)."""
    return digest({name: _module_digest(name) for name in sorted(set(modules))})
