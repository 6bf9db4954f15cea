"""Opening: every document is processed or refused with a reason and a remedy."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from PIL import Image

from docmemo.documents.pdf import (
    Source,
    cached_source,
    clean_outline,
    digest_source,
    displayed_box,
    image_files,
    inspect_document,
    open_source,
)
from docmemo.errors import (
    DocumentError,
    EmptyDocumentError,
    PasswordProtectedError,
    UnreadableDocumentError,
)
from docmemo.types import Outline
from tests.documents import pdfs

HARD = Path(__file__).parents[2].parent / "shared" / "datasets" / "hard-pdfs"
HARD_PAGES = {
    "002-trivial-libre-office-writer.pdf": 1,
    "habibi-rotated.pdf": 4,
    "imagemagick-images.pdf": 6,
    "mistitled_outlines_example.pdf": 4,
    "multicolumn.pdf": 3,
    "pdflatex-4-pages.pdf": 4,
    "pdflatex-outline.pdf": 4,
}


def test_a_plain_pdf_says_how_many_pages_it_has(tmp_path: Path) -> None:
    assert inspect_document(pdfs.simple(tmp_path / "a.pdf", ["one", "two", "three"]), "pdf") == 3


def test_a_password_is_refused_with_the_command_that_removes_it(tmp_path: Path) -> None:
    with pytest.raises(PasswordProtectedError) as caught:
        inspect_document(pdfs.encrypted(tmp_path / "a.pdf", user="secret"), "pdf")
    assert "qpdf" in caught.value.remedy
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.message, copy.remedy) == (caught.value.message, caught.value.remedy)


def test_an_owner_password_alone_does_not_matter(tmp_path: Path) -> None:
    assert inspect_document(pdfs.encrypted(tmp_path / "a.pdf"), "pdf") == 1


def test_documents_without_pages_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("no images here")
    for path, kind in (
        (pdfs.zero_pages(tmp_path / "zero.pdf"), "pdf"),
        (tmp_path / "empty.pdf", "pdf"),
        (tmp_path / "folder", "images"),
    ):
        with pytest.raises(EmptyDocumentError) as caught:
            inspect_document(path, kind)  # type: ignore[arg-type]
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"Just a letter.\nWith two lines.\n", "plain text"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"PK\x03\x04rest", "Office"),
        (b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
        (pdfs.compressed_noise(), "none of the formats"),
    ],
)
def test_other_files_are_named_for_what_they_look_like(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    with pytest.raises(UnreadableDocumentError, match=word):
        inspect_document(path, "pdf")


def test_a_truncated_and_a_missing_file_are_unreadable(tmp_path: Path) -> None:
    for path in (pdfs.truncated(tmp_path / "cut.pdf"), tmp_path / "missing.pdf"):
        with pytest.raises(UnreadableDocumentError) as caught:
            inspect_document(path, "pdf")
        assert caught.value.remedy
        assert str(tmp_path) not in caught.value.message


def test_the_content_counts_and_not_the_extension(tmp_path: Path) -> None:
    renamed = tmp_path / "report.bin"
    shutil.move(pdfs.simple(tmp_path / "a.pdf", ["one", "two"]), renamed)
    assert inspect_document(renamed, "pdf") == 2
    lie = tmp_path / "lie.pdf"
    pdfs.picture_of_text(["Harbour"]).save(lie, "PNG")
    with open_source(lie, "pdf") as source:
        assert source.n_pages == 1
        assert not source.is_pdf


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP"])
def test_a_folder_of_images_of_any_kind_is_a_document(tmp_path: Path, form: str) -> None:
    for number in (10, 2, 1):
        pdfs.picture_of_text([f"Page {number}"]).save(tmp_path / f"p{number}.{form.lower()}", form)
    (tmp_path / ".hidden.png").touch()
    with open_source(tmp_path, "images") as source:
        assert source.n_pages == 3
        assert source.page(3).rect.width > 0
    assert [p.stem for p in image_files(tmp_path)] == ["p1", "p2", "p10"]


def test_the_digest_of_a_folder_follows_names_order_and_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, content in (("a.png", b"1"), ("b.png", b"2")):
        (folder / name).write_bytes(content)
    first = digest_source(folder, "images")
    (folder / "readme.txt").write_text("not a page")
    assert digest_source(folder, "images") == first
    (folder / "b.png").write_bytes(b"3")
    assert digest_source(folder, "images") != first
    with pytest.raises(UnreadableDocumentError):
        digest_source(tmp_path / "gone", "images")


def test_a_broken_outline_gives_what_can_be_read(tmp_path: Path) -> None:
    with open_source(pdfs.broken_outline(tmp_path / "a.pdf"), "pdf") as source:
        outline = source.outline()
    assert all(entry.page == 1 for entry in outline)


def test_an_outline_entry_without_a_page_takes_its_first_childs() -> None:
    entries = [(1, "Part I", -1), (2, "One", 3), (1, "Lost", -1), (1, "Two\n words", 5), (1, "Far", 99)]
    assert clean_outline(entries, 9) == [
        Outline(level=1, title="Part I", page=3),
        Outline(level=2, title="One", page=3),
        Outline(level=1, title="Two words", page=5),
    ]


def test_labels_are_the_pdfs_own(tmp_path: Path) -> None:
    from docmemo.documents.pdf import mupdf

    path = pdfs.simple(tmp_path / "a.pdf", ["one", "two", "three"])
    document = mupdf().open(str(path))
    document.set_page_labels(
        [{"startpage": 0, "style": "r", "firstpagenum": 1}, {"startpage": 2, "style": "D", "prefix": "A-"}]
    )
    document.save(str(tmp_path / "b.pdf"))
    with open_source(tmp_path / "b.pdf", "pdf") as source:
        assert [source.label(n) for n in (1, 2, 3)] == ["i", "ii", "A-1"]
    with open_source(path, "pdf") as source:
        assert source.label(1) == ""


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_boxes_follow_rotation_and_crop_box(tmp_path: Path, rotation: int) -> None:
    from docmemo.documents.pdf import mupdf

    document = mupdf().open()
    page = document.new_page(width=400, height=600)
    page.set_cropbox(mupdf().Rect(100, 100, 300, 500))
    page.set_rotation(rotation)
    # the upper left quarter of the crop box, in points of the unrotated page
    box = displayed_box(page, (0, 0, 100, 200))
    expected = {0: (0, 0), 90: (0.5, 0), 180: (0.5, 0.5), 270: (0, 0.5)}[rotation]
    assert box == pytest.approx((*expected, expected[0] + 0.5, expected[1] + 0.5))
    assert displayed_box(page, (-90, -90, -10, -10)) is None


@pytest.mark.skipif(not HARD.is_dir(), reason=f"{HARD} is not here")
def test_all_hard_pdfs_open_or_say_why() -> None:
    files = sorted(HARD.glob("*.pdf"))
    assert len(files) == 28
    refused = {}
    for path in files:
        try:
            n_pages = inspect_document(path, "pdf")
        except DocumentError as error:
            refused[path.name] = type(error)
            assert error.remedy
        else:
            assert n_pages == HARD_PAGES.get(path.name, n_pages)
    assert refused == {"libreoffice-writer-password.pdf": PasswordProtectedError}


def test_a_page_number_outside_the_document_is_an_error(tmp_path: Path) -> None:
    source = Source(pdfs.simple(tmp_path / "a.pdf"), "pdf")
    for number in (0, 2):
        with pytest.raises(IndexError):
            source.page(number)


def test_some_images_of_a_folder_are_a_document_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for document, n in (("17", 11), ("171", 2)):
        for i in range(n):
            Image.new("RGB", (30 + i, 40), "white").save(folder / f"{document}_{i}.png")
    path = folder / "17_[0-9]*"
    assert [p.name for p in image_files(path)] == [f"17_{i}.png" for i in range(11)]
    assert inspect_document(path, "images") == 11
    source = cached_source(path, "images")
    assert source.page(11).rect.width > source.page(1).rect.width
    alone = tmp_path / "alone"
    alone.mkdir()
    for i in range(11):
        (alone / f"17_{i}.png").write_bytes((folder / f"17_{i}.png").read_bytes())
    assert digest_source(path, "images") == digest_source(alone, "images")
    with pytest.raises(EmptyDocumentError):
        inspect_document(folder / "18_*", "images")
    with pytest.raises(UnreadableDocumentError):
        inspect_document(tmp_path / "gone" / "17_*", "images")
