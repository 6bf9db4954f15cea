"""The recipes of all sample documents, in the order of `documents.jsonl`."""

from __future__ import annotations

from ..corpus import Recipe
from . import (
    annual_report,
    city_budget,
    foerderung_de,
    lab_handbook,
    library_report_zh,
    public_notice,
    research_article,
    service_manual,
    slide_deck,
    survey_report,
    user_guide,
)

RECIPES: list[Recipe] = [
    annual_report.RECIPE,
    service_manual.RECIPE,
    research_article.RECIPE,
    slide_deck.RECIPE,
    public_notice.RECIPE,
    library_report_zh.RECIPE,
    foerderung_de.RECIPE,
    city_budget.RECIPE,
    user_guide.RECIPE,
    survey_report.RECIPE,
    lab_handbook.RECIPE,
]
