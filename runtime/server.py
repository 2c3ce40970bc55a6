"""The embedded server: Temporal's development server in the background, its data kept in the state directory.

It outlives the command that started it, so that plans go on; the next command finds it by its record. A lock held by
the server itself makes sure that no second one ever opens the same data, even if the record was lost. Its ports are
7233 and 8233 where they are free, else any two; it listens on 127.0.0.1 only. Servers of several state directories
start one after the other, so that no two take the same ports.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from runtime import daemon
from runtime.errors import NotConnected
from runtime.settings import Settings
from runtime.temporal_binary import find_temporal
from runtime.wait import locked_async, try_lock, until

HOST = "127.0.0.1"
PORT, UI_PORT = 7233, 8233
START_SECONDS = 60.0
STOP_SECONDS = 15.0
FREED_SECONDS = 5.0
OTHER_PORTS = range(10_000, 32_000)
"""Where other ports are looked for: below those that systems give to outgoing connections, which would take them."""
STARTING = "\0plans-embedded-server-starts"
"""The name that whoever starts a server holds until it listens; it is known as far as the ports are, and to Linux."""

SEARCH_ATTRIBUTES = {
    "PlanStatus": "Keyword",
    "PlanPending": "KeywordList",
    "PlanTitle": "Text",
    "PlanResumes": "Keyword",
}
"""What the server is told to index, so that lists can be searched."""

FAST = {
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxPollRPS": 2000,
    "history.visibilityProcessorMaxPollRPS": 2000,
    "system.enableActivityEagerExecution": True,
}
"""As it comes, the development server hands out 20 tasks a second; so a chain of steps runs ten times as fast. A worker
with room gets the next steps of a plan in the answer to its workflow task, which saves a dispatch each."""

PRAGMAS = {"journal_mode": "wal", "synchronous": "full"}
"""How SQLite keeps the data: every commit is on the disk before it is acknowledged, with one write instead of several.
A file system that cannot have a write-ahead log (a network's) goes on with SQLite's own journal."""


class Server(daemon.Process):
    """A running embedded server."""

    address: str
    ui: str

    def accepts(self) -> bool:
        """Whether something listens on the server's address."""
        host, _, port = self.address.rpartition(":")
        return listens(host, int(port))


def flags(port: int, ui_port: int, database: Path | None) -> list[str]:
    """The arguments of `temporal` for a server as we want it; without a database it forgets everything at its end."""
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--ui-port", str(ui_port)]
    arguments += ["--log-level", "error"]
    arguments += _kept_in(database) if database else []
    for name, kind in SEARCH_ATTRIBUTES.items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    for key, value in FAST.items():
        arguments += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return arguments


def _kept_in(database: Path) -> list[str]:
    pragmas = [f"--sqlite-pragma={name}={value}" for name, value in PRAGMAS.items()]
    return ["--db-filename", str(database), *pragmas]


def recorded(settings: Settings) -> Server | None:
    """The embedded server of this state directory, if it is alive."""
    return Server.read(_record(settings))


async def ensure(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Server:
    """The embedded server, started if need be; raises NotConnected. `say` is told what takes long."""
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "server.lock"):
        server = recorded(settings)
        if server is not None:
            await _wait_until_it_listens(server, settings)
            return server
        temporal = await find_temporal(settings, say)
        async with _others_kept_waiting():
            server = await _start(settings, temporal)
            await _wait_until_it_listens(server, settings)
        return server


async def stop(settings: Settings) -> Server | None:
    """Stop the embedded server; returns the one that ran, or None. Its data stays."""
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "server.lock"):
        server = recorded(settings)
        if server is not None:
            await server.stop(STOP_SECONDS)
        _record(settings).unlink(missing_ok=True)
        return server


def workflow_link(ui: str, namespace: str, workflow_id: str) -> str:
    """Where the Temporal UI shows a workflow."""
    return f"{ui}/namespaces/{namespace}/workflows/{workflow_id}"


def listens(host: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def free_ports(*preferred: int) -> list[int]:
    """The preferred ports if all of them are free, else as many others; 0 means any."""
    with ExitStack() as opened:
        try:
            sockets = [opened.enter_context(_at(port)) for port in preferred]
        except OSError:
            sockets = [opened.enter_context(_at(0)) for _ in preferred]
        return [each.getsockname()[1] for each in sockets]


def _at(port: int) -> socket.socket:
    """A socket that holds a port; any for 0. Raises OSError when it is taken."""
    for each in [port] if port else random.sample(OTHER_PORTS, 100):
        with suppress(OSError):
            return socket.create_server((HOST, each))
    return socket.create_server((HOST, port))


def _record(settings: Settings) -> Path:
    return settings.state_dir / "server.json"


@asynccontextmanager
async def _others_kept_waiting() -> AsyncIterator[None]:
    """Nobody else on this machine starts an embedded server meanwhile: two at once would find the same ports free."""
    with socket.socket(socket.AF_UNIX) as held:
        if sys.platform == "linux":
            with suppress(TimeoutError):
                await until(lambda: _has_bound(held), START_SECONDS)
        yield


def _has_bound(held: socket.socket) -> bool:
    try:
        held.bind(STARTING)
    except OSError:
        return False
    return True


async def _start(settings: Settings, temporal: Path) -> Server:
    port, ui_port = free_ports(PORT, UI_PORT)
    held = os.open(settings.state_dir / "temporal.db.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # A server killed just now counts as gone before its last thread has let go of it.
        try:
            await until(lambda: try_lock(held), FREED_SECONDS)
        except TimeoutError:
            raise NotConnected(
                f"Another Temporal server uses the data in {settings.state_dir}, but its record is gone. "
                f"Find it with `fuser {settings.state_dir / 'temporal.db.lock'}`, stop it, and try again.",
                "SERVER_FAILED",
            ) from None
        command = [str(temporal), *flags(port, ui_port, settings.state_dir / "temporal.db")]
        # The server inherits the lock and holds it until it ends, however it ends.
        pid, began = daemon.start(command, _log(settings), os.environ, keep_open=[held])
    finally:
        os.close(held)
    server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui=f"http://{HOST}:{ui_port}")
    server.write(_record(settings))
    return server


async def _wait_until_it_listens(server: Server, settings: Settings) -> None:
    def listens() -> bool:
        if server.accepts():
            return True
        if not server.is_alive():
            raise _failed("ended at once", settings)
        return False

    try:
        await until(listens, START_SECONDS)
    except TimeoutError:
        raise _failed(f"does not listen on {server.address} after {START_SECONDS:.0f} s", settings) from None


def _failed(what: str, settings: Settings) -> NotConnected:
    log = _log(settings)
    text = f"The embedded Temporal server {what}. Its log, {log}, ends:\n{daemon.tail(log)}"
    return NotConnected(text, "SERVER_FAILED")


def _log(settings: Settings) -> Path:
    return settings.state_dir / "server.log"
