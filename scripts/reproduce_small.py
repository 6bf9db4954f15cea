"""A small run that compares DocMemo with its baselines and key ablations, whatever models are configured.

It runs in a folder of its own, so params.yaml, data/ and metrics/ of the project stay as they are; documents that the
shared store (DOCMEMO_HOME) knows are not computed again. The dataset is a folder of MMLongBench-Doc, cut to
`samples-smoke.json` where it has one and else to its first documents, or the bundled sample.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from docmemo.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = ("ingest", "render", "layout", "embed", "summarize", "schema")
NAMES = ("full", "static", "requery", "fixed_rounds", "no_memory", "no_belief", "no_bayes", "no_propagation")
SMOKE = "samples-smoke.json"
WHOLE = "samples.json"
FIRST_DOCUMENTS = 6
"""Documents taken of a dataset without a small set of questions."""


def dataset_section(dataset: Path | None) -> dict[str, Any]:
    """The section `dataset` of params.yaml.

    Raises:
        SystemExit: if the folder is not one of MMLongBench-Doc.
    """
    if dataset is None:
        return {"root": str(ROOT / "data" / "sample"), "format": "sample", "questions": None, "limit": None}
    root = dataset.resolve()
    chosen = {"root": str(root), "format": "mmlongbench"}
    if (root / SMOKE).is_file():
        return {**chosen, "questions": SMOKE, "limit": None}
    if (root / WHOLE).is_file():
        return {**chosen, "questions": WHOLE, "limit": FIRST_DOCUMENTS}
    raise SystemExit(f"{root} has neither {SMOKE} nor {WHOLE}: name a folder of MMLongBench-Doc.")


def prepare(folder: Path, dataset: Path | None) -> None:
    """Make `folder` a place to run stages in: the project's parameters and lock, another dataset."""
    folder.mkdir(parents=True, exist_ok=True)
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["dataset"] = dataset_section(dataset)
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False), encoding="utf-8")
    shutil.copy(ROOT / "models.lock.json", folder)


def run(folder: Path, *command: str) -> None:
    """Run a module in `folder`.

    Raises:
        SystemExit: with the module's status if it fails; it has said why.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    status = subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, check=False).returncode
    if status:
        raise SystemExit(status)


def main() -> None:
    """Prepare, run the offline stages, compare; prints where the table is."""
    parser = argparse.ArgumentParser(prog="make reproduce-small", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", type=Path, help="folder of MMLongBench-Doc (else the bundled sample)")
    parser.add_argument("--names", nargs="+", default=list(NAMES), help="configurations of flows.ablations")
    chosen = parser.parse_args()
    folder = ROOT / load_settings().state / "reproduce-small"
    prepare(folder, chosen.dataset)
    for stage in OFFLINE:
        run(folder, f"stages.{stage}")
    name = chosen.dataset.resolve().name if chosen.dataset else "the bundled sample"
    title = f"DocMemo, baselines and key ablations on a small part of {name}"
    run(folder, "flows.ablations", "--title", title, "--out", "metrics", "--names", *chosen.names)
    print(folder / "metrics" / "ablations.md")


if __name__ == "__main__":
    main()
