"""A stand-in for MinerU's command: a program that writes what MinerU 4.0.12 (tier flash) wrote for `pdfs.report`."""

from __future__ import annotations

import copy
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

VERSION = "MinerU version: 4.0.12\nPython version: 3.11.7"

_PROGRAM = """#!{python}
import shutil, sys, time
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print({version!r})
    sys.exit()
open({calls!r}, "a").write(" ".join(arguments) + "\\n")
{before}
shutil.copy({zip!r}, arguments[arguments.index("-o") + 1] + "/document.zip")
print("Parsed 1 input(s).")
"""


def spans(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}]


def block(kind: str, box: list[float], text: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, "index": 0, "bbox": box, **({"content": spans(text)} if text else {}), **more}


def visual(kind: str, box: list[float], caption: str, caption_box: list[float], image: str) -> dict[str, Any]:
    parts = [
        block(f"{kind}_caption", caption_box, caption),
        {"type": f"{kind}_body", "index": 1, "bbox": box, "image_path": image, "content": "<table></table>"},
    ]
    return {"type": kind, "index": 3, "bbox": box, "content": parts}


TABLE = [0.101, 0.29, 0.765, 0.474]
IMAGE = [0.252, 0.57, 0.756, 0.784]
UPRIGHT = [
    block("doc_title", [0.101, 0.084, 0.478, 0.112], "2. Results of the survey", level=1),
    block("text", [0.101, 0.132, 0.893, 0.206], "The committee reviewed the harbour accounts"),
    visual("table", TABLE, "Table 1: Landings by harbour and year", [0.101, 0.262, 0.39, 0.276], "images/t.jpg"),
    visual("image", IMAGE, "Figure 1: The harbour seen from the north", [0.101, 0.808, 0.414, 0.822], "images/i.jpg"),
]
TURNED = [
    block("text", [0.178, 0.101, 0.192, 0.414], "Figure 1: The harbour seen from the north"),
    {"type": "image", "index": 1, "bbox": [0.216, 0.252, 0.43, 0.756], "content": []},
    visual(
        "table",
        [0.526, 0.101, 0.71, 0.765],
        "Table 1: Landings by harbour and year",
        [0.724, 0.101, 0.738, 0.39],
        "images/t.jpg",
    ),
    block("doc_title", [0.888, 0.101, 0.916, 0.478], "2. Results of the survey", level=1),
]


def middle(*pages: list[dict[str, Any]], size: tuple[float, float] = (595.0, 842.0)) -> dict[str, Any]:
    """`middle_json.json`: blocks by page; a page without blocks has no such field."""
    sizes = [{"page_idx": i, "width_pt": size[0], "height_pt": size[1]} for i in range(len(pages))]
    listed = [{"page_idx": i, **({"blocks": blocks} if blocks else {})} for i, blocks in enumerate(pages)]
    return copy.deepcopy(
        {
            "metadata": {"file_suffix": "pdf", "producer": {"name": "mineru", "version": "4.0.12"}},
            "extensions": {"mineru": {"tier": "flash"}, "docvortex_layout": {"version": 1, "pages": sizes}},
            "pages": listed,
            "is_full_document": True,
            "schema": "docvortex.middle",
            "schema_version": "2.0",
        }
    )


def command(folder: Path, output: Any, *, before: str = "", version: str = VERSION) -> Path:
    """A `mineru-kit` that writes `output` into its zip.

    Args:
        folder: where the program goes, and `calls`, which holds the arguments of each of its runs.
        output: content of middle_json.json.
        before: code that it runs first.
        version: what it prints for --version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "made.zip"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("middle_json.json", json.dumps(output))
        archive.writestr("images/t.jpg", b"cut by MinerU")
    program = folder / "mineru-kit"
    program.write_text(
        _PROGRAM.format(
            python=sys.executable, version=version, calls=str(folder / "calls"), before=before, zip=str(made)
        )
    )
    program.chmod(0o755)
    os.utime(program, ns=(1, len(version)))
    return program
