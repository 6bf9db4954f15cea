"""The manifest: every document with its state, questions in one schema, and the same bytes every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmemo.artifacts import read_json, read_jsonl
from docmemo.config import DatasetParams
from docmemo.datasets.base import PAST_END
from docmemo.datasets.ingest import IngestSummary, content_digest, ingest
from docmemo.errors import DatasetError, WorkerDiedError
from docmemo.types import Document, Question
from tests.datasets.helpers import inspect_bytes, make_benchmark, make_files, sample_row, write_lines


def run(root: Path, out: Path, form: str = "folder", **more: Any) -> IngestSummary:
    params = DatasetParams(root=str(root), format=form)  # type: ignore[arg-type]
    return ingest(params, root, out, more.pop("inspect", inspect_bytes), **more)


def test_a_broken_document_is_recorded_with_its_reason_and_the_run_goes_on(tmp_path: Path) -> None:
    root, out = tmp_path / "in", tmp_path / "out"
    make_files(root, "a.pdf", "broken.pdf")
    write_lines(root / "questions.jsonl", {"question": "a?", "doc_id": "a"}, {"question": "b?", "doc_id": "broken"})
    summary = run(root, out)
    good, bad = read_jsonl(out / "documents.jsonl", Document)
    assert (good.status, good.n_pages, len(good.sha256)) == ("ok", 10, 64)
    assert (bad.status, bad.reason) == ("failed", "It is damaged. Get another copy.")
    assert (summary.n_documents, summary.n_documents_failed, summary.n_pages) == (2, 1, 10)
    assert (summary.n_questions, summary.n_questions_on_failed_documents) == (2, 1)
    assert len(list(read_jsonl(out / "questions.jsonl", Question))) == 2
    assert read_json(out / "dataset.json", IngestSummary) == summary
    assert summary.quirks["document failed"].count == 1


def test_a_worker_that_dies_over_a_document_costs_only_that_document(tmp_path: Path) -> None:
    def inspect(path: Path, kind: str) -> tuple[int, str]:
        if path.name == "bomb.pdf":
            raise WorkerDiedError("The worker process ended while it opened the file.")
        return inspect_bytes(path, kind)

    make_files(tmp_path / "in", "a.pdf", "bomb.pdf", "c.pdf")
    summary = run(tmp_path / "in", tmp_path / "out", inspect=inspect)
    assert (summary.n_documents, summary.n_documents_failed) == (3, 1)


def test_an_error_of_the_program_is_not_taken_for_a_bad_document(tmp_path: Path) -> None:
    def inspect(path: Path, kind: str) -> tuple[int, str]:
        raise ZeroDivisionError

    make_files(tmp_path / "in", "a.pdf")
    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "in", tmp_path / "out", inspect=inspect)


def test_wrong_questions_stop_before_a_document_is_opened(tmp_path: Path) -> None:
    def inspect(path: Path, kind: str) -> tuple[int, str]:
        raise AssertionError("opened")

    make_files(tmp_path / "in", "a.pdf")
    write_lines(tmp_path / "in/questions.jsonl", {"question": "", "doc_id": "a"})
    with pytest.raises(DatasetError):
        run(tmp_path / "in", tmp_path / "out", inspect=inspect)
    assert not (tmp_path / "out").exists()


def test_pages_past_the_end_and_twins_are_noted(tmp_path: Path) -> None:
    make_benchmark(tmp_path / "in", sample_row(evidence_pages="[11]"), sample_row(doc_id="twin.pdf"))
    (tmp_path / "in/documents/twin.pdf").write_bytes((tmp_path / "in/documents/report.pdf").read_bytes())
    summary = run(tmp_path / "in", tmp_path / "out", "mmlongbench")
    assert summary.quirks[PAST_END].count == 1
    assert "report.pdf = twin.pdf" in summary.quirks["same content under two names"].explanation
    first, _ = read_jsonl(tmp_path / "out/questions.jsonl", Question)
    assert first.quirks == [PAST_END]


def test_a_missing_pdf_is_never_opened(tmp_path: Path) -> None:
    make_benchmark(tmp_path / "in", sample_row(), sample_row(doc_id="gone.pdf"))
    summary = run(tmp_path / "in", tmp_path / "out", "mmlongbench")
    assert (summary.n_documents_failed, summary.n_questions_on_failed_documents) == (1, 1)


def test_the_same_dataset_gives_the_same_bytes_however_it_is_read(tmp_path: Path) -> None:
    names = [f"{n}.pdf" for n in "edcba"]
    make_files(tmp_path / "one", *names)
    make_files(tmp_path / "two", *reversed(names))
    seen: list[tuple[int, int]] = []
    run(tmp_path / "one", tmp_path / "out1")
    run(tmp_path / "two", tmp_path / "out2", jobs=4, progress=lambda done, total: seen.append((done, total)))
    for name in ("documents.jsonl", "questions.jsonl"):
        assert (tmp_path / "out1" / name).read_bytes() == (tmp_path / "out2" / name).read_bytes()
    digests = {json.loads((tmp_path / out / "dataset.json").read_text())["digest"] for out in ("out1", "out2")}
    assert len(digests) == 1
    assert seen == [(i, 5) for i in range(1, 6)]


def test_a_changed_document_changes_the_digest(tmp_path: Path) -> None:
    make_files(tmp_path / "in", "a.pdf", "b.pdf")
    before = run(tmp_path / "in", tmp_path / "out").digest
    (tmp_path / "in/b.pdf").write_bytes(b"other bytes")
    assert run(tmp_path / "in", tmp_path / "out").digest != before


def test_a_field_added_later_does_not_make_the_same_dataset_another_one() -> None:
    class Later(Question):
        note: str = ""

    asked = {"question_id": "q", "doc_id": "d.pdf", "question": "Who?"}
    before = content_digest([], [Question(**asked)])
    assert content_digest([], [Later(**asked)]) == before
    assert content_digest([], [Later(**asked, note="read")]) != before
