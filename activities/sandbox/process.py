"""Runs a command to completion and passes its output on: the worker's side of `activities.sandbox.launcher`.

No process of the command outlives the call: cancellation sends SIGTERM, kills the whole tree after a grace period and
waits for that; if the worker dies, the tree is killed at once. A `Sink` takes the output; while it has no room, nothing
is read and the command waits. It may also have the command killed.
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
from typing import Any, Literal, Protocol, cast
from weakref import WeakKeyDictionary

from plansurvive.activities.sandbox.confinement import CONSTANT

GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_COMMAND_BYTES = 128 * 1024 - 1
"""Maximum length of one process argument (Linux)."""

DRAIN_SECONDS = 2.0
"""Seconds to wait for end of file on the pipes after the launcher has exited."""

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_PYTHON = os.path.realpath(sys.executable)
"""Not the link in a virtual environment, which a command could replace if it lies in the workspace."""
_starting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""Starting a process blocks the event loop, on a busy machine for some 10 ms. A hundred commands that begin together
start one after the other, so that heartbeats come in between: for want of them the server would repeat the steps."""
_PASSED_ON = ("PATH", "LANG", "TZ", "TMPDIR")


class Sink(Protocol):
    """Takes the output of a command."""

    over: asyncio.Event
    """Set when the command is to be killed."""
    on_room: Callable[[], None]
    """Set by `run`; to be called when there is room again."""

    def add(self, number: Literal[1, 2], data: bytes) -> bool:
        """Take output of stdout (1) or stderr (2). False: nothing more is read until `on_room` is called."""


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
    given: str = ""
    """What a command that `run` runs reads from its standard input."""


async def run(order: Order, directory: int, sink: Sink) -> int:
    """Run a command in an open directory; returns its exit code. All its processes are dead before this returns,
    also when it is cancelled or killed by the sink."""
    control_out, control_in = os.pipe()
    work = asyncio.ensure_future(_run(order, control_out, directory, sink))
    over = asyncio.ensure_future(sink.over.wait())
    try:
        await asyncio.wait([work, over], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            _terminate(control_in)
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        _terminate(control_in)
        await asyncio.wait([work], timeout=GRACE_SECONDS + 2 * DRAIN_SECONDS)
        raise
    finally:
        over.cancel()
        os.close(control_in)
        work.add_done_callback(_looked_at)


class Running:
    """A command that runs on, with pipes to its standard input, output and error."""

    def __init__(self, process: asyncio.subprocess.Process, control: int) -> None:
        self._process, self._control = process, control

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Its standard input."""
        return cast(asyncio.StreamWriter, self._process.stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its standard output."""
        return cast(asyncio.StreamReader, self._process.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Its standard error."""
        return cast(asyncio.StreamReader, self._process.stderr)

    async def ended(self) -> int:
        """Wait until it and all its processes are dead; returns its exit code, see `supervisor`."""
        return await self._process.wait()

    async def end(self, patience: float = 0.0) -> None:
        """End it and all its processes; they have `patience` seconds after the end of their input to end themselves."""
        self.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), max(patience, 0.01))
        self.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), GRACE_SECONDS + 2 * DRAIN_SECONDS)

    def kill(self) -> None:
        """Have all its processes ended: SIGTERM, `GRACE_SECONDS`, SIGKILL. Does not wait."""
        if self._control >= 0:
            _terminate(self._control)
            os.close(self._control)
            self._control = -1


async def begin(order: Order, directory: int) -> Running:
    """Start a command that runs on in an open directory. Its processes die with the worker at the latest."""
    control_out, control_in = os.pipe()
    try:
        inherited = [control_out, os.dup(directory)]
        inherited.append(_written(order, *inherited))
        try:
            async with _starting.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                process = await asyncio.create_subprocess_exec(
                    *_launcher(inherited[-1]),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=CONSTANT,
                    start_new_session=True,
                    pass_fds=inherited,
                )
        finally:
            for descriptor in inherited:
                os.close(descriptor)
    except BaseException:
        os.close(control_in)
        raise
    return Running(process, control_in)


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
    """Passes a launcher's output on until it has exited and all pipes are closed."""

    def __init__(self, sink: Sink) -> None:
        self.exited, self.silent = asyncio.Event(), asyncio.Event()
        self.is_paused = False
        self._sink, self._transport = sink, asyncio.SubprocessTransport()
        sink.on_room = self._resume

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if not self._sink.add(1 if fd == 1 else 2, data) and not self.is_paused:
            self.is_paused = True
            for pipe in self._pipes():
                pipe.pause_reading()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.silent.set()

    async def drained(self) -> None:
        """Wait for the end of the output, but not for long: if the launcher was killed, a process may hold a pipe."""
        while not self.silent.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.silent.wait(), DRAIN_SECONDS)
            if not self.is_paused:
                return

    def _resume(self) -> None:
        if self.is_paused:
            self.is_paused = False
            for pipe in self._pipes():
                pipe.resume_reading()

    def _pipes(self) -> list[asyncio.ReadTransport]:
        pipes = (cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(fd)) for fd in (1, 2))
        return [pipe for pipe in pipes if pipe is not None and not pipe.is_closing()]


async def _run(order: Order, control: int, directory: int, sink: Sink) -> int:
    launched = _Launched(sink)
    transport = await _launch(launched, order, control, os.dup(directory))
    try:
        await launched.exited.wait()
        await launched.drained()
    finally:
        transport.close()
    return transport.get_returncode() or 0


async def _launch(launched: _Launched, order: Order, control: int, directory: int) -> asyncio.SubprocessTransport:
    """Start the launcher, which takes over the descriptors; ours are closed in any case."""
    inherited = [control, directory]
    try:
        inherited.append(_written(order, control, directory))
        inherited.append(given := _readable(order.given.encode()))
        loop = asyncio.get_running_loop()
        async with _starting.setdefault(loop, asyncio.Lock()):
            transport, _ = await loop.subprocess_exec(
                lambda: launched,
                *_launcher(inherited[2]),
                stdin=given,
                env=CONSTANT,
                start_new_session=True,
                pass_fds=inherited[:3],
            )
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    return transport


def _launcher(written: int) -> list[str]:
    return [_PYTHON, "-I", "-S", "-X", "utf8", _LAUNCHER, str(written)]


def _written(order: Order, control: int, directory: int) -> int:
    """A descriptor from which the launcher reads the order."""
    content = {**vars(order), "given": "", "control": control, "directory": directory, "grace": GRACE_SECONDS}
    return _readable(marshal.dumps(content))


def _readable(content: bytes) -> int:
    """A descriptor from which a process reads this content; without any, the null device."""
    if not content:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("plans")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _terminate(control: int) -> None:
    with suppress(BrokenPipeError):  # the launcher has exited already
        os.write(control, b"t")


def _looked_at(work: asyncio.Future[int]) -> None:
    if not work.cancelled():
        work.exception()
