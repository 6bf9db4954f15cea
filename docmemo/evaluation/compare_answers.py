"""Answers and pages of flipped questions, as far as they are on this machine: in the working tree or in DVC's cache.

metrics/ holds no text of anyone's, and answers quote documents: nothing made with these belongs into git.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from docmemo.evaluation.revisions import Repository, Revision

_FOLDER = "data/answers"
_FILE = "answers.jsonl"


@dataclass(frozen=True)
class AnswerView:
    """What one run said to a question."""

    answer: str
    """The answer, the verdict that there is none, or the error."""
    pages: tuple[tuple[int, ...], ...]
    """Pages read, round by round."""


def answers_of(repository: Repository, revision: Revision) -> dict[str, AnswerView]:
    """Question id to what the run said; empty where its answers are not on this machine."""
    path = repository.project / _FOLDER / _FILE if not revision.sha else _cached(repository, revision)
    if path is None or not path.is_file():
        return {}
    found = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            found[str(record["question_id"])] = _view(record)
    return found


def chosen(
    names: Iterable[str], a: Mapping[str, AnswerView], b: Mapping[str, AnswerView]
) -> dict[str, tuple[AnswerView | None, AnswerView | None]]:
    """What both runs said to each of these questions."""
    return {name: (a.get(name), b.get(name)) for name in dict.fromkeys(names)}


def _view(record: Mapping[str, Any]) -> AnswerView:
    said = {
        "answer": record.get("answer") or "",
        "not_answerable": "Not answerable",
        "failed": f"failed: {(record.get('error') or {}).get('message', '')}",
    }
    pages = tuple(tuple(int(p) for p in r.get("evidence", ())) for r in record.get("rounds", ()))
    return AnswerView(said.get(record["outcome"], ""), pages)


def _cached(repository: Repository, revision: Revision) -> Path | None:
    """answers.jsonl of a commit in DVC's cache, by the digests in its dvc.lock."""
    content = repository.read(revision, "dvc.lock")
    try:
        stages = (yaml.safe_load(content or b"") or {}).get("stages", {})
        outs = stages.get("answer", {}).get("outs", [])
        folder = next(out["md5"] for out in outs if out["path"] == _FOLDER)
        cache = cache_folder(repository)
        listing = json.loads(_object(cache, folder).read_bytes())
        return _object(cache, next(item["md5"] for item in listing if item["relpath"] == _FILE))
    except (StopIteration, OSError, ValueError, KeyError, yaml.YAMLError):
        return None


def cache_folder(repository: Repository) -> Path:
    """DVC's cache of this project, as .dvc/config.local or .dvc/config name it."""
    settings = repository.project / ".dvc"
    for name in ("config.local", "config"):
        if (settings / name).is_file():
            folder = repository.maybe("config", "-f", str(settings / name), "--get", "cache.dir")
            if folder:
                return settings / Path(folder)
    return settings / "cache"


def _object(cache: Path, md5: str) -> Path:
    return cache / "files" / "md5" / md5[:2] / md5[2:]
