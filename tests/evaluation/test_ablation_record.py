"""metrics/ablations.json says which run metrics/ablations.csv belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmemo.artifacts import write_json
from docmemo.config import Params
from docmemo.errors import ArtifactError
from docmemo.evaluation.ablation_record import (
    RECORD,
    TABLE,
    AblationRecord,
    curves_of,
    models_digest,
    parameters_digest,
    read_ablations,
)
from docmemo.evaluation.ablations import CSV_COLUMNS, csv_rows
from docmemo.evaluation.efficiency import efficiency
from docmemo.evaluation.tables import to_csv
from tests.evaluation.test_ablations import BROKEN, FULL_ROW, STATIC


def write(folder: Path) -> AblationRecord:
    scored = [FULL_ROW, STATIC, BROKEN]
    record = AblationRecord(
        dataset="d",
        parameters="p",
        models="m",
        code="c",
        evidence_finder=True,
        n_questions=12,
        n_documents=11,
        curves=curves_of(scored),
    )
    (folder / TABLE).write_text(to_csv(csv_rows(scored), CSV_COLUMNS))
    write_json(folder / RECORD, record)
    return record


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    record = write(tmp_path)
    table = read_ablations(tmp_path)
    assert table is not None
    assert table.record == record
    assert table.configurations == ["full", "static", "no_schema"]
    static = table.row("static", "recall")
    assert static is not None
    assert (static["configuration"], static["overall"], static["TXT"]) == (
        "static",
        pytest.approx(8 / 11, abs=1e-6),
        None,
    )
    assert record.curves["full"].recall_at_round == {"1": 1.0, "2": 1.0}


def test_efficiency_stands_in_the_table_against_each_baseline_there_is(tmp_path: Path) -> None:
    write(tmp_path)
    table = read_ablations(tmp_path)
    assert table is not None
    full, static = table.row("full", "accuracy"), table.row("static", "accuracy")
    assert full is not None and static is not None
    for ratio, value in efficiency(FULL_ROW.scores, STATIC.scores).items():
        assert full[f"{ratio}_to_static"] == pytest.approx(value, abs=1e-6)
        assert full[f"{ratio}_to_requery"] is None, "there is no such configuration"
        assert static[f"{ratio}_to_static"] is None, "nothing is compared with itself"


def test_a_table_that_does_not_say_what_it_belongs_to_is_none(tmp_path: Path) -> None:
    assert read_ablations(tmp_path) is None
    write(tmp_path)
    (tmp_path / RECORD).unlink()
    assert read_ablations(tmp_path) is None


def test_a_damaged_table_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / TABLE).write_text("configuration,metric\nfull,recall\n")
    with pytest.raises(ArtifactError, match="make ablations"):
        read_ablations(tmp_path)


def test_the_digest_of_parameters_ignores_what_is_ablated_and_what_decides_no_answer() -> None:
    params = Params()
    same = params.model_copy(
        update={
            "loop": params.loop.model_copy(update={"ablation": "static", "force_rounds": True}),
            "report": params.report.model_copy(update={"max_questions": 7}),
            "dataset": params.dataset.model_copy(update={"root": "elsewhere"}),
        }
    )
    assert parameters_digest(same) == parameters_digest(params)
    other = params.model_copy(update={"loop": params.loop.model_copy(update={"evidence": 4})})
    assert parameters_digest(other) != parameters_digest(params)


def test_the_digest_of_models_ignores_roles_that_decide_no_answer() -> None:
    lock = {"reasoner": {"id": "a"}, "judge": {"id": "b"}}
    assert models_digest({**lock, "judge": {"id": "c"}, "renderer": {"id": "d"}}) == models_digest(lock)
    assert models_digest({**lock, "reasoner": {"id": "z"}}) != models_digest(lock)
