"""PyMuPDF's doors under a type: the library carries none, and strict checking forbids untyped calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf

open_pdf: Callable[..., Any] = pymupdf.open
shipped_font: Callable[..., Any] = pymupdf.Font
