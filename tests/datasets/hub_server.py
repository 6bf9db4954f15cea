"""A loopback server that speaks as much of the Hugging Face Hub as a download needs, from files of our own."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(BaseHTTPRequestHandler):
    files: Mapping[str, bytes] = {}
    repo = ""
    asked: list[str] = []  # noqa: RUF012 - set anew by `hub`

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test's output is its own."""

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), Content_Type="application/json")

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.asked.append(path)
        api, resolve = f"/api/datasets/{self.repo}", f"/datasets/{self.repo}/resolve/"
        if revision := re.fullmatch(f"{api}/revision/(.+)", path):
            if revision[1] not in ("main", COMMIT):
                self._send(404, b"", X_Error_Code="RevisionNotFound")
                return
            self._json({"id": self.repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in self.files]})
        elif path == f"{api}/tree/{COMMIT}":
            self._json(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in self.files.items()
                ]
            )
        elif path.startswith(resolve) and path.removeprefix(resolve).split("/", 1)[1] in self.files:
            data = self.files[path.removeprefix(resolve).split("/", 1)[1]]
            etag = hashlib.sha1(data).hexdigest()
            self._send(200, data, ETag=f'"{etag}"', X_Repo_Commit=COMMIT, Accept_Ranges="none")
        else:
            self._send(404, b"", X_Error_Code="RepoNotFound")

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def hub(repo: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The address of a hub with one data set repository, and the paths it is asked for."""
    asked: list[str] = []
    handler = type("Hub", (_Hub,), {"repo": repo, "files": files, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
