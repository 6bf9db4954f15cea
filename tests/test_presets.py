"""Presets change values and nothing else, or nothing at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from docmemo.config import Params, load_params
from docmemo.errors import ConfigError
from docmemo.models.lock import served_roles
from docmemo.models.serve_plan import plan
from docmemo.models.tokens import image_tokens
from docmemo.presets import Change, apply_preset, describe, preset_changes, preset_names

ROOT = Path(__file__).parents[1]

PARAMS = """\
# Our parameters.
dataset:
  root: "data/sample"   # quoted, and a comment far to the right
  limit: null

render:  # pages
  dpi: 144  # dots
belief:
  schedule: [0.0, 0.3, 0.5]  # by round
# the end
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "presets").mkdir()
    return tmp_path


def preset(project: Path, text: str, name: str = "mine") -> None:
    (project / "presets" / f"{name}.yaml").write_text(text)


def test_only_the_changed_values_change_in_the_file(project: Path) -> None:
    preset(project, "render: {dpi: 200}\nbelief: {schedule: [0.0, 1.0]}\nloop: {rounds: 3}\n")
    changes = apply_preset("mine", project)
    assert changes == [
        Change("render.dpi", 144, 200),
        Change("belief.schedule", [0.0, 0.3, 0.5], [0.0, 1.0]),
    ]
    expected = PARAMS.replace("dpi: 144", "dpi: 200").replace("[0.0, 0.3, 0.5]", "[0.0, 1.0]")
    assert (project / "params.yaml").read_text() == expected


def test_a_key_that_params_leave_out_is_added_where_it_belongs(project: Path) -> None:
    preset(project, "render: {ocr: {backend: none}}\nloop: {rounds: 2}\n")
    assert [c.key for c in apply_preset("mine", project)] == ["render.ocr.backend", "loop.rounds"]
    params = load_params(project / "params.yaml")
    assert (params.render.ocr.backend, params.loop.rounds) == ("none", 2)
    text = (project / "params.yaml").read_text()
    assert "# dots" in text
    assert "limit: null" in text


def test_a_preset_that_changes_nothing_leaves_the_file_alone(project: Path) -> None:
    preset(project, "render: {dpi: 144}\nloop: {rounds: 3}\n")
    before = (project / "params.yaml").stat().st_mtime_ns
    assert apply_preset("mine", project) == []
    assert (project / "params.yaml").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("render: {dpy: 200}", r"mine.yaml over params.yaml.*(.|\n)*render.dpy: unknown key. Did you mean 'dpi'"),
        ("render: {dpi: 1}", r"render.dpi: .*greater than or equal to 36"),
        ("render: 3", r"render: "),
        ("- 1", r"must be a mapping"),
        ("a: [", r"not readable YAML"),
    ],
)
def test_a_wrong_preset_is_refused_and_params_stay_as_they_are(project: Path, text: str, message: str) -> None:
    preset(project, text)
    with pytest.raises(ConfigError, match=message):
        apply_preset("mine", project)
    assert (project / "params.yaml").read_text() == PARAMS


def test_an_unknown_preset_is_answered_with_the_known_ones(project: Path) -> None:
    preset(project, "", "one")
    preset(project, "", "two")
    assert preset_names(project) == ["one", "two"]
    for name in ("three", "../params", "one.yaml"):
        with pytest.raises(ConfigError, match="Known presets: one, two"):
            apply_preset(name, project)


def test_the_description_is_the_header_comment(project: Path) -> None:
    preset(project, "# For the GPU.\n# Two lines.\n\n# not this\nrender: {dpi: 200}\n")
    assert describe("mine", project) == "For the GPU.\nTwo lines."
    assert preset_changes("mine", project) == [Change("render.dpi", 144, 200)]


def test_the_embedded_preset_sets_every_key_but_the_datasets_to_its_default() -> None:
    values = yaml.safe_load((ROOT / "presets/embedded.yaml").read_text(encoding="utf-8"))
    defaults = Params().model_dump(mode="json", by_alias=True)
    defaults.pop("dataset")
    assert values == defaults


