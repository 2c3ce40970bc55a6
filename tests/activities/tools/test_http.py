"""http_request against real servers on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from activities.tools.http import MAX_RESPONSE_BYTES, MAX_RETRY_AFTER
from tests.activities.attempts import Attempts

RETRIED = (408, 409, 425, 429, 500, 502, 503)


@dataclass
class Site:
    """A server that answers by the path: `/status/404`, `/redirect?...`; it remembers what it was asked."""

    url: str = ""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


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
        {"status": self.status, "to": self.redirect, "hang": self.hang, "big": self.big, "drop": self.drop}.get(
            kind, self.plain
        )(rest)

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

    def big(self, _: str) -> None:
        """More than is taken."""
        self.answer(200, "text/plain", b"x" * (MAX_RESPONSE_BYTES + 1))

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


def serve() -> tuple[ThreadingHTTPServer, Site]:
    """A server at work."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("SiteHandler", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server, site


@pytest.fixture
def site() -> Iterator[Site]:
    """A site."""
    server, site = serve()
    yield site
    site.stop.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def other_site() -> Iterator[Site]:
    """Another site."""
    server, site = serve()
    yield site
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", "hello"),
        ("/json", {"name": "ä", "rows": [1, 2]}),
        ("/problem", []),
        ("/liar", "<html>"),
        ("/latin", "café"),
        ("/binary", "\ufffd\0"),
    ],
)
async def test_the_body_is_the_value_where_it_is_json_and_text_otherwise(
    attempts: Attempts, site: Site, path: str, body: Any
) -> None:
    value = await attempts.but(approved=False).value("http_request", url=site.url + path)
    assert (value["status"], value["body"]) == (200, body)
    assert value["headers"]["content-length"]


async def test_a_body_is_sent_as_text_or_json(attempts: Attempts, site: Site) -> None:
    once = attempts.but(step="s")
    await once.run("http_request", url=site.url, method="POST", body={"a": "ä"}, headers={"X-Mine": "1"})
    await attempts.run(
        "http_request", url=site.url, method="PUT", body="plain ä", headers={"Idempotency-Key": "my own"}
    )
    (post, _, headers, body), (put, _, put_headers, text) = site.asked
    assert (post, json.loads(body), headers["content-type"]) == ("POST", {"a": "ä"}, "application/json")
    assert (headers["x-mine"], headers["idempotency-key"]) == ("1", "plan-p/s")
    assert (put, text.decode(), put_headers["idempotency-key"]) == ("PUT", "plain ä", "my own")


async def test_only_get_and_head_go_unasked(attempts: Attempts, site: Site) -> None:
    asking = attempts.but(approved=False)
    assert (await asking.value("http_request", url=site.url, method="HEAD"))["body"] == ""
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert await asking.code("http_request", url=site.url, method=method) == "APPROVAL_REQUIRED"
    assert [method for method, *_ in site.asked] == ["HEAD"]
    assert await asking.code("http_request", url=site.url, method="get") == "INVALID_ARGS"


@pytest.mark.parametrize(
    ("status", "final"),
    [*((status, True) for status in (400, 401, 404, 410, 422)), *((status, False) for status in RETRIED)],
)
async def test_a_status_of_failure_fails_the_step(attempts: Attempts, site: Site, status: int, final: bool) -> None:
    error = await attempts.error("http_request", url=f"{site.url}/status/{status}")
    assert (error.type, error.non_retryable) == ("HTTP_STATUS", final)
    assert str(status) in error.message
    assert "the reason" in error.message


async def test_the_server_says_when_to_try_again(attempts: Attempts, site: Site) -> None:
    async def wait(text: str) -> float:
        error = await attempts.error("http_request", url=f"{site.url}/status/429/{text.replace(' ', '_')}")
        assert error.next_retry_delay
        return error.next_retry_delay.total_seconds()

    assert await wait("7") == 7
    assert await wait("1e9") == MAX_RETRY_AFTER
    assert await wait("nan") == await wait("soon") == attempts.retry.delay
    assert 80 < await wait(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)) <= 100
    assert await wait(format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)) < 0.01


async def test_redirects_stay_in_their_scheme_and_give_headers_to_their_origin_only(
    attempts: Attempts, site: Site, other_site: Site
) -> None:
    secret = {"Authorization": "Bearer x", "X-Api-Key": "canary"}
    value = await attempts.value("http_request", url=f"{site.url}/to//json", headers=secret)
    assert value["body"]["rows"] == [1, 2]
    assert site.asked[-1][2]["x-api-key"] == "canary"
    value = await attempts.value("http_request", url=f"{site.url}/to/{other_site.url}/x", headers=secret)
    assert value["body"] == "hello"
    assert not {"authorization", "x-api-key"} & set(other_site.asked[-1][2])
    assert await attempts.code("http_request", url=f"{site.url}/to/https://127.0.0.1/") == "HTTP_STATUS"
    assert await attempts.code("http_request", url=f"{site.url}/to/file:///etc/passwd") == "HTTP_STATUS"
    assert await attempts.code("http_request", url=f"{site.url}/to/loop") == "HTTP_STATUS"
    value = await attempts.value("http_request", url=f"{site.url}/to//json", method="POST")
    assert value["status"] == 302


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "x",
            "/x",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "gopher://x",
            "javascript:1",
            "http://",
            "http:///x",
        ),
        *("https://user:pass@127.0.0.1/", "http://user@127.0.0.1/", "http://127.0.0.1:99999/", "http://127.0.0.1:x/"),
        *("http://127.0.0.1/" + "x" * 9_000, "http://a\nb/", "http://[::1"),
    ],
)
async def test_an_address_must_be_plain_http_or_https(attempts: Attempts, url: str) -> None:
    error = await attempts.error("http_request", url=url)
    assert (error.type, error.non_retryable) == ("INVALID_ARGS", True)
    assert "pass@" not in error.message


async def test_headers_cannot_smuggle_others_in(attempts: Attempts, site: Site) -> None:
    for headers in ({"X": "a\r\nY: b"}, {"X\n": "a"}, {"": "a"}, {"X": "ä\ud800"}):
        assert await attempts.code("http_request", url=site.url, headers=headers) == "INVALID_ARGS"
    assert site.asked == []


async def test_a_server_that_is_not_there_or_breaks_off_may_be_tried_again(attempts: Attempts, site: Site) -> None:
    for url in ("http://127.0.0.1:1/", f"{site.url}/drop", site.url.replace("http", "https")):
        error = await attempts.error("http_request", url=url)
        assert (error.type, error.non_retryable) == ("HTTP_UNREACHABLE", False)


async def test_a_server_that_hangs_is_left_in_time(attempts: Attempts, site: Site) -> None:
    error = await attempts.error("http_request", url=f"{site.url}/hang", timeout=0.2)
    assert (error.type, error.non_retryable) == ("HTTP_TIMEOUT", False)


async def test_too_long_an_answer_is_refused(attempts: Attempts, site: Site) -> None:
    assert await attempts.code("http_request", url=f"{site.url}/big") == "OUTPUT_LIMIT"


async def test_proxies_of_the_environment_are_not_used(
    attempts: Attempts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert (await attempts.value("http_request", url=site.url))["status"] == 200
