"""The page of `docmemo review --browser`, asked over loopback as a browser does."""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from rich.console import Console

from docmemo.evaluation.review import Marks, Session, draw
from docmemo.evaluation.review_server import ReviewServer, serve
from tests.evaluation.review_cases import cases
from tests.evaluation.test_report import archive

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


class Page:
    """A browser with one page open."""

    def __init__(self, server: ReviewServer) -> None:
        self.server = server

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, bytes, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_address[1], timeout=20)
        sent = {"Host": self.server.host, "Content-Type": "application/x-www-form-urlencoded", **headers}
        connection.request(method, path, body or None, sent)
        reply = connection.getresponse()
        data, location = reply.read(), reply.headers.get("Location") or reply.headers.get("Content-Type") or ""
        connection.close()
        return reply.status, data, location

    def show(self) -> str:
        status, data, _ = self.ask("GET", f"/{self.server.token}/")
        assert status == 200
        return data.decode()

    def mark(self, mark: str, question: str, **headers: str) -> int:
        return self.ask(
            "POST", f"/{self.server.token}/mark", urlencode({"mark": mark, "question": question}), **headers
        )[0]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A server with three answers; the pages of one document have pictures."""
    everything = cases(3, documents=1)
    archive(tmp_path, "doc0.pdf", 4)
    server = ReviewServer(Session(draw(everything, 3, 0), Marks(tmp_path / "marks", "ann")), tmp_path)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield Page(server)
    server.shutdown()
    server.server_close()
    thread.join()


def test_marks_are_taken_shown_answers_change_and_quit_ends_it(page: Page) -> None:
    session = page.server.session
    for i, case in enumerate(list(session.sample)):
        html = page.show()
        assert case.question.question in html
        assert f"{i} of 3 marked" in html
        assert page.mark(("right", "wrong", "right")[i], case.question.question_id) == 303
    assert "3 of 3 marked" in page.show()
    standing = Marks(session.marks.path.parent, "ann").standing()
    assert [standing[c.question.question_id].mark for c in session.sample] == ["right", "wrong", "right"]
    assert page.mark("undo", "") == 303
    assert "2 of 3 marked" in page.show()
    assert not page.server.finished.is_set()
    page.mark("quit", "")
    assert page.server.finished.wait(10)


def test_serving_prints_the_address_and_ends_with_the_quit_button(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("docmemo.evaluation.review_server.has_screen", lambda: True)
    said = Console(file=io.StringIO(), width=200)
    session = Session(page.server.session.sample, Marks(tmp_path / "others", "bob"))
    thread = threading.Thread(target=serve, args=(session, tmp_path, 0), kwargs={"console": said})
    thread.start()
    while not opened:
        assert thread.is_alive()
    (address,) = opened
    assert isinstance(said.file, io.StringIO)
    assert said.file.getvalue().splitlines()[0] == address
    place = urlsplit(address)
    other = http.client.HTTPConnection(place.netloc, timeout=20)
    other.request("POST", f"{place.path}mark", "mark=quit&question=", {"Host": place.netloc})
    assert other.getresponse().status == 303
    thread.join(30)
    assert not thread.is_alive()
    assert "0 of 3 marked." in said.file.getvalue()


def test_neither_score_nor_verdict_is_on_the_page(page: Page) -> None:
    html = page.show().casefold()
    for word in ("secret reason", "rule score", "verdict", "judge"):
        assert word not in html


def test_a_page_shown_earlier_cannot_mark_the_next_answer(page: Page) -> None:
    first = page.server.session.sample[0].question.question_id
    page.mark("right", first)
    page.mark("right", first)
    assert page.server.session.done == 1


def test_pictures_are_of_the_current_answers_pages_alone(page: Page) -> None:
    case = page.server.session.current
    assert case is not None
    (wanted,) = case.gold
    status, data, kind = page.ask("GET", f"/{page.server.token}/page/{wanted}")
    assert (status, kind, data[:2]) == (200, "image/jpeg", b"\xff\xd8")
    for other in ("9", "x", "../../etc/passwd", "0"):
        assert page.ask("GET", f"/{page.server.token}/page/{other}")[0] == 404


def test_requests_that_do_not_come_from_the_page_are_refused(page: Page) -> None:
    token, question = page.server.token, page.server.session.sample[0].question.question_id
    assert page.ask("GET", "/")[0] == 403
    assert page.ask("GET", "/wrong/")[0] == 403
    assert page.ask("GET", f"/{token}/", Host="evil.example")[0] == 403
    assert page.mark("right", question, Origin="http://evil.example") == 403
    assert page.mark("right", question, Host="localhost:1") == 403
    assert page.ask("POST", f"/{token}/mark", "x" * 5000)[0] == 400
    assert page.ask("GET", f"/{token}/other")[0] == 404
    assert page.server.session.done == 0
