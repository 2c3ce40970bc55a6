"""The command line as its users meet it: what a command prints, and how it ends.

`plan` calls it in this process: a command as a process of its own spends a second on imports alone. `plan_process` and
`running` start one, for what only a process shows: signals, terminals, its directory, how the interpreter ends.
"""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, TypeVar

from plansurvive.client.cli.app import run
from tests.kit.host import has_crashed

CEILING = 600.0
"""Seconds that a command may take on a machine that is busy."""

T = TypeVar("T")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as data."""
        return json.loads(self.out)


async def plan(environ: Mapping[str, str], *arguments: str, stdin: str = "") -> Ended:
    """Run a command to its end in this process, in a thread with an event loop of its own."""
    assert arguments[0] not in ("up", "worker", "codec"), "it takes signals, or the whole process: use `plan_process`"
    streams = _Streams(io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
    with _separate_streams():
        try:
            code = await asyncio.wait_for(_in_a_thread(lambda: _run(environ, arguments, streams)), CEILING)
        except TimeoutError:
            raise AssertionError(f"plan {arguments!r} took longer than {CEILING:g} s") from None
    return Ended(code, streams.out.getvalue(), streams.err.getvalue())


async def plan_process(environ: Mapping[str, str], *arguments: str, cwd: Path | None = None) -> Ended:
    """Run `plan` as a process of its own to its end."""
    async with running(environ, *arguments, cwd=cwd) as process, asyncio.timeout(CEILING):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def running(
    environ: Mapping[str, str], *arguments: str, cwd: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`plan` as a process while it runs; it is killed if it still does at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "plansurvive", *arguments, env=dict(environ), cwd=cwd,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()
        assert not has_crashed(process.returncode), process.returncode


async def line_with(process: asyncio.subprocess.Process, text: str) -> str:
    """The first line of output that holds the text."""
    assert process.stdout
    async with asyncio.timeout(CEILING):
        seen = []
        while row := (await process.stdout.readline()).decode():
            seen.append(row)
            if text in row:
                return row
        told = await process.stderr.read() if process.stderr else b""
    raise AssertionError(f"no line with {text!r} in {seen}; it said: {told.decode()}")


async def told_to_stop(process: asyncio.subprocess.Process, number: signal.Signals) -> str:
    """Send the signal, wait for the end; what the command said on its way out."""
    process.send_signal(number)
    async with asyncio.timeout(CEILING):
        _, told = await process.communicate()
    return told.decode()


def written(path: Path, plan: Mapping[str, Any]) -> str:
    """A plan as a file; returns its name."""
    path.write_text(json.dumps(plan))
    return str(path)


@dataclass(frozen=True)
class _Streams:
    """The standard streams of one command; none of them is a terminal."""

    stdin: TextIO
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)


_STREAMS: ContextVar[_Streams] = ContextVar("standard streams of the command")
_running = 0
_own: tuple[Any, Any, Any] = (None, None, None)


class _OfItsCommand:
    """Stands for a standard stream: that of the command that uses it, or the process's own."""

    def __init__(self, name: str, own: Any) -> None:
        self._name, self._own = name, own

    def __getattr__(self, attribute: str) -> Any:
        streams = _STREAMS.get(None)
        return getattr(getattr(streams, self._name) if streams else self._own, attribute)


@contextmanager
def _separate_streams() -> Iterator[None]:
    """Within it what a command prints goes to its own streams, also when several run side by side."""
    global _running, _own
    if not _running:
        _own = sys.stdin, sys.stdout, sys.stderr
        ours: list[Any] = [_OfItsCommand(*each) for each in zip(("stdin", "out", "err"), _own, strict=True)]
        sys.stdin, sys.stdout, sys.stderr = ours
    _running += 1
    try:
        yield
    finally:
        _running -= 1
        if not _running:
            sys.stdin, sys.stdout, sys.stderr = _own


def _run(environ: Mapping[str, str], arguments: tuple[str, ...], streams: _Streams) -> int:
    _STREAMS.set(streams)  # seen by this thread and by what it starts
    return run(list(arguments), environ)


def _in_a_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """As `asyncio.to_thread`, in a thread that nothing waits for: a command that hangs fails its test and no other."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run_it() -> None:
        try:
            found = work()
        except BaseException as error:
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, found, None)

    threading.Thread(target=run_it, name="command", daemon=True).start()
    return done
