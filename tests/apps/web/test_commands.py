"""`plan web` serves the page until it is told to stop, and the other commands know where it is."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from temporalio.worker import Worker

from plansurvive.runtime.settings import Settings
from tests.client.cli.command import line_with, plan, running, told_to_stop, written

LOOK = {"id": "look", "tool": "list_directory", "args": {"path": "."}}
ASK = {"id": "ask", "tool": "delete_file", "args": {"path": "a.txt"}}


@asynccontextmanager
async def _entered(link: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has opened the link."""
    async with httpx.AsyncClient(base_url=link.split("/?")[0], timeout=60) as browser:
        assert (await browser.get(link)).status_code == 200
        yield browser


@pytest.mark.slow
async def test_the_page_is_served_named_by_other_commands_and_ends_with_its_viewers(
    environ: dict[str, str], settings: Settings, worker: Worker, tmp_path: Path
) -> None:
    file = written(tmp_path / "plan.json", {"title": "Looks", "steps": [LOOK, ASK]})
    assert "page" not in (await plan(environ, "start", file, "--id", "before")).out
    async with running(environ, "web", "--port", "0") as process:
        link = (await line_with(process, "key=")).splitlines()[-1].strip()
        started = await plan(environ, "start", file, "--id", "seen", "--review")
        page = started.out.splitlines()[-1].split()
        assert page == ["page", link.split("?")[0] + "plans/seen"], "the key belongs into no pipe"
        ran = await plan(environ, "run", written(tmp_path / "looks.json", {"title": "Looks", "steps": [LOOK]}))
        assert ("/plans/" in ran.out, "key=" in ran.out + ran.err) == (True, False)
        assert (await plan(environ, "review", "seen", "--web")).out.strip() == link.replace("/?", "/plans/seen/draft?")
        again = await plan(environ, "web")
        assert (again.code, again.out.strip()) == (0, link)
        assert (await plan(environ, "review", "none", "--web")).code == 4
        async with _entered(link) as browser:
            assert "Looks" in (await browser.get("/plans/seen")).text
            async with browser.stream("GET", "/plans/seen/live") as stream:
                assert (await anext(stream.aiter_lines())).startswith("id: ")
                said = await told_to_stop(process, signal.SIGTERM)
    assert ("Traceback" in said, process.returncode) == (False, 130), said
    assert not (settings.state_dir / "web.json").exists()


async def test_a_page_that_cannot_be_served_is_refused_with_a_sentence(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for options in (("--port", str(taken.getsockname()[1])), ("--listen", "0.0.0.0:0")):
            ended = await plan(environ | {"PLANS_AUTO_WORKER": "off"}, "web", *options)
            assert (ended.code, "Traceback" in ended.err) == (2, False)
