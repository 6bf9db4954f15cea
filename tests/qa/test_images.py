"""Pictures for models: encoded once, at the side wanted, unchanged where nothing has to change."""

from __future__ import annotations

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from docmemo.artifacts import PAGES_MEMBER, write_archive
from docmemo.errors import ArtifactError
from docmemo.qa.images import ImageCache, Picture, encode_acceptable, padded, scaled
from docmemo.types import PageCrop, PageSet
from tests.qa.archives import BOX, jpeg, make_document


def decoded(image) -> bytes:
    head, _, data = image.data_uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return base64.b64decode(data)


def size_of(image) -> tuple[int, int]:
    with Image.open(io.BytesIO(decoded(image))) as picture:
        assert picture.format == "JPEG"
        return picture.size


def test_a_small_page_goes_out_with_the_archives_own_bytes(tmp_path):
    view = make_document(tmp_path, ["one", "two"], size=(400, 560))
    image = view.page_picture(2).image(1600)
    assert decoded(image) == jpeg((400, 560), "page 2 of d.pdf")
    assert (image.width, image.height) == (400, 560)


def test_a_large_page_is_brought_down_to_the_side_wanted(tmp_path):
    view = make_document(tmp_path, ["one"], size=(1000, 1400))
    picture = view.page_picture(1)
    image = picture.image(700)
    assert size_of(image) == (image.width, image.height) == (500, 700)
    outline = picture.outline(700)
    assert (outline.width, outline.height, outline.data_uri) == (500, 700, "")


@pytest.mark.parametrize("size", [(1234, 1777), (1777, 1234), (2800, 31), (9, 2800), (3, 3), (1, 1)])
@pytest.mark.parametrize("side", [900, 1333])
def test_the_outline_is_never_smaller_than_the_picture_sent(tmp_path, size, side):
    view = make_document(tmp_path, ["one"], size=size)
    outline, image = view.page_picture(1).outline(side), view.page_picture(1).image(side)
    assert size_of(image) == (image.width, image.height)
    assert 0 <= outline.width - image.width <= 1
    assert 0 <= outline.height - image.height <= 1


def test_pictures_like_tapes_and_dots_get_a_margin():
    for size in ((2800, 8), (8, 2800), (2, 2)):
        width, height = size_of(encode_acceptable(jpeg(size), 1600))
        assert min(width, height) >= 28
        assert max(width, height) <= 50 * min(width, height)
    assert padded(*scaled(1000, 1400, 700)) == (500, 700)


def test_a_page_is_encoded_once_a_side_however_many_ask_at_once(tmp_path):
    view = make_document(tmp_path, ["one", "two"], size=(1000, 1400))
    with ThreadPoolExecutor(8) as pool:
        images = list(pool.map(lambda i: view.page_picture(1 + i % 2).image(700), range(40)))
    assert view.images.encoded == 2
    assert len({image.sha256 for image in images}) == 2
    view.page_picture(1).image(600)
    assert view.images.encoded == 3


def test_sides_beyond_the_pictures_own_are_one_side(tmp_path):
    view = make_document(tmp_path, ["one"], size=(400, 560))
    assert view.page_picture(1).image(1600) is view.page_picture(1).image(900)


def test_memory_is_bounded_and_the_oldest_pictures_go_first(tmp_path):
    view = make_document(tmp_path, ["one", "two", "three"], size=(900, 900))
    one = len(view.page_picture(1).image(900).data_uri)
    view.images.limit = int(2.5 * one)
    for page in (2, 3, 2, 3, 1):
        view.page_picture(page).image(900)
    assert view.images.encoded == 4, "page 1 had to make room and came back"


def test_a_crop_is_found_by_its_region(tmp_path):
    view = make_document(tmp_path, ["one", "two"], tables=[2], crop_size=(1500, 900))
    crop = PageCrop(page=2, kind="table", bbox=BOX, caption="whatever")
    picture = view.crop_picture(crop)
    assert (picture.width, picture.height) == (1500, 900)
    assert decoded(picture.image(100_000)) == jpeg((1500, 900), "Table 2: figures of page 2")
    assert view.crop_picture(crop.model_copy(update={"page": 1})) is None
    assert view.crop_picture(crop.model_copy(update={"kind": "figure"})) is None


def test_a_page_without_a_picture_has_none(tmp_path):
    view = make_document(tmp_path, ["one", "two"])
    view.by_number[1].image = ""
    assert view.page_picture(1) is None


def test_a_damaged_picture_is_one_clear_error(tmp_path):
    write_archive(tmp_path / "a.zip", PAGES_MEMBER, PageSet(doc_id="d", sha256=""), [("x.jpg", b"no picture")])
    cache = ImageCache()
    with pytest.raises(ArtifactError, match="dvc repro"):
        Picture(cache, tmp_path / "a.zip", "x.jpg", 10, 10).image(10)
    with pytest.raises(ArtifactError, match=r"x\.jpg is not a picture"):
        cache.size(tmp_path / "a.zip", "x.jpg")
