"""The embedded server: Temporal's development server as a daemon, with its data in the state directory.

It outlives the command that started it, so that plans continue; the next command finds it by its PID file. The server
process itself holds a lock on its data, so a second one never opens them, even if the PID file was lost. It first uses
ports 7233 and 8233 if both are free, otherwise any two, and comes back on those it had; it listens on loopback
addresses only. Servers of several state directories start one at a time, so that no two choose the same ports.

A browser may send to any port of this machine, for any page that it shows. So nothing that speaks HTTP is within its
reach: the HTTP API allows no Host, it and the metrics listen on ports that browsers refuse, and so does the UI, behind
`runtime.browser_guard`. Port 7233 speaks HTTP/2 only, which browsers do not speak without TLS.

Five settings make chains ten times as fast; SQLite's write-ahead log takes a third off a chain on disk. `synchronous`
stays `full`: `normal` saves a quarter, and a power cut could undo what was acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from plansurvive.runtime import browser_guard, daemon
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked_async, try_lock, until
from plansurvive.runtime.browser_guard import BLOCKED_PORTS
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.private_files import make_private
from plansurvive.runtime.service.fair_queues import fair
from plansurvive.runtime.service.start_lock import start_lock
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import PINNED, find_temporal, server_version

HOST = "127.0.0.1"
PORT, UI_PORT = 7233, 8233
START_SECONDS = 60.0
_NO_SPACE = 1024 * 1024
"""Free bytes below which a disk counts as full."""
_OF_DAMAGE = ("file is not a database", "disk image is malformed")
"""What SQLite says of a file that it cannot read (sqlite.org/rescode.html: SQLITE_NOTADB, SQLITE_CORRUPT)."""
_DAMAGED = (
    "Its data, {0}/temporal.db, is damaged: put back a copy, or move it away with temporal.db-wal and temporal.db-shm"
    " to begin without the plans in it. "
)
STOP_SECONDS = 15.0
FREED_SECONDS = 5.0
PORTS_SECONDS = 2.0
"""Seconds until a port of the server before is taken by somebody else, instead of not yet free."""
OTHER_PORTS = range(10_000, 32_000)
"""Alternative ports: below the ephemeral range, from which outgoing connections could take them."""

SEARCH_ATTRIBUTES = {
    "PlanStatus": "Keyword",
    "PlanPending": "KeywordList",
    "PlanTitle": "Text",
    "PlanResumes": "Keyword",
}
"""Search attributes to register on the server, with their types."""

FAST = {
    **dict.fromkeys(("matching.numTaskqueueReadPartitions", "matching.numTaskqueueWritePartitions"), 1),
    "history.transferProcessorMaxPollRPS": 2000,
    "history.timerProcessorMaxPollRPS": 2000,
    "history.visibilityProcessorMaxPollRPS": 2000,
    "history.maximumBufferedEventsBatch": 1000,
    "system.enableActivityEagerExecution": True,
}
"""Dynamic configuration. By default the server dispatches 20 tasks per second: a chain runs a tenth as fast. It fails a
workflow task when 100 events wait for it, two per step that ends; the worker then replays the history. Eager execution
gives a worker the next steps in the response to its workflow task, which saves a dispatch each."""

CLOSED = {"frontend.httpAllowedHosts": ["not a Host, so none is allowed"], "system.enableNexus": False}
"""Dynamic configuration. The HTTP API cannot be turned off; it refuses every Host but this one, which the server's HTTP
library refuses for its spaces. The routes of Nexus do not look at Host: server 1.29 turns them off, 1.32 cannot. They
complete and call operations of Nexus, and no plan or worker has any."""

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
    """The proxy in front of the UI."""
    is_closed: bool = False
    """Whether every port of it that speaks HTTP is one that browsers refuse."""
    is_stopped: bool = False
    """Whether it was told to stop."""

    @property
    def ports(self) -> list[int]:
        """Its port and that of its UI; 0 for one that is not recorded."""
        texts = (self.address.rpartition(":")[2], self.ui.rpartition(":")[2])
        return [int(text) if text.isascii() and text.isdigit() and int(text) < 65_536 else 0 for text in texts]

    def accepts(self) -> bool:
        """Whether the server's port accepts connections."""
        return listens(self.address.rpartition(":")[0], int(self.address.rpartition(":")[2]))


def flags(port: int, ui_port: int, database: Path | None) -> list[str]:
    """Command-line arguments of `temporal`; without a database the server keeps its data in memory."""
    arguments = ["server", "start-dev", "--ip", HOST, "--port", str(port), "--ui-port", str(ui_port)]
    arguments += ["--log-level", "error"]
    arguments += _database_flags(database) if database else []
    for name, kind in SEARCH_ATTRIBUTES.items():
        arguments += ["--search-attribute", f"{name}={kind}"]
    for key, value in {**FAST, **CLOSED, **fair(database)}.items():
        arguments += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return arguments


def _database_flags(database: Path) -> list[str]:
    pragmas = [f"--sqlite-pragma={name}={value}" for name, value in PRAGMAS.items()]
    return ["--db-filename", str(database), *pragmas]


def recorded(settings: Settings) -> Server | None:
    """The embedded server of this state directory, if it is running."""
    return Server.read(record(settings))


def last(settings: Settings) -> Server | None:
    """The embedded server that this state directory has or had."""
    return Server.last(record(settings))


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
        await _note_version(settings, temporal)
        async with start_lock(START_SECONDS):
            server = await _start(settings, temporal, say)
            await _wait_until_it_listens(server, settings)
        return server


