"""The recipes of all sample documents, in the order of `documents.jsonl`."""

from __future__ import annotations

from ..corpus import Recipe
from . import annual_report

RECIPES: list[Recipe] = [annual_report.RECIPE]
