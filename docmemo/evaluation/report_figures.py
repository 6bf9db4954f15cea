"""Figures as the report prints them. Each says where in metrics/scores.json it stands, so that a test can compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from docmemo.evaluation.intervals import MIN_CLUSTERS, TOO_FEW
from docmemo.evaluation.terminal import limits, percent

Path = str | tuple[str, ...]
"""A key, or several at once."""
UNKNOWN = "unknown"
NONE = "–"


class Figures:
    """Prints values of metrics/scores.json by their path, e.g. `figures.percent("accuracy", "rule", "value")`.

    Args:
        scores: content of the file.
    """

    def __init__(self, scores: Mapping[str, Any]) -> None:
        self._scores = scores

    def get(self, *path: Path) -> Any:
        """The value at a path.

        Raises:
            KeyError: if there is no such key.
        """
        value: Any = self._scores
        for key in _keys(path):
            value = value[key]
        return value

    def percent(self, *path: Path) -> Markup:
        """A share with one decimal; a dash when there is none."""
        return self._figure("num", "percent", path, percent(self.get(*path)))

    def count(self, *path: Path) -> Markup:
        """A whole number."""
        value = self.get(*path)
        return self._figure("num", "count", path, UNKNOWN if value is None else f"{value:,}")

    def decimal(self, *path: Path) -> Markup:
        """A number with two decimals; a dash when there is none."""
        value = self.get(*path)
        return self._figure("num", "decimal", path, NONE if value is None else f"{value:,.2f}")

    def spend(self, *path: Path) -> Markup:
        """A whole number or a sum of money or time; "unknown" when it is not known, which is not 0."""
        value = self.get(*path)
        if value is None:
            return self._figure("num", "spend", path, UNKNOWN)
        return self._figure("num", "spend", path, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}")

    def interval(self, *path: Path) -> Markup:
        """Limits `low` and `high` at a path, or why there are none; nothing when there is no value either."""
        found = self.get(*path)
        text = limits(found["low"], found["high"], found.get("value", 0.0))
        return self._figure("ci", "interval", path, text) if text else Markup("")

    def kappa(self, *path: Path) -> Markup:
        """A value of -1..1 with two decimals and its limits."""
        found = self.get(*path)
        if found["value"] is None:
            return self._figure("num", "kappa", path, NONE)
        low, high = found["low"], found["high"]
        ends = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
        return self._figure("num", "kappa", path, f"{found['value']:.2f}{ends}")

    def bar(self, colour: str, *path: Path) -> Markup:
        """{value, low, high} drawn as a bar with its interval; nothing when there is no value."""
        found = self.get(*path)
        value, low, high = (found[name] for name in ("value", "low", "high"))
        if value is None:
            return Markup("")
        inner = Markup('<i class="{}" style="width:{:.1f}%"></i>').format(colour, 100 * value)
        if low is not None and high is not None:
            whisker = Markup('<b style="left:{:.1f}%;width:{:.1f}%"></b>')
            inner += whisker.format(100 * low, 100 * (high - low))
        return Markup('<span class="bar" aria-hidden="true">{}</span>').format(inner)

    @staticmethod
    def _figure(css: str, kind: str, path: Sequence[Path], text: str) -> Markup:
        made = '<span class="{}" data-figure="{}" data-path="{}">{}</span>'
        return Markup(made).format(css, kind, json.dumps(_keys(path), ensure_ascii=False), text)


def _keys(path: Sequence[Path]) -> list[str]:
    return [key for part in path for key in ((part,) if isinstance(part, str) else part)]


def too_few(n_documents: int) -> str:
    """A sentence for figures that have no interval because there are too few documents; "" when there are enough."""
    if n_documents >= MIN_CLUSTERS:
        return ""
    return f"No intervals: {TOO_FEW} ({n_documents}; from {MIN_CLUSTERS} on)."
