"""A server as older versions started it, what it listens to, and a real Chromium to attack it with."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from playwright.async_api import BrowserContext, Error, Page, async_playwright

from plansurvive.runtime import daemon
from plansurvive.runtime.server import HOST, Server, free_ports
from tests.kit.lacking import end
from tests.kit.waiting import connected, until

EVIL = "evil.example"
"""The attacker's name, which resolves to this machine: what DNS rebinding brings about."""
SILENCE = 5.0
"""Seconds after which a connection that stays open is given up."""
_FEATURES = "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades"


@asynccontextmanager
async def old_server(temporal: Path, folder: Path) -> AsyncIterator[Server]:
    """A server with nothing of the defence, as it was started before."""
    port, ui_port = free_ports(0, 0)
    command = [str(temporal), "server", "start-dev", "--ip", HOST, "--port", str(port), "--ui-port", str(ui_port)]
    pid, began = daemon.start([*command, "--log-level", "error"], folder / "old.log", os.environ)
    running = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui=f"http://{HOST}:{ui_port}")
    try:
        await until(running.accepts, "the server listens")
        await connected(running.address)
        yield running
    finally:
        await running.stop(grace=0)


def listeners(server: Server) -> list[tuple[str, int]]:
    """Every address to which a browser could send: those of the server and of the proxy in front of its UI."""
    pids = [server.pid, *([server.guard.pid] if server.guard else [])]
    sockets = [each for pid in pids for each in psutil.Process(pid).net_connections("tcp")]
    return sorted({(each.laddr.ip, each.laddr.port) for each in sockets if each.status == psutil.CONN_LISTEN})


class Chromium:
    """A headless Chromium; every name ending in .example is this machine."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context

    async def open(self, url: str) -> tuple[Page, str]:
        """Open a page in a tab of its own; returns the tab, and the network error if there is one."""
        page = await self._context.new_page()
        try:
            await page.goto(url)
        except Error as error:
            if found := re.search(r"net::ERR_\w+", error.message):
                return page, found[0]
            raise
        return page, ""

    async def run(self, page: Page, script: str) -> Any:
        """The value of an expression in a page, awaited if it is a promise; once more if the page led elsewhere."""
        try:
            return await page.evaluate(script)
        except Error as error:
            if "context was destroyed" not in error.message:
                raise
            await page.wait_for_load_state("networkidle")
            return await page.evaluate(script)


@asynccontextmanager
async def chromium() -> AsyncIterator[Chromium]:
    """A running Chromium. Ends the test if there is none on this machine."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        end("chromium", "chromium is not installed", os.environ)
    flags = ["--disable-gpu", "--no-first-run", _FEATURES, f"--host-resolver-rules=MAP *.example {HOST}"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(program), args=flags, chromium_sandbox=False)
        try:
            yield Chromium(await browser.new_context())
        finally:
            await browser.close()


def start_body(workflow: str = "Pwned") -> str:
    """The request that starts a workflow."""
    return json.dumps({"workflowType": {"name": workflow}, "taskQueue": {"name": "nobody"}, "input": {"payloads": []}})


async def send(address: tuple[str, int], text: str) -> str:
    """What a port answers to a request as it stands, until it hangs up; empty if it says nothing."""
    reader, writer = await asyncio.open_connection(*address)
    said = b""
    with suppress(ConnectionError, TimeoutError):
        writer.write(text.encode())
        async with asyncio.timeout(SILENCE):
            while part := await reader.read(65_536):
                said += part
    writer.close()
    return said.decode(errors="replace")
