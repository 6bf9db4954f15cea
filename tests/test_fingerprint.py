"""Digests: equal for equal meaning, different for different."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.fingerprint import canonical_json, code_digest, digest, digest_file, source_digest

CODE = '''
"""A module."""
import math


class Circle:
    """A circle."""

    def area(self, r: float) -> float:
        """Its area."""
        return math.pi * r**2  # squared


def nothing() -> None:
    """Does nothing."""
'''


@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.none(), st.lists(st.booleans()))))
def test_the_order_of_keys_does_not_count(values: dict[str, object]) -> None:
    assert digest(values) == digest(dict(reversed(values.items())))


def test_values_that_differ_only_in_type_differ() -> None:
    assert len({digest(value) for value in (1, "1", [1], {"1": 1}, None, True)}) == 6


def test_not_a_number_has_no_digest() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(float("nan"))


def test_comments_docstrings_and_formatting_do_not_count() -> None:
    bare = (
        "import math\nclass Circle:\n    def area(self, r: float) -> float: return (math.pi *\n"
        "        r ** 2)\ndef nothing() -> None: pass\n"
    )
    assert source_digest(CODE) == source_digest(bare)
    assert source_digest(CODE) == source_digest(CODE.replace("Its area.", "The area.").replace("# squared", ""))


@pytest.mark.parametrize(("old", "new"), [("r**2", "r**3"), ("area", "size"), ("float", "int"), ("math.pi", "3.14")])
def test_code_counts(old: str, new: str) -> None:
    assert source_digest(CODE) != source_digest(CODE.replace(old, new))


def test_text_that_is_no_docstring_counts() -> None:
    assert source_digest("x = 'one'") != source_digest("x = 'two'")


def test_modules_count_by_name_and_code_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "left_side.py").write_text("x = 1\n")
    (tmp_path / "right_side.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    both = code_digest(["left_side", "right_side"])
    assert both == code_digest(["right_side", "left_side", "left_side"])
    assert code_digest(["left_side"]) != code_digest(["right_side"])
    assert "left_side" not in sys.modules


def test_an_unknown_module_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        code_digest(["no_such_module"])


def test_a_files_digest_is_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert digest_file(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