def test_the_embedded_preset_takes_back_every_change_and_keeps_the_dataset(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    original = (ROOT / "params.yaml").read_text(encoding="utf-8")
    changed = original.replace("rounds: 3", "rounds: 7").replace("backend: rapidocr", "backend: none")
    changed = changed.replace("root: data/sample", "root: /elsewhere")
    assert changed != original
    (tmp_path / "params.yaml").write_text(changed, encoding="utf-8")
    assert [c.key for c in apply_preset("embedded", tmp_path)] == ["render.ocr.backend", "loop.rounds"]
    restored = (tmp_path / "params.yaml").read_text(encoding="utf-8")
    assert restored == original.replace("root: data/sample", "root: /elsewhere")


MODEL_STACKS = ("gpu", "api", "laptop")
ROLES = {
    "gpu": {"summarizer", "schema", "reranker", "reasoner", "judge"},
    "api": {"summarizer", "schema", "reranker", "reasoner", "judge"},
    "laptop": {"reasoner"},
}


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    """The project's presets and parameters, to be changed."""
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", MODEL_STACKS)
def test_a_stack_names_the_model_of_every_role_that_a_server_plays(stacks: Path, name: str) -> None:
    apply_preset("embedded", stacks)
    apply_preset(name, stacks)
    roles = served_roles(load_params(stacks / "params.yaml"))
    assert set(roles) == ROLES[name]
    assert all(model.id and model.images for model in roles.values())
    params = load_params(stacks / "params.yaml")
    assert params.loop.crops <= 5
    assert params.layout.crop_long_side == 1500


@pytest.mark.parametrize("name", MODEL_STACKS)
def test_every_stack_can_be_served_and_leaves_its_requests_room(stacks: Path, name: str) -> None:
    apply_preset(name, stacks)
    params = load_params(stacks / "params.yaml")
    what = plan("reasoner", params)
    assert what.covers_all
    assert what.images == params.loop.evidence + params.loop.keep_useful + params.loop.crops
    model = params.answer.reader_model
    read = params.loop.evidence + params.loop.keep_useful
    a4 = image_tokens(round(params.answer.page_side / 2**0.5), params.answer.page_side, model.image_tokens)
    crop = image_tokens(1500, 1000, model.image_tokens)
    text = read * params.answer.page_text_chars // 3
    assert read * a4 + params.loop.crops * crop + text < model.context - model.max_tokens


@pytest.mark.parametrize("before", ["gpu", "api", "laptop", "paper"])
@pytest.mark.parametrize("name", ["embedded", *MODEL_STACKS])
def test_a_stack_replaces_whatever_was_applied_before_it(stacks: Path, before: str, name: str) -> None:
    apply_preset("embedded", stacks)
    apply_preset(name, stacks)
    wanted = load_params(stacks / "params.yaml")
    apply_preset("embedded", stacks)
    apply_preset(before, stacks)
    apply_preset(name, stacks)
    assert load_params(stacks / "params.yaml") == wanted
    assert "&" not in (stacks / "params.yaml").read_text(encoding="utf-8")  # each role's model can be edited alone


def test_the_paper_s_choices_go_on_top_of_a_stack(stacks: Path) -> None:
    apply_preset("gpu", stacks)
    apply_preset("paper", stacks)
    params = load_params(stacks / "params.yaml")
    assert (params.embed.backend, params.answer.reader, params.belief.policy) == ("colqwen", "vlm", "thompson")
    weights = params.retrieval.model_dump(
        include={"page_weight", "window_weight", "bigram_weight", "reference_weight"}
    )
    assert set(weights.values()) == {0.0}
    assert params.retrieval.visual_weight == 1.0
    assert params.loop.keep_useful == 0


def test_what_a_server_alone_understands_is_replaced_as_a_whole(project: Path) -> None:
    preset(project, "answer: {reader_model: {extra: {a: {b: 1}}}}\n")
    preset(project, "answer: {reader_model: {extra: {c: 2}}}\n", "other")
    apply_preset("mine", project)
    assert apply_preset("other", project) == [
        Change("answer.reader_model.extra", {"a": {"b": 1}}, {"c": 2}),
    ]
    assert load_params(project / "params.yaml").answer.reader_model.extra == {"c": 2}
