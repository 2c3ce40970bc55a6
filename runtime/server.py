"""The embedded server: Temporal's development server as a daemon, with its data in the state directory.

It outlives the command that started it, so that plans continue; the next command finds it by its PID file. The server
process itself holds a lock on its data, so a second one never opens them, even if the PID file was lost. It uses ports
7233 and 8233 if both are free, otherwise any two, and listens on loopback addresses only. Servers of several state
directories start one at a time, so that no two choose the same ports.

A browser may send to any port of this machine, for any page that it shows. So nothing that speaks HTTP is within its
reach: the HTTP API allows no Host, it and the metrics listen on ports that browsers refuse, and so does the UI, behind
`runtime.browser_guard`. Port 7233 speaks HTTP/2 only, which browsers do not speak without TLS.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from runtime import browser_guard, daemon
from runtime.browser_guard import BLOCKED_PORTS
from runtime.errors import NotConnected
from runtime.private_files import make_private
from runtime.settings import Settings
from runtime.temporal_binary import find_temporal
from runtime.wait import locked_async, try_lock, until

HOST = "127.0.0.1"
PORT, UI_PORT = 7233, 8233
START_SECONDS = 60.0
STOP_SECONDS = 15.0
FREED_SECONDS = 5.0
OTHER_PORTS = range(10_000, 32_000)
"""Alternative ports: below the ephemeral range, from which outgoing connections could take them."""
STARTING = "\0plans-embedded-server-starts"
"""Abstract Unix socket name (Linux), bound while a server starts; like the ports, it is per network namespace."""

SEARCH_ATTRIBUTES = {
    "PlanStatus": "Keyword",
    "PlanPending": "KeywordList",
    "PlanTitle": "Text",
    "PlanResumes": "Keyword",
}
"""Search attributes to register on the server, with their types."""

FAST = {
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxPollRPS": 2000,
    "history.visibilityProcessorMaxPollRPS": 2000,
    "system.enableActivityEagerExecution": True,
}
"""Dynamic configuration. By default the development server dispatches 20 tasks per second; with this a chain of steps
runs ten times as fast. Eager execution gives a worker with free slots the next steps in the response to its workflow
task, which saves a dispatch each."""

CLOSED = {"frontend.httpAllowedHosts": ["not a Host, so none is allowed"], "system.enableNexus": False}
"""Dynamic configuration. The HTTP API cannot be turned off; it refuses every Host but this one, which the server's HTTP
library refuses for its spaces. The routes of Nexus do not look at Host."""

INHERITED = frozenset(["PATH", "TMPDIR", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "GOMAXPROCS", "GOMEMLIMIT", "GOGC"])
"""Variables that the server gets: no keys, and no settings of the `temporal` command line."""

PRAGMAS = {"journal_mode": "wal", "synchronous": "full"}
"""SQLite settings: every commit is on disk before it is acknowledged, with one write instead of several. On file
systems without support for a write-ahead log (network file systems) SQLite falls back to its rollback journal."""


class Server(daemon.Process):
    """A running embedded server."""

    address: str
    ui: str
    guard: daemon.Process | None = None
    """The proxy in front of the UI; None if an older version started the server."""
    is_closed: bool = False
    """Whether every port of it that speaks HTTP is one that browsers refuse."""

    def accepts(self) -> bool:
        """Whether the server's port accepts connections."""
        host, _, port = self.address.rpartition(":")
        return listens(host, int(port))


def flags(port: int, ui_port: int, database: Path | None) -> list[str]:
    """Command-line arguments of `temporal`; without a database the server keeps its data in memory."""
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--ui-port", str(ui_port)]
    arguments += ["--log-level", "error"]
    arguments += _database_flags(database) if database else []
    for name, kind in SEARCH_ATTRIBUTES.items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    for key, value in (FAST | CLOSED).items():
        arguments += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return arguments


def _database_flags(database: Path) -> list[str]:
    pragmas = [f"--sqlite-pragma={name}={value}" for name, value in PRAGMAS.items()]
    return ["--db-filename", str(database), *pragmas]


def recorded(settings: Settings) -> Server | None:
    """The embedded server of this state directory, if it is running."""
    return Server.read(_record(settings))


async def ensure(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Server:
    """The embedded server, started if needed. `say` announces slow work. Raises NotConnected or SettingError."""
    settings.make_state_dir()
    make_private(settings.state_dir, "PLANS_STATE_DIR")
    async with locked_async(settings.state_dir / "server.lock"):
        server = recorded(settings)
        if server is not None:
            await _wait_until_it_listens(server, settings)
            return server
        temporal = await find_temporal(settings, say)
        async with _start_lock():
            server = await _start(settings, temporal)
            await _wait_until_it_listens(server, settings)
        return server


async def stop(settings: Settings) -> Server | None:
    """Stop the embedded server, keeping its data; returns it, or None if it was not running."""
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "server.lock"):
        server = recorded(settings)
        if server is not None:
            await server.stop(STOP_SECONDS)
            if server.guard is not None:
                await server.guard.stop(STOP_SECONDS)  # it ends with the server, but its port is to be free on return
        _record(settings).unlink(missing_ok=True)
        return server


