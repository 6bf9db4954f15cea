"""The doctor asks each server for real, and says what to put right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from docmemo.artifacts import write_atomic
from docmemo.config import EmbedParams, LayoutParams, Params, parse_params
from docmemo.models import doctor_machine
from docmemo.models.doctor import Finding, check_role, context_of, worst
from docmemo.models.doctor_machine import check_install, check_layout, check_lock, check_machine
from docmemo.settings import Settings
from tests.conftest import ROOT
from tests.servers import ScriptedServer

RIGHT = "tests.models.test_doctor:right_answers"


def right_answers(body: dict[str, Any]) -> Any:
    """What a model that can read and see answers to the doctor (called in the server's process)."""
    schema = json.dumps(body["response_format"])
    return {"colour": "red"} if "colour" in schema else {"total": 43, "parity": "odd"}


def params(**model: Any) -> Params:
    named = {"id": "scripted", **model}
    return parse_params({"answer": {"reader": "vlm", "reader_model": named}})


def found(findings: list[Finding], what: str) -> Finding:
    return next(f for f in findings if f.what == what)


def test_a_server_that_does_all_its_role_needs_is_well(server: ScriptedServer) -> None:
    server.reset(answers=RIGHT)
    findings = check_role("reasoner", params())
    assert [f.what for f in findings] == ["server", "context", "structured output", "images"]
    assert worst(findings) == "ok"
    assert server.state()["requests"] == 2


def test_a_server_that_is_not_there_is_one_problem_with_the_command_that_starts_one(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMEMO_BASE_URL", "http://127.0.0.1:9/v1")
    findings = check_role("reasoner", params())
    assert [(f.what, f.status) for f in findings] == [("server", "problem")]
    assert "docmemo models serve reasoner" in findings[0].remedy
    monkeypatch.delenv("DOCMEMO_BASE_URL")
    assert "DOCMEMO_BASE_URL" in check_role("reasoner", params())[0].remedy
    assert check_role("judge", params())[0].what == "model"


def test_a_model_the_server_does_not_have_is_answered_with_those_it_has(server: ScriptedServer) -> None:
    finding = check_role("reasoner", params(id="other"))[0]
    assert (finding.status, "scripted" in finding.remedy) == ("problem", True)


def test_a_shorter_context_than_the_parameters_name_is_a_problem(server: ScriptedServer) -> None:
    server.reset(answers=RIGHT, models=[{"id": "scripted", "max_model_len": 8192}])
    finding = found(check_role("reasoner", params()), "context")
    assert finding.status == "problem"
    assert "answer.reader_model.context to 8192" in finding.remedy
    assert found(check_role("reasoner", params(context=4096)), "context").status == "ok"


def test_the_context_of_llama_cpp_is_that_of_a_slot() -> None:
    assert context_of({"meta": {"n_ctx": 4096}}) == 4096
    assert context_of({"max_model_len": 9000}) == 9000
    assert context_of({"id": "x"}) is None


def test_a_text_model_whose_role_shows_pages_is_a_problem(server: ScriptedServer) -> None:
    server.reset(answers=RIGHT, images=False, dialect="llamacpp")
    findings = check_role("reasoner", params())
    assert found(findings, "images").status == "problem"
    assert "mmproj" in found(findings, "images").remedy
    text_only = found(check_role("reasoner", params(images=False)), "images")
    assert text_only.status == "warning"


def test_a_server_with_too_low_an_image_limit_is_told_from_one_that_sees_nothing(server: ScriptedServer) -> None:
    server.reset(answers=RIGHT, max_images=4)
    finding = found(check_role("reasoner", params()), "images")
    assert finding.status == "problem"
    assert "one picture, but not the 10" in finding.message
    assert "docmemo models serve reasoner" in finding.remedy


def test_a_model_that_takes_images_without_seeing_them_is_a_warning(server: ScriptedServer) -> None:
    server.reset(replies=[{"total": 43, "parity": "odd"}, {"colour": "blue"}])
    assert found(check_role("reasoner", params()), "images").status == "warning"


def test_a_server_that_does_not_keep_to_the_form_is_a_problem(server: ScriptedServer) -> None:
    server.reset(replies=["I would rather talk about the weather."])
    findings = check_role("reasoner", params())
    assert findings[-1].what == "structured output"
    assert findings[-1].status == "problem"
    assert "answer.reader_model.structured" in findings[-1].message


def test_an_answer_in_the_right_form_that_is_wrong_is_a_warning(server: ScriptedServer) -> None:
    server.reset(replies=[{"total": 12, "parity": "odd"}, {"colour": "red"}])
    assert found(check_role("reasoner", params()), "structured output").status == "warning"


def test_home_that_cannot_be_written_and_a_full_disk_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    blocked = found(check_machine(Params(), Settings(home=tmp_path / "file" / "x")), "DOCMEMO_HOME")
    assert blocked.status == "problem"
    monkeypatch.setattr(doctor_machine, "_SPACE", 2**80)
    assert found(check_machine(Params(), Settings(home=tmp_path)), "DOCMEMO_HOME").status == "warning"


def test_a_missing_gpu_matters_only_where_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine, "gpus", list)
    colqwen = Params(embed=EmbedParams(backend="colqwen"))
    assert found(check_machine(Params(), Settings()), "GPU").status == "ok"
    assert found(check_machine(colqwen, Settings()), "GPU").status == "warning"
    monkeypatch.setattr(doctor_machine, "gpus", lambda: ["H100, 80 GB, 79 GB"])
    monkeypatch.setattr(doctor_machine, "_torch_gpus", lambda: 0)
    assert found(check_machine(colqwen, Settings()), "GPU").status == "problem"


def test_a_missing_extra_is_a_problem_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine.importlib.util, "find_spec", lambda name: None)
    assert worst(check_install(Params())) == "ok"
    finding = found(check_install(Params(embed=EmbedParams(backend="colqwen"))), "colqwen")
    assert (finding.status, "[colqwen]" in finding.remedy) == ("problem", True)


def test_mineru_is_looked_at_only_where_it_is_chosen() -> None:
    settings = Settings(mineru="no-such-mineru")
    assert check_layout(Params(), settings) == []
    finding = check_layout(Params(layout=LayoutParams(backend="mineru")), settings)[0]
    assert (finding.status, "pip install mineru" in finding.remedy) == ("problem", True)


def test_a_lock_that_names_another_model_says_which_role(tmp_path: Path) -> None:
    lock = json.loads((ROOT / "models.lock.json").read_text())
    lock["judge"]["id"] = "somebody"
    write_atomic(tmp_path / "models.lock.json", json.dumps(lock).encode())
    roles = {f.what: f.status for f in check_lock(Params(), tmp_path, [])}
    assert roles.get("judge") == "problem"
    assert check_lock(Params(), tmp_path / "nowhere", [])[0].status == "problem"


def test_with_the_default_parameters_it_needs_no_server(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({}), encoding="utf-8")
    command = [sys.executable, "-m", "docmemo.cli"]
    subprocess.run([*command, "models", "lock"], cwd=tmp_path, capture_output=True, check=True)
    done = subprocess.run([*command, "doctor", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    assert done.returncode == (1 if said["status"] == "problem" else 0)
    assert [f for f in said["findings"] if f["status"] == "problem"] == []
    assert "nothing to ask" in said["findings"][-1]["message"]
    (tmp_path / "models.lock.json").unlink()
    done = subprocess.run([*command, "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "docmemo models lock" in done.stdout
