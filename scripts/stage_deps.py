"""Which of the project's modules each DVC stage really loads, and dvc.yaml's deps brought up to date with that.

Names that a registry resolves are invisible to static tools, so every stage is run, in this process's stead, on a
small dataset, with its workers inside the process. `python -m scripts.stage_deps --write` rewrites the module lines
of dvc.yaml; a test compares them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("ingest", "render", "layout", "embed", "summarize", "schema", "answer", "judge", "report")
DATASET_FORMATS = ("folder", "locate", "longdocurl", "mmlongbench", "papertab", "sample")  # and what they share
PACKAGES = ("docmemo", "stages", "flows")
CLIENT = ("docmemo.models.openai_compatible", "docmemo.models.connection", "docmemo.models.limiter")
ENCODER = ("docmemo.models.colqwen", "docmemo.models.devices")
BACKENDS: dict[str, tuple[str, ...]] = {
    "layout": ("docmemo.documents.mineru", "docmemo.models.mineru_command"),
    "embed": (*ENCODER, "docmemo.pipeline.page_vectors"),
    "summarize": ("docmemo.pipeline.summarize_vlm", *CLIENT),
    "schema": ("docmemo.pipeline.schema_vlm", *CLIENT),
    "answer": ("docmemo.qa.reasoner", "docmemo.qa.rerank", "docmemo.models.colqwen_queries", *ENCODER, *CLIENT),
    "judge": ("docmemo.evaluation.llm_judge", *CLIENT),
}
"""Stage to the backends that other parameters choose: they are imported beside what this run loads, with what they
import in their turn, so that the deps of a stage do not depend on the preset."""
_RUN = """
import atexit, importlib, json, runpy, sys
def note():
    for name in sys.argv[3:]:
        importlib.import_module(name)
    files = [getattr(m, "__file__", None) for n, m in list(sys.modules.items())
             if n.split(".")[0] in ("docmemo", "stages", "flows")]
    with open(sys.argv[2], "w") as handle:
        json.dump([f for f in files if f], handle)
atexit.register(note)
runpy.run_module("stages." + sys.argv[1], run_name="__main__")
"""


def make_dataset(folder: Path) -> None:
    """A dataset of one text page, one scanned page, and a question."""
    pymupdf: Any = importlib.import_module("pymupdf")

    folder.mkdir(parents=True)
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "Annual report of the water board", fontsize=20)
    page.insert_text((72, 140), "Table 1: Water sold was 412 million litres in 2021, more than ever before.")
    picture = page.get_pixmap(dpi=100)
    document.new_page().insert_image(pymupdf.Rect(0, 0, 595, 842), pixmap=picture)
    document.save(folder / "report.pdf")
    question = {
        "question_id": "q1",
        "doc_id": "report.pdf",
        "question": "How much water was sold in 2021?",
        "answer": "412",
        "answer_format": "Int",
        "evidence_pages": [1],
        "evidence_sources": ["table"],
    }
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")


def loaded_modules(work: Path) -> dict[str, list[str]]:
    """Stage name to the project files it loads, relative to the root, package files without code left out.

    Args:
        work: an empty folder to run in.
    """
    make_dataset(work / "dataset")
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["dataset"].update(root="dataset", format="folder", questions=None, limit=None)
    (work / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    shutil.copy(ROOT / "models.lock.json", work)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DOCMEMO_HOME": str(work / "home"),
        "DOCMEMO_WORKERS": "0",
    }
    found = {}
    for stage in STAGES:
        note = work / f"{stage}.json"
        done = subprocess.run(
            [sys.executable, "-c", _RUN, stage, str(note), *BACKENDS.get(stage, ())],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"stage {stage} failed:\n{done.stderr}")
        files = [Path(file).resolve().relative_to(ROOT) for file in json.loads(note.read_text())]
        files.append(Path("stages") / f"{stage}.py")
        if stage == "ingest":  # which reader it loads is a parameter
            files += [Path("docmemo/datasets") / f"{name}.py" for name in DATASET_FORMATS]
        found[stage] = sorted({f.as_posix() for f in files if (ROOT / f).read_text().strip()})
    return found


def declared_modules() -> dict[str, list[str]]:
    """Stage name to the project's modules among its deps in dvc.yaml."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {
        name: sorted(d for d in stage["deps"] if d.endswith(".py") and d.split("/")[0] in PACKAGES)
        for name, stage in stages.items()
    }


def rewrite(found: dict[str, list[str]]) -> None:
    """Replace the module lines of each stage's deps in dvc.yaml; everything else stays as written."""
    path = ROOT / "dvc.yaml"
    lines, stage, in_deps = [], "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  ") and not line.startswith("   ") and line.rstrip().endswith(":"):
            stage = line.strip().rstrip(":")
        module = line.startswith("      - ") and line.endswith(".py") and line.strip()[2:].split("/")[0] in PACKAGES
        if module:
            continue
        if in_deps and not line.startswith("      - "):
            lines += [f"      - {file}" for file in found[stage]]
            in_deps = False
        in_deps = in_deps or line == "    deps:"
        lines.append(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Print or write the deps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite dvc.yaml")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = loaded_modules(Path(folder))
    if arguments.write:
        rewrite(found)
        return
    print(yaml.safe_dump(found))


if __name__ == "__main__":
    main()
