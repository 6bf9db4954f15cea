"""`docmemo data`, also against a scripted hub on the loopback interface."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docmemo.cli import app
from docmemo.config import DatasetParams
from docmemo.datasets.ingest import ingest
from docmemo.documents.pdf import digest_source, inspect_document
from tests.datasets.hub_server import COMMIT, hub
from tests.datasets.test_papertab import LINES
from tests.datasets.test_papertab import make as make_papers
from tests.documents import pdfs

ROOT = Path(__file__).parents[2]
REPO = "qinchuanhui/UDA-QA"
runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(ROOT / "params.yaml", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DOCMEMO_WORKERS", "0")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = make_papers(tmp_path / "copy", *LINES[:2])
    (folder / "documents").mkdir()
    pdfs.simple(folder / "documents/1912.01214.pdf", ["one", "two", "three"])
    return folder


def test_a_copy_is_brought_into_place_and_what_it_has_is_printed(project: Path, copy: Path) -> None:
    done = runner.invoke(app, ["data", "get", "papertab", "--from", str(copy)])
    assert done.exit_code == 0, done.output
    assert "data/benchmarks/papertab: 2 documents (1 failed), 3 pages, 2 questions" in done.stdout
    assert "1801.05147: There is no 1801.05147.pdf" in done.stderr
    assert "dvc exp run -S dataset.root=data/benchmarks/papertab -S dataset.format=papertab" in done.stdout
    assert "    format: papertab" in done.stdout
    assert "CC BY-SA 4.0" in done.stderr

    def inspect(path: Path, kind: str) -> tuple[int, str]:
        return inspect_document(path, kind), digest_source(path, kind)  # type: ignore[arg-type]

    params = DatasetParams(root=str(copy), format="papertab")
    assert f"digest: {ingest(params, project, project / 'out', inspect).digest}" in done.stdout
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=project, check=True)
    staged = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True).stdout
    assert "params.yaml" in staged
    assert "benchmarks" not in staged


def test_a_broken_copy_ends_with_one_message(project: Path, copy: Path) -> None:
    make_papers(copy, "|no|document|||")
    done = runner.invoke(app, ["data", "get", "papertab", "--from", str(copy)])
    assert done.exit_code == 2
    assert "line 2: missing: doc_name" in done.stderr
    assert not (project / "data").exists() or not any((project / "data/benchmarks").iterdir())


def test_the_list_names_licences_and_what_is_here(project: Path, copy: Path) -> None:
    before = runner.invoke(app, ["data", "list"])
    assert before.exit_code == 0
    for text in ("CC BY-NC 4.0", "huggingface.co/datasets/dengchao/LongDocURL", "docmemo data get papertab"):
        assert text in before.stdout
    runner.invoke(app, ["data", "get", "papertab", "--from", str(copy)])
    assert "here: data/benchmarks/papertab" in runner.invoke(app, ["data", "list"]).stdout


def run_cli(project: Path, address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, since the hub's client reads its address when it is imported."""
    pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")
    environment = {
        **os.environ,
        "HF_ENDPOINT": address,
        "HF_HOME": str(project / "hf"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-m", "docmemo.cli", "data", "get", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def hub_files(folder: Path) -> dict[str, bytes]:
    """What the repository of UDA holds, as far as it matters here."""
    questions = {
        "1912.01214": [{"question": "which?", "q_uid": "uid1", "answers": [{"answer": "red", "type": "extractive"}]}]
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("1912.01214", "2001.03131"):
            archive.write(pdfs.simple(folder / f"{name}.pdf", ["page"]), f"paper_docs/{name}.pdf")
    return {
        "extended_qa_info/paper_tab_qa.json": json.dumps(questions).encode(),
        "src_doc_files/paper_docs.zip": packed.getvalue(),
        "src_doc_files/fin_docs.zip": b"not wanted",
        "README.md": b"card",
    }


@pytest.mark.enable_socket
def test_a_benchmark_is_downloaded_unpacked_and_its_commit_noted(project: Path, tmp_path: Path) -> None:
    with hub(REPO, hub_files(tmp_path)) as (address, asked):
        done = run_cli(project, address, "papertab", "--revision", "main")
        assert done.returncode == 0, done.stderr
        assert "1 documents (0 failed), 1 pages, 1 questions" in done.stdout
        note = json.loads((project / "data/benchmarks/papertab/source.json").read_text())
        assert note["commit"] == COMMIT
        assert not [path for path in asked if "fin_docs" in path or "README" in path]
        unknown = run_cli(project, address, "papertab", "--revision", "nope", "--replace")
    assert unknown.returncode == 2
    assert "cannot be downloaded from https://huggingface.co/datasets/qinchuanhui/UDA-QA at nope" in unknown.stderr
    assert (project / "data/benchmarks/papertab/documents/1912.01214.pdf").is_file()


@pytest.mark.enable_socket
def test_without_a_network_the_remedy_is_a_copy_from_elsewhere(project: Path) -> None:
    done = run_cli(project, "http://127.0.0.1:9", "longdocurl")
    assert done.returncode == 2
    assert (
        "error: LongDocURL cannot be downloaded from https://huggingface.co/datasets/dengchao/LongDocURL"
        in done.stderr
    )
    assert "ConnectError" in done.stderr
    assert "LongDocURL_public.jsonl, png_files_p*.tar.gz" in done.stderr
    assert "docmemo data get longdocurl --from FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_client_the_remedy_is_the_extra(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    done = runner.invoke(app, ["data", "get", "papertext"])
    assert done.exit_code == 2
    assert "pip install 'docmemo[hub]'" in done.stderr
    assert "--from FOLDER" in done.stderr
