"""Runs a command to completion and captures its output: the worker's side of `activities.sandbox.launcher`.

No process of the command outlives the call: cancellation sends SIGTERM, kills the whole tree after a grace period and
waits for that; if the worker dies, the tree is killed at once. The first and the last 128 KiB of each stream are kept,
with a line `...[N bytes cut]...` between them, so memory is bounded; invalid UTF-8 is replaced.
`activities.sandbox.sandbox` decides what the command may do. Nothing of a command is on the launcher's command line or
in its environment: the launcher reads all of it from an inherited file in memory.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.sandbox.confinement import CONSTANT

KEPT_BYTES = 128 * 1024
"""Bytes kept of the start, and of the end, of each stream."""
GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_COMMAND_BYTES = 128 * 1024 - 1
"""Maximum length of one process argument (Linux)."""

DRAIN_SECONDS = 2.0
"""Seconds to wait for end of file on the pipes after the launcher has exited."""

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_PYTHON = os.path.realpath(sys.executable)
"""Not the link in a virtual environment, which a command could replace if it lies in the workspace."""
_PASSED_ON = ("PATH", "LANG", "TZ", "TMPDIR")


@dataclass(frozen=True)
class Ended:
    """Output and exit code of a finished command."""

    stdout: str
    stderr: str
    exit_code: int


@dataclass
class Output:
    """The start and the end of a byte stream."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    cut: int = 0

    def add(self, data: bytes) -> None:
        """Append the next chunk."""
        room = KEPT_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * KEPT_BYTES:
            self._shorten()

    def text(self) -> str:
        """The captured output as text."""
        self._shorten()
        if not self.cut:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head.rstrip(chr(0xFFFD))}\n...[{self.cut} bytes cut]...\n{tail.lstrip(chr(0xFFFD))}"

    def last_line(self) -> str:
        """The last non-empty line so far, possibly partial."""
        recent = bytes((self.tail or self.head)[-1_000:]).decode("utf-8", "replace").rstrip()
        return recent.rpartition("\n")[2].rpartition("\r")[2]

    def _shorten(self) -> None:
        extra = len(self.tail) - KEPT_BYTES
        if extra > 0:
            self.cut += extra
            del self.tail[:extra]


@dataclass(frozen=True)
class Order:
    """What a launcher is to run, and how it is confined."""

    command: list[str]
    """The first is an absolute path."""
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    """The path of the working directory."""
    limits: dict[str, int | None] = field(default_factory=dict)
    """See `activities.sandbox.sandbox.Limits`."""
    disks: list[str] = field(default_factory=list)
    """Directories whose disks must keep free space."""
    bwrap: list[str] = field(default_factory=list)
    """Level 2: bubblewrap with its arguments."""
    landlock: dict[str, Any] = field(default_factory=dict)
    """Level 1: the arguments of `landlock.restrict`."""
    drop: dict[str, list[str]] = field(default_factory=dict)
    """For a root worker: the paths `owned` and `needed` by the unprivileged user, see `privileges.enter`."""
    trace: str = ""
    """The file to which the launcher adds the names that the command changes, see `activities.tracing.tracer`."""


async def run(order: Order, directory: int, on_line: Callable[[str], None]) -> Ended:
    """Run a command in an open directory. When cancelled, all its processes are dead before this returns."""
    control_out, control_in = os.pipe()
    work = asyncio.ensure_future(_run(order, control_out, directory, on_line))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        with suppress(BrokenPipeError):  # the launcher has exited already
            os.write(control_in, b"t")
        await asyncio.wait([work], timeout=GRACE_SECONDS + 2 * DRAIN_SECONDS)
        raise
    finally:
        os.close(control_in)
        work.add_done_callback(_looked_at)


def tried(order: Order, seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a command and wait, for at most this long. Raises OSError, TimeoutExpired. No process is left behind."""
    control, held = os.pipe()
    directory = os.open(order.cwd, os.O_RDONLY | os.O_DIRECTORY)
    written = _written(order, control, directory)
    try:
        return subprocess.run(
            _launcher(written),
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env=CONSTANT,
            pass_fds=(control, directory, written),
        )
    finally:
        for descriptor in (control, held, directory, written):
            os.close(descriptor)


def environment(base: Mapping[str, str], home: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: an allow-list, HOME in the workspace, and the variables the plan sets."""
    passed = {name: value for name, value in base.items() if name in _PASSED_ON or name.startswith("LC_")}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **passed, "HOME": home, "TERM": "dumb", **extra}


class _Launched(asyncio.SubprocessProtocol):
    """Captures a launcher's output until it has exited and all pipes are closed."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self.outputs = {1: Output(), 2: Output()}
        self.exited, self.silent = asyncio.Event(), asyncio.Event()
        self._on_line = on_line

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.outputs[fd].add(data)
        self._on_line(self.outputs[fd].last_line())

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.silent.set()


async def _run(order: Order, control: int, directory: int, on_line: Callable[[str], None]) -> Ended:
    launched = _Launched(on_line)
    transport = await _launch(launched, order, control, os.dup(directory))
    try:
        await launched.exited.wait()
        with suppress(TimeoutError):  # the launcher was killed and a process still holds a pipe
            await asyncio.wait_for(launched.silent.wait(), DRAIN_SECONDS)
    finally:
        transport.close()
    stdout, stderr = (launched.outputs[fd].text() for fd in (1, 2))
    return Ended(stdout, stderr, transport.get_returncode() or 0)


async def _launch(launched: _Launched, order: Order, control: int, directory: int) -> asyncio.SubprocessTransport:
    """Start the launcher, which takes over the descriptors; ours are closed in any case."""
    inherited = [control, directory]
    try:
        inherited.append(_written(order, control, directory))
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: launched,
            *_launcher(inherited[-1]),
            stdin=asyncio.subprocess.DEVNULL,
            env=CONSTANT,
            start_new_session=True,
            pass_fds=inherited,
        )
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    return transport


def _launcher(written: int) -> list[str]:
    return [_PYTHON, "-I", "-S", "-X", "utf8", _LAUNCHER, str(written)]


def _written(order: Order, control: int, directory: int) -> int:
    """A descriptor from which the launcher reads the order."""
    content = {**vars(order), "control": control, "directory": directory, "grace": GRACE_SECONDS}
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("plans")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with open(descriptor, "wb", closefd=False) as file:
        file.write(marshal.dumps(content))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _looked_at(work: asyncio.Future[Ended]) -> None:
    if not work.cancelled():
        work.exception()
