"""The human check in a browser: a page on this machine alone, with pictures of the cited and the gold pages.

It listens on 127.0.0.1, under an address nobody else can guess, and answers only requests that name it so: another
page open in the same browser can neither read it nor mark anything.
"""

from __future__ import annotations

import io
import os
import platform
import secrets
import threading
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image, UnidentifiedImageError
from rich.console import Console

from docmemo.artifacts import artifact_name, read_member, read_pages
from docmemo.errors import ArtifactError, ConfigError
from docmemo.evaluation.cases import Case
from docmemo.evaluation.report import MAX_QUOTE, environment, mark_terms
from docmemo.evaluation.review import Session
from docmemo.types import Box

PAGE_WIDTH = 1000
"""Pixels of a page picture."""
MAX_PAGES = 8
_BODY = 4096
"""Most bytes of a form that is read."""


@dataclass(frozen=True)
class Sheet:
    """A page shown beside the answer."""

    page: int
    label: str
    cited: bool
    gold: bool
    boxes: list[Box]
    quotes: list[str]


class ReviewServer(ThreadingHTTPServer):
    """Serves one session until `finished` is set.

    Args:
        session: what is left to mark.
        pages_dir: folder of the `.pages.zip` archives; a missing one costs only the pictures.
        port: 0 takes a free one.

    Raises:
        ConfigError: if the port cannot be had.
    """

    daemon_threads = True

    def __init__(self, session: Session, pages_dir: Path, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:
            raise ConfigError(f"Port {port} cannot be used: {error}.", remedy="Choose another --port.") from error
        self.session = session
        self.pages_dir = pages_dir
        self.token = secrets.token_urlsafe(16)
        self.lock = threading.Lock()
        """One request at a time touches the session."""
        self.finished = threading.Event()

    @property
    def host(self) -> str:
        """As a browser names it in its Host header."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{self.host}/{self.token}/"


class Handler(BaseHTTPRequestHandler):
    """The page, its pictures, and one form."""

    server: ReviewServer

    def do_GET(self) -> None:
        """The current case, or the picture of one of its pages."""
        path = self._path()
        if path == "":
            with self.server.lock:
                self._send(HTTPStatus.OK, "text/html; charset=utf-8", render(self.server.session).encode())
        elif path is not None and path.startswith("page/"):
            self._picture(path.removeprefix("page/"))
        elif path is not None:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """A mark, then back to the page."""
        if self._path() != "mark":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= _BODY:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        form = parse_qs(self.rfile.read(length).decode("utf-8", errors="replace"))
        mark, question = form.get("mark", [""])[0], form.get("question", [""])[0]
        with self.server.lock:
            apply(self.server.session, mark, question)
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"/{self.server.token}/")
        self.send_header("Content-Length", "0")
        self.end_headers()
        if mark == "quit":
            self.server.finished.set()

    def _path(self) -> str | None:
        """What is asked for, below the secret address; None when the request is not for this page (and refused)."""
        parts = urlsplit(self.path).path.split("/", 2)
        known = len(parts) == 3 and secrets.compare_digest(parts[1].encode(), self.server.token.encode())
        origin = self.headers.get("Origin")
        ours = self.headers.get("Host") == self.server.host and origin in (None, f"http://{self.server.host}")
        if not known or not ours:
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        return parts[2]

    def _picture(self, name: str) -> None:
        with self.server.lock:
            case = self.server.session.current
        wanted = [s.page for s in sheets(case)] if case else []
        page = int(name) if name.isdecimal() else 0
        data = picture(self.server.pages_dir, case.question.doc_id, page) if case and page in wanted else None
        if data is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK, "image/jpeg", data)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are no news."""


def apply(session: Session, mark: str, question: str) -> None:
    """Do what a button says, unless it is of a page shown earlier: two clicks must not mark two answers."""
    case = session.current
    if mark == "undo":
        session.undo()
    elif case and question == case.question.question_id and mark in ("right", "wrong", "skip"):
        session.mark(mark)  # type: ignore[arg-type]


def sheets(case: Case) -> list[Sheet]:
    """Cited pages in the order of the citations, then gold pages, at most MAX_PAGES."""
    citations = case.answer.citations if case.answer else []
    pages = list(dict.fromkeys([*(c.page for c in citations), *sorted(case.gold)]))[:MAX_PAGES]
    made = []
    for page in pages:
        here = [c for c in citations if c.page == page]
        made.append(
            Sheet(
                page=page,
                label=next((c.label for c in here if c.label), ""),
                cited=bool(here),
                gold=page in case.gold,
                boxes=[c.bbox for c in here if c.bbox],
                quotes=[mark_terms(c.quote[:MAX_QUOTE], case.question.question) for c in here if c.quote],
            )
        )
    return made


def render(session: Session) -> str:
    """The page of the current case, or of the end."""
    case = session.current
    values: Mapping[str, Any] = {
        "case": case,
        "sheets": sheets(case) if case else [],
        "total": len(session.sample),
        "done": session.done,
        "left": session.left,
        "can_undo": session.can_undo,
    }
    return environment().get_template("review.html").render(values)


def picture(pages_dir: Path, doc_id: str, page: int) -> bytes | None:
    """A page as JPEG, at most PAGE_WIDTH wide; None when there is none."""
    path = pages_dir / artifact_name(doc_id, ".pages.zip")
    try:
        names = {p.page: p.image for p in read_pages(path).pages}
        if not names.get(page):
            return None
        with Image.open(io.BytesIO(read_member(path, names[page]))) as image:
            small = image.convert("RGB")
    except (ArtifactError, UnidentifiedImageError, OSError, Image.DecompressionBombError):
        return None
    small.thumbnail((PAGE_WIDTH, 4 * PAGE_WIDTH))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def has_screen() -> bool:
    """Whether a browser with windows can be opened; one in the terminal would hide the address."""
    return platform.system() != "Linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def serve(session: Session, pages_dir: Path, port: int, *, console: Console) -> None:
    """Serve the page until its quit button, or Ctrl-C, ends it; open it in a browser where there is a screen.

    Raises:
        ConfigError: if the port cannot be had.
    """
    server = ReviewServer(session, pages_dir, port)
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="review")
    thread.start()
    console.print(f"{server.url}\nCtrl-C, or Quit on the page, ends it; every mark is kept.", soft_wrap=True)
    if has_screen():
        webbrowser.open(server.url)
    try:
        while not server.finished.wait(0.5):
            pass
        console.print(f"{session.done} of {len(session.sample)} marked.")
    finally:
        server.shutdown()
        server.server_close()
