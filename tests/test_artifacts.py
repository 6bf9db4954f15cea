"""Files between stages: whole or absent, equal for equal content, validated when read."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo import artifacts
from docmemo.artifacts import (
    LAYOUT_MEMBER,
    PAGES_MEMBER,
    artifact_name,
    read_json,
    read_jsonl,
    read_layout,
    read_member,
    read_pages,
    write_archive,
    write_atomic,
    write_json,
    write_jsonl,
)
from docmemo.errors import ArtifactError
from docmemo.types import Document, LayoutSet, Page, PageSet, Question, Region

PAGES = PageSet(doc_id="é/a.pdf", sha256="0" * 64, pages=[Page(page=1, printed="iv")])


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_artifact_names_are_safe_and_one_to_one(one: str, other: str) -> None:
    name = artifact_name(one, ".zip")
    assert not re.search(r'[/\\\0:*?"<>|\n]', name)
    assert (name == artifact_name(other, ".zip")) == (one == other)


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    write_atomic(path, b"old")

    def fail(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(artifacts.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_equal_archives_have_equal_bytes_and_are_read_back(tmp_path: Path) -> None:
    members = [("p1.jpg", b"\xff\xd8picture"), ("p2.jpg", b"")]
    twice = [io.BytesIO(), io.BytesIO()]
    for buffer in twice:
        write_archive(buffer, PAGES_MEMBER, PAGES, members)
    assert twice[0].getvalue() == twice[1].getvalue()
    path = tmp_path / "a.zip"
    path.write_bytes(twice[0].getvalue())
    assert read_pages(path) == PAGES
    assert read_member(path, "p1.jpg") == b"\xff\xd8picture"


def test_layouts_are_read_back(tmp_path: Path) -> None:
    layout = LayoutSet(doc_id="a", regions=[Region(page=1, kind="table", bbox=(0, 0, 1, 1))], failures={2: "slow"})
    write_archive(tmp_path / "a.zip", LAYOUT_MEMBER, layout, [])
    assert read_layout(tmp_path / "a.zip") == layout


def test_a_missing_or_damaged_archive_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK nonsense")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("else.json", "{}")
    for name in ("none.zip", "bad.zip", "other.zip"):
        with pytest.raises(ArtifactError, match=rf"{name} has no readable member 'pages.json'.*dvc repro"):
            read_pages(tmp_path / name)


def test_records_survive_a_round_trip(tmp_path: Path) -> None:
    questions = [
        Question(question_id="1", doc_id="a", question="Wie hoch? \u2028 高さ", page_window=(1, 3)),
        Question(question_id="2", doc_id="a", question="line\nbreak"),
    ]
    write_jsonl(tmp_path / "q.jsonl", questions)
    assert list(read_jsonl(tmp_path / "q.jsonl", Question)) == questions
    write_json(tmp_path / "d.json", PAGES)
    assert read_json(tmp_path / "d.json", PageSet) == PAGES


def test_unknown_fields_and_missing_files_name_the_place(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"doc_id":"a","path":"a.pdf"}\n\n{"doc_id":"b","path":"b.pdf","colour":"red"}\n')
    with pytest.raises(ArtifactError, match=r"d.jsonl line 3 .*Extra inputs"):
        list(read_jsonl(path, Document))
    with pytest.raises(ArtifactError, match=r"none.json cannot be read.*dvc repro"):
        read_json(tmp_path / "none.json", Document)
    with pytest.raises(ArtifactError, match=r"none.jsonl cannot be read"):
        list(read_jsonl(tmp_path / "none.jsonl", Document))


def test_a_long_name_is_shortened_and_stays_one_to_one() -> None:
    one, two = artifact_name("x" * 300 + "a", ".pages.zip"), artifact_name("x" * 300 + "b", ".pages.zip")
    assert one != two
    assert len(one.encode()) < 200
    assert len(artifact_name("报" * 200, ".json").encode()) < 200
