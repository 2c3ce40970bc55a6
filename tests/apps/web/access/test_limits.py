"""What one connection may cost: bytes and time of a head, a body, an address, a form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from plansurvive.apps.web.limits import HEAD_BYTES, BoundedProtocol
from plansurvive.client.access.forms import MAX_BYTES
from plansurvive.runtime.settings import Settings
from tests.apps.web.access.serving import Page, served
from tests.kit.waiting import until


class Impatient(BoundedProtocol):
    """Closes a connection whose head takes longer than a moment."""

    head_seconds = 0.3


@pytest_asyncio.fixture
async def page(settings: Settings) -> AsyncIterator[Page]:
    async with served(settings, http=Impatient) as found:
        yield found


async def connected(page: Page) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(page.access.host.partition(":")[0], int(page.access.host.partition(":")[2]))


def head(page: Page, line: str, *more: str) -> bytes:
    """The head of a request of the page's own user."""
    cookie = f"Cookie: {page.access.cookie}={page.access.new_session()}"
    rows = [f"{line} HTTP/1.1", f"Host: {page.access.host}", f"Origin: {page.origin}", cookie, *more]
    return "\r\n".join([*rows, "", ""]).encode()


async def status(reader: asyncio.StreamReader) -> int:
    return int((await reader.readline()).split()[1])


@pytest.mark.parametrize("first", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n"])
async def test_a_connection_that_sends_its_head_slowly_is_closed(page: Page, first: bytes) -> None:
    reader, writer = await connected(page)
    writer.write(first)
    closed = asyncio.create_task(reader.read())

    async def drip() -> bool:
        if not closed.done():
            writer.write(b"X")
        return closed.done()

    await until(drip, "the server gives up")
    assert closed.done()
    writer.close()


async def test_a_second_request_of_a_connection_has_the_same_time(page: Page) -> None:
    reader, writer = await connected(page)
    writer.write(head(page, "GET /nothing"))
    assert await status(reader) == 404
    closed = asyncio.create_task(reader.read())
    writer.write(b"GET / HT")
    await until(closed.done, "the server gives up")
    writer.close()


async def test_a_request_in_time_may_take_as_long_as_it_needs(settings: Settings) -> None:
    done = asyncio.Event()

    async def slow(_request: Request) -> Response:
        await done.wait()
        return Response("late")

    async with served(settings, routes=[Route("/slow", slow)], http=Impatient) as page:
        reader, writer = await connected(page)
        writer.write(head(page, "GET /slow"))
        answered = asyncio.create_task(status(reader))
        closing, other = await connected(page)  # control: closed for want of a head, meanwhile
        assert await closing.read() == b""
        assert not answered.done()
        done.set()
        assert await answered == 200
        for each in (writer, other):
            each.close()


@pytest.mark.parametrize(
    ("line", "more", "answer"),
    [
        ("GET /" + "x" * 20_000, [], 414),
        ("GET /", ["X: " + "x" * HEAD_BYTES], 431),
        ("GET /", [f"X{number}: 1" for number in range(200)], 431),
        ("GET /nothing", ["Host: evil.example"], 400),
        ("GET /nothing", ["Origin: http://evil.example"], 403),
        ("GET /nothing", ["X: a\rSet-Cookie: b"], 400),
        ("TRACE /nothing", [], 404),
        ("OPTIONS /", [], 405),
        ("GET http://evil.example/", [], 404),
        ("GET //evil.example/", [], 404),
        ("GET /static/x/..%2f..%2fapp.py", [], 404),
        ("GET /static/x/%2e%2e/%2e%2e/app.py", [], 404),
        ("GET /static/x//etc/passwd", [], 404),
        ("GET /static/x/..%5c..%5capp.py", [], 404),
        ("GET /static/x/style.css%00.html", [], 404),
    ],
)
async def test_a_request_that_is_too_large_or_bent_is_refused(
    page: Page, line: str, more: list[str], answer: int
) -> None:
    reader, writer = await connected(page)
    writer.write(head(page, line, *more))
    assert await status(reader) == answer
    writer.close()


async def test_a_body_without_a_session_is_not_read(page: Page) -> None:
    reader, writer = await connected(page)
    rows = [
        "POST /change HTTP/1.1",
        f"Host: {page.access.host}",
        f"Origin: {page.origin}",
        "Content-Length: 9999999999",
    ]
    writer.write("\r\n".join([*rows, "", ""]).encode())
    assert await status(reader) == 403
    writer.close()


async def _post(page: Page, fields: str) -> int:
    reader, writer = await connected(page)
    session = page.access.new_session()
    body = f"csrf={page.access.csrf(session)}&{fields}".encode()
    rows = [
        "POST /change HTTP/1.1", f"Host: {page.access.host}", f"Origin: {page.origin}",
        "Content-Type: application/x-www-form-urlencoded", f"Cookie: {page.access.cookie}={session}",
        f"Content-Length: {len(body)}",
    ]  # fmt: skip
    writer.write("\r\n".join([*rows, "", ""]).encode() + body)
    found = await status(reader)
    writer.close()
    return found


async def test_a_form_has_limits_of_bytes_and_fields(page: Page) -> None:
    assert await _post(page, "what=it") == 200  # control
    many = "&".join(f"a{number}=1" for number in range(10_000))
    for fields in (many, f"what={'x' * MAX_BYTES}"):
        assert await _post(page, fields) == 400
    assert page.changed == ["it"]


async def test_a_body_that_comes_slowly_is_given_up(settings: Settings) -> None:
    async with served(settings) as page:
        page.access.body_seconds = 0.3
        reader, writer = await connected(page)
        session = page.access.new_session()
        rows = [
            "POST /change HTTP/1.1", f"Host: {page.access.host}", f"Origin: {page.origin}", "Content-Length: 1000",
            "Content-Type: application/x-www-form-urlencoded", f"Cookie: {page.access.cookie}={session}",
        ]  # fmt: skip
        writer.write("\r\n".join([*rows, "", ""]).encode() + b"csrf=")
        assert await status(reader) == 408
        assert page.changed == []
        writer.close()


async def test_a_stream_of_changes_ends_so_that_its_session_is_looked_at_again(
    settings: Settings,
) -> None:
    async def changes(_request: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0.05)

        return StreamingResponse(parts(), media_type="text/event-stream")

    async with served(settings, routes=[Route("/changes", changes)]) as page:
        page.access.stream_seconds = 0.3
        reader, writer = await connected(page)
        writer.write(head(page, "GET /changes", "Accept: text/event-stream", "Connection: close"))
        whole: Any = await reader.read()
        assert whole.startswith(b"HTTP/1.1 200")
        assert whole.endswith(b"0\r\n\r\n")
        writer.close()
