"""params.yaml: full, equal to the defaults, and strict about what it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from docmemo.config import Params, load_params, parse_params
from docmemo.errors import ConfigError

ROOT = Path(__file__).parents[1]


def leaves(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def test_the_projects_params_are_the_defaults_and_leave_none_out() -> None:
    written = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    defaults = Params().model_dump(mode="json", by_alias=True)
    assert load_params(ROOT / "params.yaml") == Params()
    assert list(leaves(written)) == list(leaves(defaults))


def test_every_key_of_params_has_a_comment() -> None:
    for line in (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines():
        assert not line.strip() or "#" in line


def test_every_field_is_described() -> None:
    def undescribed(model: type[BaseModel]) -> Iterator[str]:
        for name, field in model.model_fields.items():
            if not field.description:
                yield f"{model.__name__}.{name}"
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from undescribed(field.annotation)

    assert list(undescribed(Params)) == []


def test_nothing_is_as_good_as_all_defaults(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("")
    assert load_params(path) == Params()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rendr": {}}, r"rendr: unknown key. Did you mean 'render'\? Known keys here: answer"),
        ({"render": {"dpy": 3}}, r"render.dpy: unknown key. Did you mean 'dpi'\?"),
        ({"render": {"ocr": {"backend": "tesseract"}}}, r"render.ocr.backend: .*'rapidocr' or 'none'"),
        ({"loop": {"rounds": 0}}, r"loop.rounds: .*greater than or equal to 1 \(got 0\)"),
        ([1], r"must be a mapping of sections, not list"),
    ],
)
def test_a_wrong_entry_is_named_with_what_would_be_right(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_params(values)


def test_all_wrong_entries_come_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_params({"loop": {"rounds": 0, "evidence": "many"}, "judge": {"colour": "red"}})
    assert all(key in str(caught.value) for key in ("loop.rounds", "loop.evidence", "judge.colour"))


def test_a_missing_or_broken_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not exist.*project's root"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="not readable YAML"):
        load_params(tmp_path / "params.yaml")
