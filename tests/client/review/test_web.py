"""The review screen in a browser: a real Chromium changes a plan; nobody without the link gets anything."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from temporalio.client import Client

from client import runs
from tests.client.review.browser import browser, chromium
from tests.client.review.conftest import Start
from tests.waiting import until

COOKIES = partial(aiohttp.CookieJar, unsafe=True)
"""Keeps cookies of an address without a name, as browsers do."""
Serve = Callable[[str], AbstractAsyncContextManager[str]]


@pytest.fixture
def serve(environ: dict[str, str]) -> Serve:
    """`plan review ID --web` as a process; the link it prints."""

    @asynccontextmanager
    async def served(plan: str) -> AsyncIterator[str]:
        command = [sys.executable, "-m", "client", "review", plan, "--web"]
        process = await asyncio.create_subprocess_exec(*command, env=environ, stderr=asyncio.subprocess.PIPE)
        assert process.stderr
        told = b""
        try:
            async with asyncio.timeout(60):
                while b"?key=" not in told:
                    told = await process.stderr.readline()
                    assert told, "it ended without a link"
            yield told.split()[-1].decode()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    return served


async def test_a_plan_is_changed_in_a_browser(
    temporal_client: Client, start: Start, serve: Serve, tmp_path: Path
) -> None:
    program = chromium()
    if program is None:
        pytest.skip("no chromium here: install it to run this test")
    plan = await start()
    async with serve(plan) as link, browser(program, tmp_path / "profile") as page:
        await page.open(link)
        await until(lambda: page.value("document.querySelector('.-first-byte') !== null"), "the first byte arrives")

        await page.click(300, 200)

        async def skipped() -> bool:
            await page.press("s")
            return (await runs.show(temporal_client, plan)).version > 1

        await until(skipped, "a key in the browser changes the plan", every=0.5)
        view = await runs.show(temporal_client, plan)
        assert "skipped" in view.changes[0].diff[0]
        picture = await page.picture()
        (tmp_path / "browser.png").write_bytes(picture)
        assert len(set(picture)) > 100


async def test_nobody_without_the_link_gets_the_screen(start: Start, serve: Serve) -> None:
    plan = await start()
    async with serve(plan) as link, aiohttp.ClientSession(cookie_jar=COOKIES()) as session:
        address = link.split("/?")[0]

        async def status(path: str, **headers: str) -> int:
            async with session.get(address + path, headers=headers) as answer:
                return answer.status

        for path in ("/", "/ws", "/?key=wrong", "/?key=ü", "/static/css/xterm.css"):
            assert await status(path) == 403
        key = link.split("?")[1]
        assert await status(f"/?{key}", Host="evil.example") == 403
        assert await status(f"/?{key}", Origin="http://evil.example") == 403
        assert await status(f"/?{key}") == 200
        assert await status("/static/css/xterm.css") == 200  # the cookie stands for the key
        assert await status("/ws", Origin="http://evil.example") == 403


async def test_the_page_its_files_and_the_screen_behind_it_are_served(start: Start, serve: Serve) -> None:
    plan = await start()
    async with serve(plan) as link, aiohttp.ClientSession(cookie_jar=COOKIES()) as session:
        async with session.get(link) as answer:
            page = await answer.text()
        files = [file for file in re.findall(r'(?:src|href)="([^"]+)"', page) if file.startswith(link.split("/?")[0])]
        assert len(files) >= 2
        for file in files:
            async with session.get(file) as answer:
                assert answer.status == 200, file
        (screen,) = set(re.findall(r"ws://[\w.:/]+", page))
        async with asyncio.timeout(60), session.ws_connect(f"{screen}?width=80&height=24") as socket:
            seen = b""
            while b"Copy a file" not in seen:
                message = await socket.receive()
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                seen += message.data if isinstance(message.data, bytes) else b""


async def test_without_a_terminal_the_command_says_what_to_do(environ: dict[str, str], start: Start) -> None:
    plan = await start()
    command = [sys.executable, "-m", "client", "review", plan]
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"NO_TERMINAL" in said
    assert b"--web" in said
