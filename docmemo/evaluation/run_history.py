"""The runs of a project: commits that changed metrics/scores.json, DVC's experiments, and which run is accepted.

The accepted run is a git ref, so moving it touches no file and no branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docmemo.evaluation.history import HistoryRow
from docmemo.evaluation.revisions import WORKING_TREE, Repository, Revision, RevisionError
from docmemo.evaluation.run_metrics import PROVENANCE, SCORES, parse_object
from docmemo.evaluation.terminal import evidence_curves
from docmemo.fingerprint import digest

ACCEPTED_REF = "refs/docmemo/accepted"
FALLBACKS = ("main", "origin/main")
"""What counts as the accepted run while the ref does not exist."""

FIGURES: Mapping[str, str] = {
    "rule": "accuracy (rule)",
    "judge": "accuracy (LLM judge)",
    "f1": "F1 (rule)",
    "recall": "evidence recall",
    "all_hit": "evidence all-hit",
}


@dataclass(frozen=True)
class Headline:
    """A figure with its 95% interval."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Run:
    """One run that git knows of."""

    revision: Revision
    kind: str
    """commit, experiment or working tree."""
    figures: Mapping[str, Headline]
    models: Mapping[str, str]
    """Role to provider, id and revision."""
    models_digest: str
    dataset: str
    """Its digest; '' when not recorded."""
    scorer: str
    n_questions: int | None
    n_failed: int | None
    n_unscored: int | None
    n_documents: int | None
    calls: int | None
    tokens: int | None
    cost_usd: float | None
    """Offline and online together; None as soon as one part is unknown."""
    names: Sequence[str] = ()
    """Branches and tags that stand there."""
    accepted: bool = False
    cut_off: bool = False
    """The clone's history ends here, so the run may be older than this commit."""
    evidence_finder: bool = False

    @property
    def series(self) -> tuple[str, str]:
        """Runs of the same series may be compared: same questions, same rule."""
        return self.dataset, self.scorer

    @property
    def reasoner(self) -> str:
        """Who read."""
        return self.models.get("reasoner", "")

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON holds it."""
        values = asdict(self)
        return {**values, "figures": {name: asdict(figure) for name, figure in self.figures.items()}}


def make_run(
    revision: Revision, kind: str, scores: Mapping[str, Any], provenance: Mapping[str, Any], **more: Any
) -> Run:
    """A run out of its scores.json and provenance.json; what an older version did not write is unknown."""
    models = provenance.get("models") or {}
    dataset, judge = provenance.get("dataset") or "", provenance.get("judge") or ""
    return Run(
        revision=revision,
        kind=kind,
        figures=_headlines(scores),
        models={role: _model(entry) for role, entry in models.items() if isinstance(entry, Mapping)},
        models_digest=digest(models),
        dataset=str(dataset.get("digest", "") if isinstance(dataset, Mapping) else dataset),
        scorer=str(judge.get("scorer", "") if isinstance(judge, Mapping) else judge),
        n_questions=scores.get("n_questions"),
        n_failed=scores.get("n_failed"),
        n_unscored=scores.get("n_unscored"),
        n_documents=scores.get("n_documents"),
        calls=_whole(_total(scores.get("calls"))),
        tokens=_whole(_total(scores.get("tokens"))),
        cost_usd=_total(scores.get("cost_usd")),
        evidence_finder=_at(provenance, "params", "answer", "reader") == "embedded",
        **more,
    )


def _headlines(scores: Mapping[str, Any]) -> dict[str, Headline]:
    found = {
        "rule": _headline(_at(scores, "accuracy", "rule")),
        "judge": _headline(_at(scores, "accuracy", "judge")),
        "f1": _headline(_at(scores, "f1", "rule")),
    }
    for name in ("recall", "all_hit"):
        key = f"{name}_at_round"
        try:
            curve = evidence_curves(scores)[0][key]
            last = max(curve, key=int)
            limits = scores["evidence"]["intervals"][key][last]
            found[name] = Headline(curve[last], limits["low"], limits["high"])
        except (KeyError, TypeError, ValueError):
            found[name] = Headline()
    return found


def _headline(value: Any) -> Headline:
    return Headline(*(value.get(k) for k in ("value", "low", "high"))) if isinstance(value, Mapping) else Headline()


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _total(sides: Any) -> float | None:
    values = list(sides.values()) if isinstance(sides, Mapping) else []
    return sum(values) if values and all(isinstance(v, int | float) for v in values) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _model(entry: Mapping[str, Any]) -> str:
    parts = [str(entry.get(key, "")) for key in ("provider", "id", "revision")]
    return " / ".join(part[:60] for part in parts if part)


def accepted(repository: Repository, ref: str = ACCEPTED_REF) -> Revision:
    """The last accepted run's revision; while nothing was accepted, main.

    Raises:
        RevisionError: if there is neither.
    """
    for name in (ref, *FALLBACKS):
        if repository.maybe("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"):
            return repository.resolve(name)
    raise RevisionError(
        f"No run is accepted: there is neither {ref} nor {' nor '.join(FALLBACKS)}.",
        remedy="`docmemo accept REV` names one.",
    )


def runs(
    repository: Repository,
    start: Sequence[str] = ("HEAD",),
    *,
    everything: bool = False,
    ref: str = ACCEPTED_REF,
) -> list[Run]:
    """Every run that git knows of, newest first: the working tree's where it differs, commits, then experiments.

    Args:
        start: commits whose history is listed.
        everything: list the history of all branches and tags too.
        ref: the accepted run's ref.
    """
    commits = [(revision, "commit") for revision in repository.commits_touching(SCORES, start, everything)]
    known = {revision.sha for revision, _ in commits}
    for experiment in repository.experiments():
        if experiment.sha not in known:
            date, subject = repository.text("show", "-s", "--format=%cI%x00%s", experiment.sha).split("\x00", 1)
            commits.append((Revision(experiment.name, experiment.sha, date, subject), "experiment"))
    files = repository.read_many([(r.sha, path) for r, _ in commits for path in (SCORES, PROVENANCE)])
    names, cut_off = repository.names_of(), repository.cut_off()
    chosen = repository.maybe("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    standing = _run_at(repository, chosen) if chosen else ""
    found = []
    for revision, kind in commits:
        scores = parse_object(files[revision.sha, SCORES])
        if scores is None:
            continue
        provenance = parse_object(files[revision.sha, PROVENANCE]) or {}
        run = make_run(
            revision,
            kind,
            scores,
            provenance,
            names=names.get(revision.sha, []),
            accepted=revision.sha in (standing, chosen),
            cut_off=revision.sha in cut_off,
        )
        found.append(run)
    return [*_working_tree(repository), *found]


def _run_at(repository: Repository, sha: str) -> str:
    """The commit that made the figures a commit holds: it may stand some commits after them."""
    return repository.maybe("log", "-1", "--format=%H", sha, "--", SCORES) or ""


def _working_tree(repository: Repository) -> list[Run]:
    content = repository.read(Revision(WORKING_TREE), SCORES)
    scores = parse_object(content)
    if scores is None:
        return []
    if repository.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
        committed = repository.read(repository.resolve("HEAD"), SCORES)
        if committed == content:
            return []
    provenance = parse_object(repository.read(Revision(WORKING_TREE), PROVENANCE)) or {}
    return [make_run(Revision(WORKING_TREE), WORKING_TREE, scores, provenance)]


def history_row(run: Run) -> HistoryRow:
    """A run as metrics/history.csv keeps it."""
    rule, recall = run.figures["rule"], run.figures["recall"]
    return HistoryRow(
        date=run.revision.date,
        revision=run.revision.sha,
        accuracy=rule.value,
        accuracy_low=rule.low,
        accuracy_high=rule.high,
        judge=run.figures["judge"].value,
        f1=run.figures["f1"].value,
        recall=recall.value,
        recall_low=recall.low,
        recall_high=recall.high,
        all_hit=run.figures["all_hit"].value,
        n=run.n_questions,
        n_failed=run.n_failed,
        cost_usd=run.cost_usd,
        models=run.models_digest,
        dataset=run.dataset,
    )
