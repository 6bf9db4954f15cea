"""A bounded end-to-end check of the `gpu` stack on one GPU: `make gpu-check`, under 8 minutes.

It takes one document of the bundled sample and a few of its questions through every stage: pages by MinerU,
embeddings by ColQwen2.5, and one vision model behind vLLM that summarises, reranks, reads and judges. It looks at
what a stack that works must do, not at how good it is: the model names the colour of a drawn disc and keeps to a JSON
schema, embeddings are finite and differ between pages, no question fails, answers cite pages that were read, and at
least half of the answerable questions read a page with their evidence.

    DOCMEMO_CHECK_VLM       folder or hub name of the vision model (default: that of preset gpu, in the hub's cache)
    DOCMEMO_CHECK_COLQWEN   folder or hub name of ColQwen2.5 (default: that of preset gpu)
    DOCMEMO_VLLM, DOCMEMO_MINERU   their commands

Exit status: 0 all was well; 1 something was not; 3 something is missing, all of it is named and nothing was run.
`--rehearse` runs the same steps without a GPU, with whatever small models the variables name: it exercises this
script, not the models, and judges no answer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from docmemo.config import Params, load_params
from docmemo.errors import DocMemoError
from docmemo.models.doctor import check_role
from docmemo.models.doctor_machine import check_layout, gpus
from docmemo.models.lock import ROLES, resolve_role, write_lock
from docmemo.models.serve import Server
from docmemo.models.serve_plan import find_vllm, plan, vllm_command
from docmemo.presets import apply_preset
from docmemo.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 470.0
"""Seconds for everything: under 8 minutes."""
DOCUMENT = "research_article.pdf"
QUESTIONS = 6
CONTEXT = 32768
ROOMY = 40_000
"""MiB of GPU memory from which the reader and ColQwen2.5 fit side by side; below, queries are embedded on the CPU."""
OFFLINE = ("ingest", "render", "layout", "embed")
ONLINE = ("summarize", "schema", "answer", "judge", "report")
MISSING = 3


class CheckError(Exception):
    """Something a working stack does was not seen."""


def hub_folder(name: str) -> Path | None:
    """A model's folder: as named, or in the hub's local cache; None if it is not on this machine."""
    if not name or Path(name).is_dir():
        return Path(name) if name else None
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, local_files_only=True))
    except (ImportError, OSError, ValueError):
        return None


def make_project(folder: Path, rehearse: bool) -> Params:
    """A project of its own in `folder`: preset gpu, one document, a few questions, models from the environment."""
    shutil.copytree(ROOT / "presets", folder / "presets")
    shutil.copytree(ROOT / "prompts", folder / "prompts")
    shutil.copy(ROOT / "params.yaml", folder)
    apply_preset("gpu", folder)
    sample, data = ROOT / "data" / "sample", folder / "dataset"
    (data / "documents").mkdir(parents=True)
    shutil.copy(sample / "documents" / DOCUMENT, data / "documents")
    for name, most in (("documents.jsonl", 1), ("questions.jsonl", QUESTIONS)):
        lines = (sample / name).read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if json.loads(line)["doc_id"] == DOCUMENT][:most]
        (data / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    values = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    values["dataset"].update(root="dataset", format="sample", questions=None, limit=None)
    values["loop"].update(rounds=2)
    values["layout"]["mineru_tier"] = "flash"
    models = [values[s]["model"] for s in ("summarize", "schema", "judge")]
    models += [values["answer"]["reader_model"], values["answer"]["reranker_model"]]
    for model in models:
        model["context"] = CONTEXT
    colqwen = os.environ.get("DOCMEMO_CHECK_COLQWEN")
    if colqwen:
        values["embed"]["model"] = colqwen
    if rehearse:
        for model in models:
            model.update(max_tokens=600, image_tokens="qwen2_5_vl", extra={})
        if not colqwen:
            values["embed"]["backend"] = "lexical"
    (folder / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return load_params(folder / "params.yaml")


def missing(params: Params, settings: Settings, rehearse: bool) -> list[str]:
    """Everything that is not here, each with what to do."""
    found = []
    if not rehearse:
        if not gpus():
            found.append("an NVIDIA GPU: nvidia-smi finds none")
        elif not _torch_sees_gpu():
            found.append("a torch that can use the GPU: `pip install -e '.[colqwen]'` with torch's CUDA build")
    try:
        find_vllm(settings.vllm)
    except DocMemoError as error:
        found.append(f"vLLM: {error}")
    found += [f"MinerU: {f.message} {f.remedy}" for f in check_layout(params, settings) if f.status == "problem"]
    vlm = vision_model(params)
    if hub_folder(vlm) is None:
        found.append(f"the vision model {vlm}: `hf download {vlm}`, or name its folder in DOCMEMO_CHECK_VLM")
    if params.embed.backend == "colqwen":
        try:
            resolve_role(params, "embedder")
        except DocMemoError as error:
            found.append(f"ColQwen2.5: {error} Or name its folder in DOCMEMO_CHECK_COLQWEN.")
    return found


def _torch_sees_gpu() -> bool:
    code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def vision_model(params: Params) -> str:
    """Folder or name of the vision model."""
    return os.environ.get("DOCMEMO_CHECK_VLM") or params.answer.reader_model.id


class Run:
    """One check: a project folder and a deadline."""

    def __init__(self, folder: Path, params: Params, rehearse: bool) -> None:
        self.folder = folder
        self.params = params
        self.rehearse = rehearse
        self.start = time.monotonic()
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "DOCMEMO_HOME": str(folder / "home")}
        memory = [int(line.split(",")[1].split()[0]) for line in gpus()]
        self.roomy = bool(memory) and memory[0] >= ROOMY

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        limit = LIMIT * (4 if self.rehearse else 1)  # vLLM on a CPU takes minutes to start
        return limit - (time.monotonic() - self.start)

    def say(self, text: str) -> None:
        """Progress, with the seconds so far."""
        print(f"[{time.monotonic() - self.start:4.0f} s] {text}", flush=True)

    def stage(self, name: str, **environment: str) -> None:
        """Run one stage as DVC would.

        Raises:
            CheckError: if it fails or there is no time left.
        """
        self.say(name)
        try:
            done = subprocess.run(
                [sys.executable, "-m", f"stages.{name}"],
                cwd=self.folder,
                env={**self.environment, **environment},
                capture_output=True,
                text=True,
                timeout=max(1.0, self.left),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CheckError(f"no time left in stage {name}") from error
        if done.returncode != 0 and not (self.rehearse and done.returncode == MISSING):
            raise CheckError(f"stage {name} ended with status {done.returncode}:\n{done.stderr[-3000:]}")

    def server(self, settings: Settings) -> Server:
        """vLLM, not started yet."""
        port = 8765
        extra = ["--enforce-eager"]  # without it minutes go by while graphs are captured
        if self.rehearse:
            extra += ["--dtype", "float32"]
        else:
            extra += ["--gpu-memory-utilization", "0.7" if self.roomy else "0.92"]
        what = plan("reasoner", self.params, vision_model(self.params))
        command = vllm_command(what, find_vllm(settings.vllm), "127.0.0.1", port, extra)
        return Server(command, "127.0.0.1", port, self.folder / "vllm.log", settings)

    def offline(self) -> None:
        """Stages that need no server; the lock holds the model's name, since nothing is asked yet."""
        write_lock({role: resolve_role(self.params, role) for role in ROLES}, self.folder / "models.lock.json")
        for name in OFFLINE:
            self.stage(name)
        if self.params.embed.backend == "colqwen":
            self.look_at_embeddings()

    def look_at_embeddings(self) -> None:
        """Finite, and not the same for every page."""
        import numpy as np
        from safetensors.numpy import load_file

        path = next((self.folder / "data" / "embeddings").glob("*.safetensors"))
        arrays = {name: value for name, value in load_file(path).items() if value.ndim == 2 and value.shape[1] >= 64}
        if not arrays:
            raise CheckError(f"{path.name} holds no multi-vectors")
        for name, value in arrays.items():
            rows = value.astype(np.float32)
            if not np.isfinite(rows).all():
                raise CheckError(f"{name} in {path.name} is not finite")
            if len(rows) > 1 and float(rows.std(axis=0).max()) < 1e-4:
                raise CheckError(f"all vectors in {path.name} are equal")
        self.say(f"embeddings: {', '.join(f'{n} {v.shape}' for n, v in arrays.items())}")

    def online(self, base_url: str) -> None:
        """Stages that ask the model, after the doctor has looked at it."""
        os.environ["DOCMEMO_BASE_URL"] = self.environment["DOCMEMO_BASE_URL"] = base_url
        for finding in check_role("reasoner", self.params):
            self.say(f"{finding.what}: {finding.status}, {finding.message}")
            if finding.status == "problem" or (finding.status == "warning" and not self.rehearse):
                raise CheckError(f"{finding.what}: {finding.message} {finding.remedy}")
        for name in ONLINE:
            self.stage(name, DOCMEMO_DEVICE="auto" if self.roomy else "cpu")

    def look_at_answers(self) -> None:
        """What a stack that works must have done."""
        folder = self.folder / "data"
        answers = _lines(folder / "answers" / "answers.jsonl")
        gold = {q["question_id"]: set(q.get("evidence_pages", [])) for q in _lines(folder / "corpus/questions.jsonl")}
        failed = [f"{a['question_id']}: {a['error']['message']}" for a in answers if a["outcome"] == "failed"]
        self.say(f"{len(answers)} questions, {len(failed)} failed")
        if self.rehearse:
            return
        if failed:
            raise CheckError("questions failed:\n  " + "\n  ".join(failed))
        hits = 0
        asked = [a for a in answers if gold[a["question_id"]]]
        for answer in asked:
            read = {page for r in answer["rounds"] for page in r["evidence"]}
            hits += bool(read & gold[answer["question_id"]])
            if {c["page"] for c in answer["citations"]} - read:
                raise CheckError(f"{answer['question_id']} cites a page that was not read")
        if hits * 2 < len(asked):
            raise CheckError(f"only {hits} of {len(asked)} questions read a page with their evidence")
        scores = json.loads((self.folder / "metrics" / "scores.json").read_text(encoding="utf-8"))
        self.say(f"evidence read: {hits} of {len(asked)}; accuracy by rule and judge: {scores.get('accuracy')}")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def main() -> int:
    """Run the check; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="without a GPU, with small models: only the steps")
    rehearse = parser.parse_args().rehearse
    with tempfile.TemporaryDirectory(prefix="docmemo-gpu-check-") as name:
        folder = Path(name)
        params, settings = make_project(folder, rehearse), load_settings()
        lacks = missing(params, settings, rehearse)
        if lacks:
            print("Nothing was checked, since this is missing here (docs/gpu.md says how to get it):")
            print("\n".join(f"- {item}" for item in lacks))
            return MISSING
        run = Run(folder, params, rehearse)
        run.say("; ".join(gpus()) or "no GPU: a rehearsal")
        try:
            run.offline()
            with run.server(settings) as server:
                run.say("starting vLLM")
                server.wait_until_healthy(max(1.0, run.left - 60))
                run.online(server.base_url)
            run.look_at_answers()
        except (CheckError, DocMemoError) as error:
            run.say(f"FAILED: {error}")
            return 1
        run.say("a rehearsal went through: the models were not checked" if rehearse else "all was well")
        return 0


if __name__ == "__main__":
    sys.exit(main())
