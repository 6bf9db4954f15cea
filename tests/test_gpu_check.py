"""`make gpu-check` where there is nothing to check with, and what it looks at in a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmemo.config import Params
from docmemo.errors import ConfigError
from docmemo.settings import Settings
from scripts import gpu_check


def test_all_that_is_missing_is_named_at_once_and_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_check, "gpus", list)
    monkeypatch.setattr("sys.argv", ["gpu_check"])
    monkeypatch.setenv("DOCMEMO_VLLM", "no-such-vllm")
    monkeypatch.setenv("DOCMEMO_MINERU", "no-such-mineru")
    monkeypatch.setenv("DOCMEMO_CHECK_VLM", "/no/such/folder")
    monkeypatch.setenv("DOCMEMO_CHECK_COLQWEN", "/no/such/folder")
    assert gpu_check.main() == 3
    said = capsys.readouterr().out
    for what in ("NVIDIA GPU", "pip install 'vllm", "pip install mineru", "vision model", "ColQwen2.5"):
        assert what in said
    assert "docs/gpu.md" in said


def test_its_project_is_preset_gpu_over_one_document(tmp_path: Path) -> None:
    params = gpu_check.make_project(tmp_path, rehearse=False)
    assert (params.layout.backend, params.embed.backend, params.answer.reader) == ("mineru", "colqwen", "vlm")
    questions = (tmp_path / "dataset" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(questions) == gpu_check.QUESTIONS
    assert {json.loads(q)["doc_id"] for q in questions} == {gpu_check.DOCUMENT}
    assert (tmp_path / "dataset" / "documents" / gpu_check.DOCUMENT).is_file()


def finished(folder: Path, **changes: Any) -> gpu_check.Run:
    """A run whose answers are written by hand: two questions, the first with evidence on page 3."""
    answer = {
        "question_id": "q1",
        "outcome": "answer",
        "rounds": [{"evidence": [3, 4]}],
        "citations": [{"page": 3}],
        "error": None,
        **changes,
    }
    for name, lines in {
        "data/answers/answers.jsonl": [answer],
        "data/corpus/questions.jsonl": [{"question_id": "q1", "evidence_pages": [3]}],
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    (folder / "metrics").mkdir(exist_ok=True)
    (folder / "metrics" / "scores.json").write_text('{"accuracy": {"rule": {"value": 1.0}}}')
    return gpu_check.Run(folder, Params(), rehearse=False)


def test_a_run_whose_answers_cite_what_was_read_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(tmp_path).look_at_answers()
    assert "evidence read: 1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcome": "failed", "error": {"message": "server gone"}}, "server gone"),
        ({"citations": [{"page": 9}]}, "cites a page that was not read"),
        ({"rounds": [{"evidence": [7]}], "citations": []}, "only 0 of 1"),
    ],
)
def test_a_run_that_does_not_work_fails(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(gpu_check.CheckError, match=words):
        finished(tmp_path, **changes).look_at_answers()


def test_embeddings_that_are_not_finite_or_all_alike_fail(tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    run = gpu_check.Run(tmp_path, Params(), rehearse=False)
    folder = tmp_path / "data" / "embeddings"
    folder.mkdir(parents=True)
    good = np.random.default_rng(0).normal(size=(30, 128)).astype(np.float16)
    save_file({"pages": good, "offsets": np.arange(4)}, folder / "a.safetensors")
    run.look_at_embeddings()
    bad = good.copy()
    bad[3, 3] = np.nan
    save_file({"pages": bad}, folder / "a.safetensors")
    with pytest.raises(gpu_check.CheckError, match="not finite"):
        run.look_at_embeddings()
    save_file({"pages": np.ones_like(good)}, folder / "a.safetensors")
    with pytest.raises(gpu_check.CheckError, match="equal"):
        run.look_at_embeddings()


def test_a_missing_vllm_is_no_reason_to_stop_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise ConfigError("no vLLM")

    monkeypatch.setattr(gpu_check, "find_vllm", absent)
    lacks = gpu_check.missing(Params(), Settings(mineru="none"), rehearse=True)
    assert "no vLLM" in lacks[0]
    assert any("vision model" in item for item in lacks)
