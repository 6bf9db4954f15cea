"""Bringing a benchmark into place: from a copy in any layout, packed or not, all or nothing."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from docmemo.datasets.homes import HOMES, get_home
from docmemo.datasets.install import install
from docmemo.errors import DatasetError
from tests.datasets.helpers import load, make_benchmark, make_files, sample_row, write_lines
from tests.datasets.test_longdocurl import row
from tests.datasets.test_papertab import LINES
from tests.datasets.test_papertab import make as make_papers

TAB, LONG, MM = HOMES["papertab"], HOMES["longdocurl"], HOMES["mmlongbench"]


def tree(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and p.name != ".gitignore")


def make_zip(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, f"bytes of {name}")


def make_tar(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as packed:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            packed.addfile(info, io.BytesIO(name.encode()))


def test_the_questions_and_their_documents_are_taken_and_nothing_else(tmp_path: Path) -> None:
    make_papers(tmp_path / "copy", LINES[0], name="dataset/qa/paper_tab_qa.csv")
    make_files(
        tmp_path / "copy",
        "dataset/qa/fin_qa.csv",
        "dataset/src_doc_files/paper_docs/1912.01214.pdf",
        "dataset/src_doc_files/paper_docs/2001.03131.pdf",
        "dataset/src_doc_files/fin_docs/A_2012.pdf",
    )
    place = tmp_path / "place/papertab"
    result = install(TAB, tmp_path / "copy", place)
    assert tree(place) == ["dataset/qa/paper_tab_qa.csv", "dataset/src_doc_files/paper_docs/1912.01214.pdf"]
    assert (result.linked + result.copied, result.unpacked) == (1, 0)
    assert list(load(place, "papertab").questions) == list(load(tmp_path / "copy", "papertab").questions)
    assert (place / ".gitignore").read_text() == "*\n"
    assert [p.name for p in place.parent.iterdir()] == ["papertab"]


def test_an_archive_of_papers_is_unpacked_as_far_as_it_is_needed(tmp_path: Path) -> None:
    make_papers(tmp_path / "copy", *LINES[:2])
    make_files(tmp_path / "copy", "documents/1801.05147.pdf")
    names = ("paper_docs/1912.01214.pdf", "paper_docs/1801.05147.pdf", "paper_docs/2001.03131.pdf", "../../evil.pdf")
    make_zip(tmp_path / "copy/src_doc_files/paper_docs.zip", *names)
    result = install(TAB, tmp_path / "copy", tmp_path / "place")
    assert tree(tmp_path / "place") == ["documents/1801.05147.pdf", "documents/1912.01214.pdf", "paper_tab_qa.csv"]
    assert result.unpacked == 1
    assert all(d.status == "ok" for d in result.dataset.documents)


def test_page_images_come_out_of_several_archives_and_never_leave_the_place(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    write_lines(copy / "LongDocURL_public.jsonl", row("4000001"), row("4000002"))
    images = {
        d: [f"pdf_pngs/4000-4999/4000/{d}_{i}.png" for i in range(6)] for d in ("4000001", "4000002", "4000003")
    }
    make_tar(copy / "png_files_p1.tar.gz", *images["4000001"], *images["4000002"][:4], "/etc/4000001_0.png")
    make_tar(copy / "png_files_p2.tar.gz", *images["4000002"][4:], *images["4000003"], "../../4000002_5.png")
    make_tar(copy / "pdf_files.tar.gz", "ccpdf/4000001.pdf", "ccpdf/4000002.pdf")
    place = tmp_path / "place"
    result = install(LONG, copy, place)
    expected = [f"pdf_pngs/{d}/{d}_{i}.png" for d in ("4000001", "4000002") for i in range(6)]
    assert tree(place) == ["LongDocURL_public.jsonl", *expected]
    assert [(d.path, d.status) for d in result.dataset.documents] == [
        ("pdf_pngs/4000001", "ok"),
        ("pdf_pngs/4000002", "ok"),
    ]
    assert not (tmp_path / "4000002_5.png").exists()


def test_pdfs_are_unpacked_for_what_no_page_images_are_there_for(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    write_lines(copy / "LongDocURL.jsonl", row("4000001"), row("4000002"))
    make_files(copy, *(f"4000/4000001_{i}.png" for i in range(6)))
    make_tar(copy / "pdf_files.tar.gz", "ccpdf/4000001.pdf", "ccpdf/4000002.pdf")
    result = install(LONG, copy, tmp_path / "place")
    assert [(d.kind, d.path) for d in result.dataset.documents] == [
        ("images", "4000"),
        ("pdf", "documents/4000002.pdf"),
    ]


def test_the_pdfs_of_longdocurl_may_be_asked_for_instead_of_its_page_images(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    write_lines(copy / "LongDocURL.jsonl", row("4000001"))
    make_files(copy, *(f"4000/4000001_{i}.png" for i in range(6)), "pdfs/4000/4000001.pdf")
    home = get_home("longdocurl", pdf=True)
    assert home.files == ("LongDocURL_public.jsonl", "pdf_files.tar.gz")
    install(home, copy, tmp_path / "place")
    assert tree(tmp_path / "place") == ["LongDocURL.jsonl", "pdfs/4000/4000001.pdf"]
    assert get_home("papertab", pdf=True) == TAB


def test_the_authors_repository_of_mmlongbench_is_understood(tmp_path: Path) -> None:
    make_benchmark(tmp_path / "copy/data", sample_row(), documents=("report.pdf", "unasked.pdf"))
    install(MM, tmp_path / "copy/data", tmp_path / "one")
    install(MM, tmp_path / "copy", tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == ["documents/report.pdf", "samples.json"]


def test_a_cut_of_the_questions_brings_only_its_documents(tmp_path: Path) -> None:
    make_benchmark(
        tmp_path / "copy", sample_row(doc_id="a.pdf"), sample_row(doc_id="b.pdf"), documents=("a.pdf", "b.pdf")
    )
    (tmp_path / "copy/cut.json").write_text(json.dumps([sample_row(doc_id="b.pdf")]))
    install(MM, tmp_path / "copy", tmp_path / "place", questions="cut.json")
    assert tree(tmp_path / "place") == ["cut.json", "documents/b.pdf"]


def test_the_hubs_parquet_becomes_the_repositorys_json(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the Parquet reader of the extra `hub` is not installed")
    import pandas as pd

    make_benchmark(tmp_path / "json", sample_row(), sample_row(question="b?"))
    make_files(tmp_path / "hub", "documents/report.pdf")
    (tmp_path / "hub/data").mkdir()
    frame = pd.DataFrame([sample_row(), sample_row(question="b?")])
    frame.to_parquet(tmp_path / "hub/data/train-00000-of-00001.parquet")
    install(MM, tmp_path / "hub", tmp_path / "place")
    assert list(load(tmp_path / "place", "mmlongbench").questions) == list(
        load(tmp_path / "json", "mmlongbench").questions
    )


def test_without_a_parquet_reader_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    def no_engine(path: Path) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    make_files(tmp_path / "hub", "documents/report.pdf", "data/train-00000-of-00001.parquet")
    with pytest.raises(DatasetError, match=r"no Parquet reader is installed.*docmemo\[hub\]"):
        install(MM, tmp_path / "hub", tmp_path / "place")


def test_missing_documents_are_failed_ones_but_without_any_there_is_nothing_to_install(tmp_path: Path) -> None:
    make_files(make_papers(tmp_path / "copy", *LINES[:2]), "documents/1801.05147.pdf")
    result = install(TAB, tmp_path / "copy", tmp_path / "place")
    assert [d.status for d in result.dataset.documents] == ["ok", "failed"]
    make_papers(tmp_path / "bare", *LINES[:2])
    with pytest.raises(DatasetError, match="none of their 2 documents"):
        install(TAB, tmp_path / "bare", tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("broken", ["questions", "archive", "truncated archive"])
def test_what_is_wrong_with_the_copy_leaves_no_trace(tmp_path: Path, broken: str) -> None:
    copy = make_papers(tmp_path / "copy", LINES[0] if broken != "questions" else "|no|document|||")
    make_zip(copy / "paper_docs.zip", "1912.01214.pdf")
    if broken == "archive":
        (copy / "paper_docs.zip").write_bytes(b"<html>not found</html>")
    elif broken == "truncated archive":
        data = (copy / "paper_docs.zip").read_bytes()
        (copy / "paper_docs.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(
        DatasetError, match="line 2" if broken == "questions" else r"paper_docs.zip cannot be unpacked"
    ):
        install(TAB, copy, tmp_path / "places/place")
    assert list((tmp_path / "places").iterdir()) == []


def test_what_is_in_place_is_replaced_only_when_asked_and_survives_a_failure(tmp_path: Path) -> None:
    make_files(make_papers(tmp_path / "copy", LINES[0]), "documents/1912.01214.pdf")
    place = tmp_path / "place"
    install(TAB, tmp_path / "copy", place)
    with pytest.raises(DatasetError, match=r"is there already.*--replace"):
        install(TAB, tmp_path / "copy", place)
    make_papers(tmp_path / "copy", "broken")
    with pytest.raises(DatasetError, match="missing: question"):
        install(TAB, tmp_path / "copy", place, replace=True)
    assert len(load(place, "papertab").questions) == 1
    make_files(make_papers(tmp_path / "copy", *LINES[:2]), "documents/1801.05147.pdf")
    install(TAB, tmp_path / "copy", place, replace=True)
    assert len(load(place, "papertab").questions) == 2


def test_a_place_inside_the_copy_or_around_it_is_refused(tmp_path: Path) -> None:
    make_files(make_papers(tmp_path / "copy", LINES[0]), "documents/1912.01214.pdf")
    for place in (tmp_path / "copy", tmp_path / "copy/inside", tmp_path):
        with pytest.raises(DatasetError, match="lie in each other"):
            install(TAB, tmp_path / "copy", place, replace=True)
    assert tree(tmp_path / "copy") == ["documents/1912.01214.pdf", "paper_tab_qa.csv"]
    with pytest.raises(DatasetError, match="is not a folder"):
        install(TAB, tmp_path / "nowhere", tmp_path / "place")


def test_an_unknown_benchmark_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DatasetError, match=r"no benchmark 'squad'.*mmlongbench, longdocurl, papertab, papertext"):
        get_home("squad")
