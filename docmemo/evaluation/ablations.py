"""The table of configurations: the full method, each part of it switched off, and baselines, on the same questions.

Columns are those of the paper's Table 4. Every figure is one of `aggregate.aggregate`; a difference to the full
method is paired by question. Nothing here depends on when or how fast anything ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmemo.evaluation.aggregate import Case, all_hit_until, multi_page, recall_until
from docmemo.evaluation.definitions import DEFINITIONS
from docmemo.evaluation.efficiency import RATIOS, efficiency
from docmemo.evaluation.intervals import Interval, difference_interval
from docmemo.evaluation.terminal import EXTRACTS

Row = dict[str, Any]

FULL = "full"
DESCRIPTIONS: dict[str, str] = {
    FULL: "the configured method",
    "no_schema": "reranker and reader do not see schema memory",
    "no_belief": "candidates and evidence by the current query's similarity alone",
    "no_episodic": "reranker and reader do not see earlier rounds' queries and notes; the refined query still drives "
    "retrieval",
    "no_memory": "without schema, belief and episodic memory at once",
    "no_bayes": "feedback does not change the belief, which stays at its prior",
    "greedy": "the posterior mean in place of a draw or of another policy; the same as full where the policy is the "
    "mean",
    "no_crops": "no crops of tables and figures",
    "no_propagation": "feedback on a page does not spread to its neighbours",
    "static": "baseline: one round, the best pages once",
    "requery": "baseline: rounds without memory, each reads only its own pages",
    "fixed_rounds": "baseline: always all rounds, the last one decides",
}
"""Configuration to what it is; the names but the first are those of `loop.ablation`."""

SLICES: dict[str, tuple[str, ...]] = {
    "TXT": ("by_evidence_source", "text"),
    "LAY": ("by_evidence_source", "layout"),
    "CHA": ("by_evidence_source", "chart"),
    "TAB": ("by_evidence_source", "table"),
    "FIG": ("by_evidence_source", "figure"),
    "UNA": ("unanswerable",),
    "single": ("single_page",),
    "multi": ("multi_page",),
}
"""Column to its slice in metrics/scores.json; the last column, overall, is all questions."""

METRICS = ("recall", "all_hit", "accuracy")
BASELINES = ("static", "requery")
"""What efficiency is measured against."""
PAIRED = ("difference", "low", "high")
CSV_COLUMNS = (
    *("configuration", "metric", *SLICES, "overall"),
    *PAIRED,
    *(f"multi_{name}" for name in PAIRED),
    *("f1", "rounds", "page_reads", "distinct_pages", "calls", "changed", "n_failed", "n_unscored"),
    *(f"{ratio}_to_{baseline}" for baseline in BASELINES for ratio in RATIOS),
)


@dataclass(frozen=True)
class Configuration:
    """One row of the table."""

    name: str
    cases: Sequence[Case]
    """In the order of the questions, which is the same for all configurations."""
    scores: Mapping[str, Any]
    """`aggregate.aggregate` of the same cases, not forced."""

    def value(self, metric: str, column: str) -> float | None:
        """A figure of the table, 0..1; None where the slice has nothing to take it over."""
        if column == "overall":
            found = self.scores["accuracy"]["rule"]["value"]
            if metric != "accuracy":
                curve = self.scores["evidence"][f"{metric}_at_round"]
                found = curve[max(curve, key=int)]
        else:
            figures = self._slice(column)
            if figures is None:
                return None
            found = (figures["accuracy"] if metric == "accuracy" else figures["evidence"][metric])["value"]
        return None if found is None else float(found)

    def count(self, metric: str, column: str) -> int:
        """How many questions a column is over: of evidence figures those with gold pages."""
        if column == "overall":
            return int(self.scores["n_questions"] if metric == "accuracy" else self.scores["evidence"]["n"])
        figures = self._slice(column)
        return 0 if figures is None else int(figures["n" if metric == "accuracy" else "n_evidence"])

    def _slice(self, column: str) -> Mapping[str, Any] | None:
        found: Any = self.scores
        for key in SLICES[column]:
            found = found.get(key)
        return found if isinstance(found, Mapping) else None

    @property
    def rounds(self) -> int:
        """T of the run."""
        return max(map(int, self.scores["evidence"]["recall_at_round"]))


@dataclass(frozen=True)
class MadeWith:
    """What the table was made with."""

    models: Mapping[str, Mapping[str, Any]]
    """Role to lock entry."""
    digests: Mapping[str, str]
    """Parameters, code, dataset and so on, by name."""
    evidence_finder: bool
    """Whether answers are the embedded reader's extracts."""
    title: str = "Ablations and baselines"


def differences(configuration: Configuration, full: Configuration, metric: str, *, multi: bool = False) -> Interval:
    """The figure minus that of the full method, over questions that have both, with its paired interval.

    Args:
        configuration, full: about the same questions in the same order.
        metric: one of METRICS.
        multi: only over questions with several gold pages.
    """
    value = _values(metric, full.rounds)
    found: list[tuple[float, str]] = []
    for mine, other in zip(configuration.cases, full.cases, strict=True):
        if multi and not multi_page([mine]):
            continue
        here, there = value(mine), value(other)
        if here is not None and there is not None:
            found.append((here - there, mine.question.doc_id))
    return difference_interval([d for d, _ in found], [doc for _, doc in found])


