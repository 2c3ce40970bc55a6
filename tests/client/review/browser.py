"""A headless Chromium, spoken with over its own debugging protocol: open a page, press keys, take a picture."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.waiting import PATIENCE, until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")


def chromium() -> str | None:
    """The program, if there is one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Page:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0

    async def open(self, address: str) -> None:
        """Go to an address."""
        await self.call("Page.navigate", url=address)

    async def press(self, key: str) -> None:
        """Type one character."""
        code = {"key": key, "code": f"Key{key.upper()}", "windowsVirtualKeyCode": ord(key.upper())}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=key, **code)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    async def click(self, x: int, y: int) -> None:
        """Click somewhere: what is there takes the keys."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])

    async def value(self, expression: str) -> Any:
        """What a script says."""
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, answered."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=PATIENCE)
            if message.get("id") == self._number:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found


@asynccontextmanager
async def browser(program: str, directory: Path) -> AsyncIterator[Page]:
    """A browser with a profile of its own, ended afterwards."""
    command = [program, *FLAGS, f"--user-data-dir={directory}", "--remote-debugging-port=0", "--window-size=1000,700"]
    process = await asyncio.create_subprocess_exec(
        *command, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        told = directory / "DevToolsActivePort"
        await until(lambda: told.exists() and told.read_text().count("\n"), "the browser listens")
        port = told.read_text().split()[0]
        async with aiohttp.ClientSession() as session:

            async def page() -> Any:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    return next((each for each in await answer.json() if each["type"] == "page"), None)

            found = await until(page, "a page")
            async with session.ws_connect(found["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
