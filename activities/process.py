"""Run a command to its end and take in its output: the worker's side of `activities.launch`.

Nothing of the command outlives the call: cancelling it asks the command to end, kills the whole tree after a short
grace and waits for that; the death of the worker kills it at once. Of each output the first and the last 128 KiB
are kept, with a line `...[N bytes cut]...` between, so memory stays constant; bytes that are not UTF-8 are
replaced. A sandbox would wrap `command` here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KEPT_BYTES = 128 * 1024
"""Kept of the beginning and of the end of each output."""
GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
MAX_COMMAND_BYTES = 128 * 1024 - 1
"""One argument of a process, at most (Linux)."""

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_DRAIN_SECONDS = 2.0
_PASSED_ON = ("PATH", "LANG", "TZ", "TMPDIR")


@dataclass(frozen=True)
class Ended:
    """What a command left."""

    stdout: str
    stderr: str
    exit_code: int


@dataclass
class Output:
    """The beginning and the end of a stream of bytes."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    cut: int = 0

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        room = KEPT_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * KEPT_BYTES:
            self._shorten()

    def text(self) -> str:
        """What was kept, as text."""
        self._shorten()
        if not self.cut:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head.rstrip(chr(0xFFFD))}\n...[{self.cut} bytes cut]...\n{tail.lstrip(chr(0xFFFD))}"

    def last_line(self) -> str:
        """The last line that is not empty, as far as it has come."""
        recent = bytes((self.tail or self.head)[-1_000:]).decode("utf-8", "replace").rstrip()
        return recent.rpartition("\n")[2].rpartition("\r")[2]

    def _shorten(self) -> None:
        extra = len(self.tail) - KEPT_BYTES
        if extra > 0:
            self.cut += extra
            del self.tail[:extra]


async def run(command: Sequence[str], directory: int, env: Mapping[str, str], on_line: Callable[[str], None]) -> Ended:
    """Run `command` in an open directory. When cancelled, all of it is dead before this returns."""
    control_out, control_in = os.pipe()
    work = asyncio.ensure_future(_run(command, control_out, directory, env, on_line))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        os.write(control_in, b"t")
        await asyncio.wait([work], timeout=GRACE_SECONDS + 2 * _DRAIN_SECONDS)
        raise
    finally:
        os.close(control_in)
        work.add_done_callback(_looked_at)


def environment(base: Mapping[str, str], home: str, extra: Mapping[str, str]) -> dict[str, str]:
    """What a command finds in its environment: an allow list, its home in the workspace, and what the plan gives it."""
    passed = {name: value for name, value in base.items() if name in _PASSED_ON or name.startswith("LC_")}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **passed, "HOME": home, "TERM": "dumb", **extra}


async def _run(
    command: Sequence[str], control: int, directory: int, env: Mapping[str, str], on_line: Callable[[str], None]
) -> Ended:
    directory = os.dup(directory)  # ours until the launcher has it, whoever stops waiting for us
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", _LAUNCHER, str(control), str(directory), str(GRACE_SECONDS), *command,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=env, start_new_session=True, pass_fds=(control, directory),
        )  # fmt: skip
    finally:
        os.close(control)
        os.close(directory)
    stdout, stderr = Output(), Output()
    readers = [
        asyncio.create_task(_take_in(stream, output, on_line))
        for stream, output in ((process.stdout, stdout), (process.stderr, stderr))
        if stream is not None
    ]
    code = await process.wait()
    _, open_still = await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    for reader in open_still:  # somebody killed the launcher and holds the pipe
        reader.cancel()
    return Ended(stdout.text(), stderr.text(), code)


async def _take_in(stream: asyncio.StreamReader, output: Output, on_line: Callable[[str], None]) -> None:
    while data := await stream.read(65_536):
        output.add(data)
        on_line(output.last_line())


def _looked_at(work: asyncio.Future[Ended]) -> None:
    if not work.cancelled():
        work.exception()