def _values(metric: str, rounds: int) -> Callable[[Case], float | None]:
    if metric == "accuracy":
        return lambda case: case.score
    page_value = recall_until(rounds) if metric == "recall" else all_hit_until(rounds)
    return lambda case: page_value(case) if case.gold else None


def changed(configuration: Configuration, full: Configuration) -> int:
    """Questions whose outcome, answer or pages read differ from those of the full method."""

    def shown(case: Case) -> object:
        return case.answer and (case.answer.outcome, case.answer.answer, case.reads)

    return sum(shown(a) != shown(b) for a, b in zip(configuration.cases, full.cases, strict=True))


def csv_rows(configurations: Sequence[Configuration]) -> list[Row]:
    """metrics/ablations.csv: one row a configuration and metric, after the numbers of questions.

    Differences are to the configuration named "full"; without one they are empty.
    """
    first = configurations[0]
    columns = (*SLICES, "overall")
    counts = [
        {"configuration": "questions", "metric": metric} | {c: first.count(metric, c) for c in columns}
        for metric in METRICS
    ]
    known = {c.name: c for c in configurations}
    return counts + [_row(c, metric, known) for c in configurations for metric in METRICS]


def _row(configuration: Configuration, metric: str, known: Mapping[str, Configuration]) -> Row:
    scores = configuration.scores
    row: Row = {"configuration": configuration.name, "metric": metric}
    row |= {column: configuration.value(metric, column) for column in (*SLICES, "overall")}
    row |= {
        "f1": scores["f1"]["rule"]["value"],
        **{name: scores[name]["mean"] for name in ("rounds", "page_reads", "distinct_pages")},
        "calls": scores["calls"]["online"],
        **{name: scores[name] for name in ("n_failed", "n_unscored")},
    }
    for baseline in known.keys() & set(BASELINES) - {configuration.name}:
        found = efficiency(scores, known[baseline].scores)
        row |= {f"{ratio}_to_{baseline}": value for ratio, value in found.items()}
    full = known.get(FULL)
    if full is None:
        return row
    row["changed"] = changed(configuration, full)
    if configuration.name != FULL:
        for prefix, multi in (("", False), ("multi_", True)):
            gap = differences(configuration, full, metric, multi=multi)
            row |= {f"{prefix}difference": gap.value, f"{prefix}low": gap.low, f"{prefix}high": gap.high}
    return row


_LABELS = {"recall": "evidence recall", "all_hit": "evidence all-hit", "accuracy": "accuracy (rule)"}


def markdown(configurations: Sequence[Configuration], made: MadeWith) -> str:
    """metrics/ablations.md: a summary, differences to full, the three figures by slice, and what all of it means."""
    order = METRICS if made.evidence_finder else ("accuracy", "recall", "all_hit")
    labels = dict(_LABELS)
    if made.evidence_finder:
        labels["accuracy"] = "accuracy (rule) of extracts"
    full = next((c for c in configurations if c.name == FULL), None)
    parts = [f"# {made.title}", *_introduction(configurations[0], made)]
    parts += ["## Overall", _summary(configurations, full, order, labels)]
    if full is not None and len(configurations) > 1:
        parts += ["## Difference to full", _difference_table(configurations, full, order, labels)]
    parts += _efficiency(configurations)
    for metric in order:
        parts += [f"## {labels[metric][0].upper()}{labels[metric][1:]}, by slice", _by_slice(configurations, metric)]
    parts += ["## What it means", _list({c.name: DESCRIPTIONS[c.name] for c in configurations})]
    same = [c.name for c in configurations if full is not None and c.name != FULL and not changed(c, full)]
    if same:
        parts.append(
            f"No question changed under {', '.join(same)}: with these models and parameters what is switched off "
            "there decides nothing."
        )
    parts += [_list(_definitions(configurations[0])), "## Made with", _list(_sources(made))]
    return "\n\n".join(parts) + "\n"


def _introduction(first: Configuration, made: MadeWith) -> list[str]:
    scores = first.scores
    text = (
        f"{scores['n_questions']} questions ({scores['evidence']['n']} with gold pages) about "
        f"{scores['n_documents']} documents. All figures in per cent, counts aside; differences in points."
    )
    if not made.evidence_finder:
        return [text]
    note = f"The answers are {EXTRACTS}: evidence figures come first, and accuracy is that of extracts."
    return [text, note]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _summary(
    configurations: Sequence[Configuration],
    full: Configuration | None,
    order: Sequence[str],
    labels: Mapping[str, str],
) -> str:
    names = ("rounds", "page_reads", "distinct_pages")
    header = ["configuration"]
    for metric in order:
        header += [labels[metric], "F1 (rule)"] if metric == "accuracy" else [labels[metric]]
    header += ["rounds", "page reads", "different pages", "model calls", "failed", "changed"]
    rows = []
    for c in configurations:
        cells = [c.name]
        for metric in order:
            cells.append(_percent(c.value(metric, "overall")))
            if metric == "accuracy":
                cells.append(_percent(c.scores["f1"]["rule"]["value"]))
        means = [c.scores[name]["mean"] for name in names]
        cells += ["–" if mean is None else f"{mean:.2f}" for mean in means]
        cells += [str(c.scores["calls"]["online"]), str(c.scores["n_failed"])]
        rows.append([*cells, str(changed(c, full)) if full is not None else "–"])
    return _table(header, rows)


