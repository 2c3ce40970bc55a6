"""The command line as its users meet it: a process of its own, what it prints, how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CEILING = 180.0
"""Seconds that a command may take on a machine that is busy."""


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


async def plan(environ: Mapping[str, str], *arguments: str, stdin: str = "", cwd: Path | None = None) -> Ended:
    """Run `plan` with these arguments to its end."""
    async with running(environ, *arguments, cwd=cwd) as process, asyncio.timeout(CEILING):
        out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def running(
    environ: Mapping[str, str], *arguments: str, cwd: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`plan` while it runs; it is killed if it still does at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "client", *arguments, env=dict(environ), cwd=cwd,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()


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
