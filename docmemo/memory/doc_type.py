"""Guesses a document's type from its shape and from words that stand where such documents name themselves."""

from __future__ import annotations

import re
import unicodedata
from statistics import median

from docmemo.types import PageSet

_ANNUAL = re.compile(
    r"annual report|form 10-[kq]\b|10-k\b|geschäftsbericht|jahresbericht|rapport annuel|informe anual|memoria anual"
    r"|relazione annuale|relatório anual|jaarverslag|годовой отчет|年度报告|年報|年报|有価証券報告書|사업보고서",
    re.I,
)
_MANUAL = re.compile(
    r"user(?:'s|s)? (?:manual|guide)|owner'?s manual|operat(?:ing|ion) (?:manual|instructions)|instruction manual"
    r"|quick start|installation guide|bedienungsanleitung|betriebsanleitung|gebrauchsanweisung|mode d.emploi"
    r"|manuel d.utilisation|manual de(?: usuario| instrucciones|l usuario)|manuale d.uso|handleiding"
    r"|руководство пользователя|说明书|用户手册|使用手冊|取扱説明書|사용 ?설명서|دليل المستخدم",
    re.I,
)
_HANDBOOK = re.compile(r"\b(?:handbook|guidebook|documentation|tutorial|\w* ?guide|handbuch|leitfaden|guía)\b", re.I)
_ABSTRACT = re.compile(r"^\s*(?:abstract|zusammenfassung|résumé|resumen|摘\s*要|要旨|초록)\b", re.I | re.M)
_REFERENCES = re.compile(
    r"^\s*(?:\d+\.?\s*)?(?:references|bibliography|literatur|références|参考文献)\s*$", re.I | re.M
)
_SCHOLARLY = re.compile(r"\barxiv\b|\bdoi[:.]|\bet al\.|\bISSN\b", re.I)
_FORM = re.compile(r"_{5,}|\.{12,}|☐|□|❏|\bplease (?:print|complete|fill)\b|\bapplication form\b|\bsignature\b", re.I)
_LEGAL = re.compile(r"\b(?:plaintiff|defendant|court of|tribunal|hereinafter|affidavit|exhibit [A-Z])\b", re.I)
_BROCHURE = re.compile(r"\bbrochure\b|\bbroschüre\b|\bprospekt\b|\bprogramme? of study\b|\bfolleto\b|宣传册", re.I)
_REPORT = re.compile(
    r"\breports?\b|\bsurvey\b|\bbericht\b|\brapport\b|\binforme\b|\bstudie\b|\bwhite ?paper\b|报告|報告", re.I
)
SLIDE_CHARS = 900
"""Characters on the median slide, at most."""


def guess_doc_type(page_set: PageSet) -> str:
    """One of: annual report, research article, slide deck, manual, form, legal document, brochure, report, document.

    Tried in this order of evidence: self-description on the first three pages, shape (landscape pages with little
    text are slides), apparatus (abstract and references), blanks to fill in.
    """
    pages = page_set.pages
    if not pages:
        return "document"
    texts = [unicodedata.normalize("NFKC", page.text) for page in pages]
    start, whole = "\n".join(texts[:3]), "\n".join(texts)
    landscape = sum(page.width > 1.15 * page.height for page in pages) * 2 > len(pages)
    usual = median(len(text) for text in texts)
    slides = landscape and usual <= SLIDE_CHARS and len(pages) >= 5
    if _ANNUAL.search(start) and len(pages) >= 30:
        return "annual report"
    if slides and not _BROCHURE.search(start):
        return "slide deck"
    scholarly = (
        bool(_ABSTRACT.search(start)) + bool(_REFERENCES.search(whole)) + (len(_SCHOLARLY.findall(whole)) >= 3)
    )
    if scholarly >= 2 and len(pages) <= 80:
        return "research article"
    if _MANUAL.search(start) or (_HANDBOOK.search(texts[0]) and len(pages) >= 10):
        return "manual"
    if len(pages) <= 12 and len(_FORM.findall(whole)) >= 3 * len(pages):
        return "form"
    if len(_LEGAL.findall(start)) >= 2:
        return "legal document"
    if _BROCHURE.search(start) or (len(pages) <= 24 and usual <= SLIDE_CHARS and not _REPORT.search(start)):
        return "brochure"
    if _REPORT.search(start) or len(pages) >= 12:
        return "report"
    return "document"