def _efficiency(configurations: Sequence[Configuration]) -> list[str]:
    baselines = [c for c in configurations if c.name in BASELINES]
    if not baselines or len(configurations) == 1:
        return []
    header = ["configuration", *(f"{ratio} to {b.name}" for b in baselines for ratio in RATIOS)]
    rows = []
    for c in configurations:
        cells: list[str] = []
        for baseline in baselines:
            found = efficiency(c.scores, baseline.scores)
            values = [None if c.name == baseline.name else found[ratio] for ratio in RATIOS]
            cells += ["–" if value is None else f"{value:.2f}" for value in values]
        rows.append([c.name, *cells])
    parts = [
        "## Efficiency",
        _table(header, rows),
        _list({ratio: DEFINITIONS[f"efficiency.{ratio}"] for ratio in RATIOS}),
    ]
    if all(not c.scores["calls"]["online"] for c in configurations):
        parts.append("No model is called while answering, so only rounds have a ratio.")
    return parts


def _difference_table(
    configurations: Sequence[Configuration],
    full: Configuration,
    order: Sequence[str],
    labels: Mapping[str, str],
) -> str:
    columns = [(metric, multi) for multi in (False, True) for metric in order]
    header = ["configuration", *(f"{labels[m]}{', multi-page' if multi else ''}" for m, multi in columns)]
    rows = [
        [c.name, *(_difference(differences(c, full, metric, multi=multi)) for metric, multi in columns)]
        for c in configurations
        if c.name != FULL
    ]
    return _table(header, rows)


def _difference(interval: Interval) -> str:
    if interval.value is None:
        return "–"
    limits = interval.note
    if interval.low is not None and interval.high is not None:
        limits = f"{_signed(interval.low)} to {_signed(interval.high)}"
    return f"{_signed(interval.value)} ({limits})"


def _signed(value: float) -> str:
    points = f"{100 * abs(value):.1f}"
    return points if float(points) == 0 else f"{'+' if value > 0 else '−'}{points}"


def _by_slice(configurations: Sequence[Configuration], metric: str) -> str:
    columns = (*SLICES, "overall")
    rows = [["questions", *(str(configurations[0].count(metric, column)) for column in columns)]]
    rows += [[c.name, *(_percent(c.value(metric, column)) for column in columns)] for c in configurations]
    header = ["configuration", *columns]
    if metric == "accuracy":
        header.append("F1 (rule)")
        rows = [[*rows[0], ""]] + [
            [*row, _percent(c.scores["f1"]["rule"]["value"])] for row, c in zip(rows[1:], configurations, strict=True)
        ]
    return _table(header, rows)


def _list(items: Mapping[str, str]) -> str:
    return "\n".join(f"- **{name}**: {text.rstrip('.')}." for name, text in items.items())


def _definitions(first: Configuration) -> dict[str, str]:
    """Every figure of the tables in words."""
    return {
        "evidence recall": f"{DEFINITIONS['evidence.recall_at_round']} Here up to round {first.rounds}, the last.",
        "evidence all-hit": DEFINITIONS["evidence.all_hit_at_round"],
        "accuracy (rule)": DEFINITIONS["accuracy.rule"],
        "F1 (rule)": DEFINITIONS["f1.rule"],
        "TXT, LAY, CHA, TAB, FIG": "Text, layout, chart, table, figure. " + DEFINITIONS["by_evidence_source"],
        "UNA": DEFINITIONS["unanswerable"] + " Evidence figures exist only for those that list gold pages.",
        "single": DEFINITIONS["single_page"],
        "multi": DEFINITIONS["multi_page"],
        "overall": "All questions, unanswerable ones too.",
        "difference": "Mean over questions of (figure under this configuration - figure under full), the same "
        "question under both. 95% interval over documents: leave-one-document-out variance, t; none below 10 "
        "documents ('too few documents') and where no question's figure differs ('all equal'). Configurations read "
        "different numbers of pages: see page reads beside a difference in evidence.",
        "rounds": DEFINITIONS["rounds.mean"],
        "page reads": DEFINITIONS["page_reads.mean"],
        "different pages": DEFINITIONS["distinct_pages.mean"],
        "model calls": "Requests to language models while answering, all questions together, failed ones included.",
        "failed": DEFINITIONS["n_failed"],
        "changed": "Questions whose outcome, answer or pages read differ from those under full.",
    }


def _sources(made: MadeWith) -> dict[str, str]:
    models = {
        role: ", ".join(
            str(entry[key]) for key in ("provider", "id", "revision", "package_version") if entry.get(key)
        )
        for role, entry in made.models.items()
    }
    return models | {f"{name} digest": digest for name, digest in made.digests.items()}
