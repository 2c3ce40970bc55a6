"""A real HTTP server on this machine for tests: it answers by the path, and remembers what it was asked."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from plansurvive.activities.tools.http import MAX_RESPONSE_BYTES


@dataclass
class Site:
    """A server that answers by the path: `/status/404`, `/redirect?...`; it remembers what it was asked."""

    url: str = ""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 0


class Handler(BaseHTTPRequestHandler):
    """Answers for a Site."""

    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Any method."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.asked.append((self.command, self.path, headers, body))
        kind, _, rest = self.path[1:].partition("/")
        kinds = {"status": self.status, "to": self.redirect, "hang": self.hang, "big": self.big, "drop": self.drop}
        kinds |= {"half": self.half, "packed": self.packed, "charset": self.charset}
        kinds.get(kind, self.plain)(rest)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = do_GET  # noqa: N815

    def plain(self, rest: str) -> None:
        """`/KIND`: a body of that kind."""
        name = self.path[1:] or rest
        bodies = {
            "json": ("application/json; charset=utf-8", b'{"name": "\xc3\xa4", "rows": [1, 2]}'),
            "problem": ("application/problem+json", b"[]"),
            "liar": ("application/json", b"<html>"),
            "latin": ("text/plain; charset=iso-8859-1", b"caf\xe9"),
            "binary": ("application/octet-stream", b"\xff\x00"),
        }
        self.answer(200, *bodies.get(name, ("text/plain", b"hello")))

    def status(self, rest: str) -> None:
        """`/status/CODE[/RETRY-AFTER]`."""
        code, _, wait = rest.partition("/")
        extra = {"Retry-After": wait.replace("_", " ")} if wait else {}
        self.answer(int(code), "text/plain", b"the reason", extra)

    def redirect(self, rest: str) -> None:
        """`/to/URL`, or `/to/loop`."""
        self.answer(302, "text/plain", b"", {"Location": "/to/loop" if rest == "loop" else rest})

    def hang(self, _: str) -> None:
        """No answer."""
        self.site.stop.wait(30)

    def drop(self, _: str) -> None:
        """Half an answer."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    def half(self, _: str) -> None:
        """Half an answer, and the rest when the site stops."""
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"half")
        self.site.stop.wait(30)
        self.wfile.write(b"rest")

    def big(self, _: str) -> None:
        """More than is taken."""
        self.answer(200, "text/plain", b"x" * (MAX_RESPONSE_BYTES + 1))

    def packed(self, times: str) -> None:
        """`/packed/TIMES`: compressed so many times."""
        body = b"hello"
        for _ in range(int(times)):
            body = gzip.compress(body)
        self.answer(200, "text/plain", body, {"Content-Encoding": ", ".join(["gzip"] * int(times))})

    def charset(self, name: str) -> None:
        """`/charset/NAME`: says that it is in that character set."""
        self.answer(200, f"text/plain; charset={name}", b"a-" + b"abcdefgh" * 5)

    def answer(self, code: int, kind: str, body: bytes, extra: dict[str, str] | None = None) -> None:
        """Send it."""
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(extra or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and code != 304:
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serve() -> Iterator[Site]:
    """A server at work."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("SiteHandler", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield site
    finally:
        site.stop.set()
        server.shutdown()
        server.server_close()
