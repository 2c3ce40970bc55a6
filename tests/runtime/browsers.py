"""A server as older versions started it, what it listens to, and a real Chromium to attack it with."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from runtime import daemon
from runtime.server import HOST, Server, free_ports, listens
from tests.lacking import end
from tests.waiting import connected, until

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
    """A headless Chromium, driven by its DevTools protocol; every name ending in .example is this machine."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message | ({"sessionId": session} if session else {}))
        while True:
            answer = await self._socket.receive_json(timeout=60)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    async def open(self, url: str) -> tuple[str, str]:
        """Open a page in a tab of its own; returns the tab's session, and the network error if there is one."""
        target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        opened = await self.call("Page.navigate", session, url=url)
        if not opened.get("errorText"):
            ready = "document.readyState == 'complete' && location.href != 'about:blank'"
            await until(lambda: self.run(session, ready), f"{url} is loaded")
        return str(session), str(opened.get("errorText", ""))

    async def run(self, session: str, script: str) -> Any:
        """The value of an expression in a page, awaited if it is a promise."""
        given = {"expression": script, "awaitPromise": True, "returnByValue": True}
        return (await self.call("Runtime.evaluate", session, **given))["result"].get("value")


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Chromium]:
    """A running Chromium. Ends the test if there is none on this machine."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        end("chromium", "chromium is not installed", os.environ)
    command = [str(program), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", _FEATURES]
    command += [f"--user-data-dir={folder}", "--remote-debugging-port=0", f"--host-resolver-rules=MAP *.example {HOST}"]
    with (folder.parent / "chromium.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, start_new_session=True)
    try:
        file = folder / "DevToolsActivePort"
        await until(lambda: file.exists() and file.read_text().count("\n"), "Chromium says where it listens")
        port, path = file.read_text().split("\n")[:2]
        await until(lambda: listens(HOST, int(port)), "Chromium listens")
        url = f"ws://{HOST}:{port}{path}"
        async with aiohttp.ClientSession() as client, client.ws_connect(url, max_msg_size=0) as ws:
            yield Chromium(ws)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # all of its processes are in the session that began with it
        await process.wait()


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
