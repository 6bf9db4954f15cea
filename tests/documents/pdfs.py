"""Small documents that the tests make."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from docmemo.documents.pdf import mupdf

LOREM = (
    "The committee reviewed the harbour accounts and found that the income from mooring fees had risen, "
    "while the cost of dredging had fallen for the third year in a row."
)


def simple(path: Path, texts: list[str] | None = None, *, size: tuple[float, float] = (595, 842)) -> Path:
    """One page for each text, set at the top."""
    document = mupdf().open()
    for text in texts or [LOREM]:
        page = document.new_page(width=size[0], height=size[1])
        page.insert_textbox(mupdf().Rect(60, 80, size[0] - 60, size[1] - 80), text, fontsize=12)
    document.save(str(path))
    return path


def encrypted(path: Path, *, user: str = "", owner: str = "owner") -> Path:
    """With a password to open it, or only with one to change it."""
    document = mupdf().open()
    document.new_page().insert_text((72, 100), LOREM[:60], fontsize=12)
    document.save(str(path), encryption=mupdf().PDF_ENCRYPT_AES_256, user_pw=user, owner_pw=owner)
    return path


def zero_pages(path: Path) -> Path:
    """A valid PDF without a page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"]
    return _raw(path, objects)


def _raw(path: Path, objects: list[bytes]) -> Path:
    out = b"%PDF-1.4\n"
    offsets = []
    for i, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (i, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % o for o in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    path.write_bytes(out)
    return path


def broken_outline(path: Path) -> Path:
    """Bookmarks: one to a page, one that leads nowhere, one that points at itself, one without a title."""
    return _raw(
        path,
        [
            b"<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >>",
            b"<< /Type /Outlines /First 5 0 R /Last 8 0 R /Count 4 >>",
            b"<< /Title (Good) /Parent 4 0 R /Dest [3 0 R /Fit] /Next 6 0 R >>",
            b"<< /Title (Nowhere) /Parent 4 0 R /Dest [99 0 R /Fit] /Next 7 0 R >>",
            b"<< /Title (Loop) /Parent 4 0 R /Dest (no such name) /Next 7 0 R /First 7 0 R >>",
            b"<< /Parent 4 0 R /Dest [3 0 R /Fit] >>",
        ],
    )


def picture_of_text(lines: list[str], *, dpi: int = 150, turn: int = 0, skew: float = 0.0) -> Any:
    """A grey-and-white Pillow picture of a page with printed lines."""
    import io

    from PIL import Image

    document = mupdf().open()
    page = document.new_page(width=420, height=300)
    for i, line in enumerate(lines):
        page.insert_text((40, 60 + 30 * i), line, fontsize=15)
    image = Image.open(io.BytesIO(page.get_pixmap(dpi=dpi).tobytes("png"))).convert("RGB")
    if skew:
        image = image.rotate(skew, expand=True, fillcolor="white", resample=Image.Resampling.BICUBIC)
    return image.rotate(turn, expand=True)


def scanned(path: Path, lines: list[str], **how: Any) -> Path:
    """A PDF whose only content is a picture of text."""
    import io

    image = picture_of_text(lines, **how)
    data = io.BytesIO()
    image.save(data, "PNG")
    document = mupdf().open()
    page = document.new_page(width=image.width * 72 / 150, height=image.height * 72 / 150)
    page.insert_image(page.rect, stream=data.getvalue())
    document.save(str(path))
    return path


def report(path: Path, *, rotation: int = 0) -> Path:
    """A page with a heading, prose, a ruled table with its caption, and a picture with its caption."""
    pymupdf = mupdf()
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_text((60, 90), "2. Results of the survey", fontsize=20, fontname="hebo")
    page.insert_textbox(pymupdf.Rect(60, 110, 535, 200), LOREM * 2, fontsize=11)
    page.insert_text((60, 230), "Table 1: Landings by harbour and year", fontsize=10)
    rows = [("Harbour", "2019", "2020", "2021"), *[(f"Port {c}", "120", "133", "147") for c in "ABCDEF"]]
    for r, row in enumerate(rows):
        y = 245 + 22 * r
        page.draw_line((60, y), (455, y))
        for c, cell in enumerate(row):
            page.insert_text((66 + 118 * c, y + 15), cell, fontsize=11)
    page.draw_line((60, 245 + 22 * len(rows)), (455, 245 + 22 * len(rows)))
    gradient = bytes(v for y in range(120) for x in range(200) for v in (x, y, 128))
    pixmap = pymupdf.Pixmap(pymupdf.csRGB, 200, 120, gradient, 0)
    page.insert_image(pymupdf.Rect(150, 480, 450, 660), pixmap=pixmap)
    page.insert_text((60, 690), "Figure 1: The harbour seen from the north", fontsize=10)
    page.set_rotation(rotation)
    document.save(str(path))
    return path


def landscape_report(path: Path, *, rotation: int) -> Path:
    """`report` set sideways on its page and turned upright again by the page's rotation, as scanners and TeX do."""
    pymupdf = mupdf()
    source = pymupdf.open(str(report(path)))
    document = pymupdf.open()
    size = (842, 595) if rotation in (90, 270) else (595, 842)
    page = document.new_page(width=size[0], height=size[1])
    page.show_pdf_page(page.rect, source, 0, rotate=rotation)
    page.set_rotation(rotation)
    document.save(str(path.with_name("turned.pdf")))
    return path.with_name("turned.pdf")


def truncated(path: Path) -> Path:
    """The first 300 bytes of a PDF."""
    data = simple(path).read_bytes()
    path.write_bytes(data[:300])
    return path


def compressed_noise() -> bytes:
    """Bytes of no known format."""
    return zlib.compress(bytes(range(256)) * 20)
