from __future__ import annotations

import base64
import hashlib
import io

import pytest
from PIL import Image as Pictures

from docmemo.errors import ArtifactError
from docmemo.models.images import encode


def picture(size: tuple[int, int], kind: str = "JPEG", mode: str = "RGB") -> bytes:
    data = io.BytesIO()
    Pictures.new(mode, size, "white").save(data, kind)
    return data.getvalue()


def decoded(uri: str) -> tuple[str, bytes]:
    head, _, data = uri.partition(",")
    return head, base64.b64decode(data)


@pytest.mark.parametrize(("kind", "media"), [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp")])
def test_a_picture_that_fits_goes_out_byte_for_byte(kind: str, media: str) -> None:
    data = picture((300, 400), kind)
    made = encode(data, 400)
    assert decoded(made.data_uri) == (f"data:{media};base64", data)
    assert (made.width, made.height, made.sha256) == (300, 400, hashlib.sha256(data).hexdigest())


def test_a_larger_one_is_brought_down_to_the_long_side_and_equals_itself() -> None:
    data = picture((1000, 2000))
    made = encode(data, 500)
    head, sent = decoded(made.data_uri)
    with Pictures.open(io.BytesIO(sent)) as shown:
        assert (head, shown.size) == ("data:image/jpeg;base64", (250, 500))
    assert (made.width, made.height) == (250, 500)
    assert made == encode(data, 500)
    assert made.sha256 == hashlib.sha256(sent).hexdigest()


def test_other_kinds_and_colours_become_jpeg() -> None:
    for data in (picture((30, 40), "GIF", "P"), picture((30, 40), "TIFF", "RGBA"), picture((600, 40), "PNG", "LA")):
        head, sent = decoded(encode(data, 500).data_uri)
        with Pictures.open(io.BytesIO(sent)) as shown:
            assert (head, shown.mode) == ("data:image/jpeg;base64", "RGB")


def test_bytes_that_are_no_picture_are_one_clear_error() -> None:
    for data in (b"", b"no picture", picture((300, 400))[:200]):
        with pytest.raises(ArtifactError, match="cannot be decoded"):
            encode(data, 100)