def workflow_link(ui: str, namespace: str, workflow_id: str) -> str:
    """URL of a workflow in the Temporal UI."""
    return f"{ui}/namespaces/{namespace}/workflows/{workflow_id}"


def listens(host: str, port: int) -> bool:
    """Whether the port accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def free_ports(*preferred: int) -> list[int]:
    """The preferred ports if all are free, otherwise as many others; 0 means any port."""
    with ExitStack() as opened:
        try:
            sockets = [opened.enter_context(_at(port)) for port in preferred]
        except OSError:
            sockets = [opened.enter_context(_at(0)) for _ in preferred]
        return [each.getsockname()[1] for each in sockets]


def blocked_ports(count: int, host: str = HOST) -> list[int]:
    """Free ports that browsers refuse to connect to; any free ones if all of these are in use."""
    with ExitStack() as opened:
        found: list[socket.socket] = []
        for port in [*random.sample(BLOCKED_PORTS, len(BLOCKED_PORTS)), *[0] * count]:
            if len(found) < count:
                with suppress(OSError):
                    found.append(opened.enter_context(_at(port, host)))
        return [each.getsockname()[1] for each in found]


def _at(port: int, host: str = HOST) -> socket.socket:
    """A socket bound to a port (0: any free one). Raises OSError if the port is taken."""
    for each in [port] if port else random.sample(OTHER_PORTS, 100):
        with suppress(OSError):
            return socket.create_server((host, each))
    return socket.create_server((host, port))


def _record(settings: Settings) -> Path:
    return settings.state_dir / "server.json"


@asynccontextmanager
async def _start_lock() -> AsyncIterator[None]:
    """Hold the machine-wide start lock: two servers that start at once would find the same ports free."""
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
    lock = settings.state_dir / "temporal.db.lock"
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # A server that was just killed is no longer listed before its last thread has released the lock.
        try:
            await until(lambda: try_lock(held), FREED_SECONDS)
        except TimeoutError:
            raise NotConnected(
                f"Another Temporal server uses the data in {settings.state_dir}, but its PID file is gone. "
                f"Find it with `fuser {lock}`, stop it, and try again.",
                "SERVER_FAILED",
            ) from None
        port, ui_port = free_ports(PORT, UI_PORT)
        with socket.create_server((HOST, ui_port)) as listening:
            hidden, behind = _hidden_flags()
            command = [str(temporal), *flags(port, behind[1], settings.state_dir / "temporal.db"), *hidden]
            # The server inherits the lock, so it is released when the server ends, even if it is killed.
            pid, began = daemon.start(command, _log(settings), _environ(settings), keep_open=[held], umask=0o077)
            guard = _start_guard(settings, listening, behind, lock)
    finally:
        os.close(held)
    closed = all(int(text) in BLOCKED_PORTS for text in hidden[1::2] if text.isdigit()) and behind[1] in BLOCKED_PORTS
    place = {"address": f"{HOST}:{port}", "ui": f"http://{HOST}:{ui_port}"}
    server = Server(pid=pid, began=began, guard=guard, is_closed=closed, **place)
    server.write(_record(settings))
    return server


def _hidden_flags() -> tuple[list[str], tuple[str, int]]:
    """Flags that put all that speaks HTTP out of a browser's reach, and the address of the UI."""
    metrics_port, http_port, ui_port = blocked_ports(3)
    host = HOST
    if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine: an address that nobody guesses, too
        host = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
        ui_port = blocked_ports(1, host)[0]
    hidden = ["--http-port", str(http_port), "--metrics-port", str(metrics_port), "--ui-ip", host]
    return hidden, (host, ui_port)


def _start_guard(settings: Settings, listening: socket.socket, behind: tuple[str, int], lock: Path) -> daemon.Process:
    """Start the proxy in front of the UI, on a port that is open already. It ends when the server releases its lock."""
    script = [sys.executable, "-I", str(Path(browser_guard.__file__).resolve()), "--fd", str(listening.fileno())]
    command = [*script, "--to", f"{behind[0]}:{behind[1]}", "--ends-with", str(lock)]
    log, passed = settings.state_dir / "ui.log", [listening.fileno()]
    pid, began = daemon.start(command, log, _environ(settings), keep_open=passed, umask=0o077)
    return daemon.Process(pid=pid, began=began)


def _environ(settings: Settings) -> dict[str, str]:
    """The environment of the server. Its home is the state directory: no file in the user's home configures it."""
    kept = {name: text for name, text in os.environ.items() if name in INHERITED}
    return {**kept, "HOME": str(settings.state_dir)}


async def _wait_until_it_listens(server: Server, settings: Settings) -> None:
    def listens() -> bool:
        if server.accepts():
            return True
        if not server.is_alive():
            raise _failed("exited at startup", settings)
        return False

    try:
        await until(listens, START_SECONDS)
    except TimeoutError:
        raise _failed(f"did not listen on {server.address} within {START_SECONDS:.0f} s", settings) from None


def _failed(what: str, settings: Settings) -> NotConnected:
    log = _log(settings)
    text = f"The embedded Temporal server {what}. The end of its log, {log}:\n{daemon.tail(log)}"
    return NotConnected(text, "SERVER_FAILED")


def _log(settings: Settings) -> Path:
    return settings.state_dir / "server.log"
