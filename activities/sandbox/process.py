"""Runs a command to completion and captures its output: the worker's side of `activities.sandbox.launcher`.

No process of the command outlives the call: cancellation sends SIGTERM, kills the whole tree after a grace period and
waits for that; if the worker dies, the tree is killed at once. The first and the last 128 KiB of each stream are kept,
with a line `...[N bytes cut]...` between them, so memory is bounded; invalid UTF-8 is replaced.
`activities.sandbox.sandbox` decides what the command may do; `rules` pass that on to the launcher.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KEPT_BYTES = 128 * 1024
"""Bytes kept of the start, and of the end, of each stream."""
GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_COMMAND_BYTES = 128 * 1024 - 1
"""Maximum length of one process argument (Linux)."""

DRAIN_SECONDS = 2.0
"""Seconds to wait for end of file on the pipes after the launcher has exited."""

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
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


async def run(
    command: Sequence[str],
    directory: int,
    env: Mapping[str, str],
    on_line: Callable[[str], None],
    rules: Mapping[str, Any] | None = None,
) -> Ended:
    """Run `command` in an open directory. When cancelled, all its processes are dead before this returns.

    `rules` is the RULES argument of `activities.sandbox.launcher`.
    """
    control_out, control_in = os.pipe()
    work = asyncio.ensure_future(_run([json.dumps(rules or {}), *command], control_out, directory, env, on_line))
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


async def _run(
    command: Sequence[str], control: int, directory: int, env: Mapping[str, str], on_line: Callable[[str], None]
) -> Ended:
    launched = _Launched(on_line)
    transport = await _launch(launched, command, control, os.dup(directory), env)
    try:
        await launched.exited.wait()
        with suppress(TimeoutError):  # the launcher was killed and a process still holds a pipe
            await asyncio.wait_for(launched.silent.wait(), DRAIN_SECONDS)
    finally:
        transport.close()
    stdout, stderr = (launched.outputs[fd].text() for fd in (1, 2))
    return Ended(stdout, stderr, transport.get_returncode() or 0)


async def _launch(
    launched: _Launched, command: Sequence[str], control: int, directory: int, env: Mapping[str, str]
) -> asyncio.SubprocessTransport:
    """Start the launcher, which takes over the descriptors; ours are closed in any case."""
    launcher = [sys.executable, "-I", "-S", _LAUNCHER, str(control), str(directory), str(GRACE_SECONDS)]
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: launched,
            *launcher,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            env=env,
            start_new_session=True,
            pass_fds=(control, directory),
        )
    finally:
        os.close(control)
        os.close(directory)
    return transport


def _looked_at(work: asyncio.Future[Ended]) -> None:
    if not work.cancelled():
        work.exception()
