"""Writes the sample corpus: `python -m scripts.make_sample [--out data/sample]`."""

from __future__ import annotations

import argparse
import sys
from importlib import resources
from pathlib import Path

from .corpus import as_jsonl, read_questions
from .documents import RECIPES


def main() -> None:
    parser = argparse.ArgumentParser(prog="make_sample", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("data/sample"), help="folder to write")
    parser.add_argument("--only", nargs="*", metavar="DOC_ID", help="write just these PDFs, and no lists")
    arguments = parser.parse_args()
    out: Path = arguments.out
    (out / "documents").mkdir(parents=True, exist_ok=True)
    documents: list[dict[str, object]] = []
    questions: list[dict[str, object]] = []
    for recipe in RECIPES:
        if arguments.only and recipe.doc_id not in arguments.only:
            continue
        sample = recipe.make()
        (out / "documents" / sample.doc_id).write_bytes(sample.pdf)
        print(f"{sample.doc_id}: {len(sample.pdf) / 1024:.0f} KiB", file=sys.stderr)
        documents.append(dict(sample.record))
        if not arguments.only:
            questions += read_questions(sample)
    if not arguments.only:
        (out / "documents.jsonl").write_text(as_jsonl(documents), encoding="utf-8")
        (out / "questions.jsonl").write_text(as_jsonl(questions), encoding="utf-8")
        readme = (resources.files(__package__) / "content" / "README.md").read_text(encoding="utf-8")
        (out / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