async def _note_version(settings: Settings, temporal: Path) -> None:
    """Record which server is about to open the data. Raises NotConnected if it is older than the last that did."""
    version = await server_version(temporal)
    file = settings.state_dir / "temporal.version"
    try:
        last = tuple(map(int, file.read_text().split(".")))
    except (FileNotFoundError, ValueError):  # a damaged record must not keep a plan from its data
        last = ()
    if version is None or version == last:
        return
    if version < last:
        raise NotConnected(
            f"The data in {settings.state_dir} were last opened by Temporal server {_dotted(last)}. {temporal} has the "
            f"older {_dotted(version)}, which may not understand them. Upgrade it, or take it from PATH: the next "
            f"command then installs `temporal` {PINNED.version} (server {PINNED.server}). Or use another "
            "PLANS_STATE_DIR.",
            "SERVER_OLDER",
        )
    write_whole(file, _dotted(version).encode())


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


async def stop(settings: Settings) -> Server | None:
    """Stop the embedded server, keeping its data and its ports; returns it, or None if it was not running."""
    settings.make_state_dir()
    async with locked_async(settings.state_dir / "server.lock"):
        server = recorded(settings)
        if server is not None:
            # First the record: who sees the server end is to know that this was meant.
            server.model_copy(update={"is_stopped": True}).write(record(settings))
            await server.stop(STOP_SECONDS)
            if server.guard is not None:
                await server.guard.stop(STOP_SECONDS)  # it ends with the server, but its port is to be free on return
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


def record(settings: Settings) -> Path:
    """The server's PID file. It stays when the server ends, for its ports."""
    return settings.state_dir / "server.json"


async def _start(settings: Settings, temporal: Path, say: Callable[[str], None]) -> Server:
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
        port, ui_port = await _ports(last(settings), say)
        with socket.create_server((HOST, ui_port)) as listening:
            hidden, behind = _hidden_flags()
            command = [str(temporal), *flags(port, behind[1], settings.state_dir / "temporal.db"), *hidden]
            # The server inherits the lock, so it is released when the server ends, even if it is killed.
            pid, began = daemon.start(command, _log(settings), _environ(settings), keep_open=[held], umask=0o077)
            guard = _start_guard(settings, listening, behind, lock, pid)
    finally:
        os.close(held)
    closed = all(int(text) in BLOCKED_PORTS for text in hidden[1::2] if text.isdigit()) and behind[1] in BLOCKED_PORTS
    place = {"address": f"{HOST}:{port}", "ui": f"http://{HOST}:{ui_port}"}
    server = Server(pid=pid, began=began, guard=guard, is_closed=closed, **place)
    server.write(record(settings))
    return server


async def _ports(before: Server | None, say: Callable[[str], None]) -> list[int]:
    """The ports of the server before, so that links and connections stay good; others for those that are taken."""
    if before is None or 0 in before.ports:
        return free_ports(PORT, UI_PORT)
    if before.guard is not None:
        await before.guard.stop(STOP_SECONDS)  # it ends with the server, a moment later
    with suppress(TimeoutError):
        await until(lambda: free_ports(*before.ports) == before.ports, PORTS_SECONDS)
        return before.ports
    kept = [port if free_ports(port) == [port] else 0 for port in before.ports]
    found = free_ports(*kept)
    for old, new in zip(before.ports, found, strict=True):
        if new != old:
            say(f"Port {old} of the embedded server is taken by another program; it moves to port {new}.")
    return found


def _hidden_flags() -> tuple[list[str], tuple[str, int]]:
    """Flags that put all that speaks HTTP out of a browser's reach, and the address of the UI."""
    metrics_port, http_port, ui_port = blocked_ports(3)
    host = HOST
    if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine: an address that nobody guesses, too
        host = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
        ui_port = blocked_ports(1, host)[0]
    hidden = ["--http-port", str(http_port), "--metrics-port", str(metrics_port), "--ui-ip", host]
    return hidden, (host, ui_port)


def _start_guard(
    settings: Settings, listening: socket.socket, behind: tuple[str, int], lock: Path, pid: int
) -> daemon.Process:
    """Start the proxy in front of the UI, on an open port. It ends when the server (`pid`) releases its lock."""
    script = [sys.executable, "-I", str(Path(browser_guard.__file__).resolve()), "--fd", str(listening.fileno())]
    command = [*script, "--to", f"{behind[0]}:{behind[1]}", "--ends-with", str(lock), "--server", str(pid)]
    log, passed = settings.state_dir / "ui.log", [listening.fileno()]
    pid, began = daemon.start(command, log, _environ(settings), keep_open=passed, umask=0o077)
    return daemon.Process(pid=pid, began=began)


def _environ(settings: Settings) -> dict[str, str]:
    """The environment of the server. Its home is the state directory: no file in the user's home configures it.

    The server wants a name of its user, and asks for $USER where the system knows none: a container's `--user 1234`.
    """
    kept = {name: text for name, text in os.environ.items() if name in INHERITED}
    return {**kept, "HOME": str(settings.state_dir), "USER": "plans"}


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
    advice = _DAMAGED.format(settings.state_dir) if any(text in daemon.tail(log) for text in _OF_DAMAGE) else ""
    if shutil.disk_usage(settings.state_dir).free < _NO_SPACE:
        text = f"the disk of {settings.state_dir} is full; free some space there, or name another with PLANS_STATE_DIR"
        return NotConnected(f"The embedded Temporal server {what}: {text}.", "SERVER_FAILED")
    return NotConnected(f"The embedded Temporal server {what}. {advice}{daemon.log_end(log)}", "SERVER_FAILED")


def _log(settings: Settings) -> Path:
    return settings.state_dir / "server.log"
