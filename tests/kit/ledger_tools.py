"""Tools for tests, loaded as a user's own would be (PLANS_TOOLS): they write down when they start and when they end."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path
from typing import Any

from temporalio import activity

from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.plans.errors import ToolError


@tool(effect="keyed")
async def work(
    name: str, context: ToolContext, seconds: float = 0.0, until: str = "", value: Any = None, fails: int = 0
) -> Any:
    """Write `start NAME ATTEMPT` into the ledger, wait, write `end NAME ATTEMPT`.

    Args:
        name: What to write.
        seconds: How long to wait.
        until: A file that is waited for as well.
        value: What to give back; the name, if nothing is given.
        fails: So many calls fail before one succeeds.

    Returns:
        The value.
    """
    attempt = activity.info().attempt
    _write(context, f"start {name} {attempt}")
    await asyncio.sleep(seconds)
    while until and not Path(context.workspace.root, until).exists():
        await asyncio.sleep(0.02)
    if _count(context, name) <= fails:
        raise ToolError("BUSY", f"call {_count(context, name)} of {name} fails", retryable=True)
    _write(context, f"end {name} {attempt}")
    return name if value is None else value


@tool(effect="pure")
async def look(name: str, context: ToolContext, seconds: float = 0.0, size: int = 0, fails: int = 0) -> str:
    """Write `look NAME BEGAN ENDED` into the ledger, in seconds since 1970, once it is done: for tests, not an effect.

    Args:
        name: What to write.
        seconds: How long to wait.
        size: Length of the value; that of the name, if it is zero.
        fails: So many calls fail before one succeeds.

    Returns:
        The name, repeated.
    """
    began = time.time()
    await asyncio.sleep(seconds)
    _write(context, f"look {name} {began} {time.time()}")
    if _count(context, name, "look") <= fails:
        raise ToolError("BUSY", f"call of {name} fails", retryable=True)
    return (name * (size // len(name) + 1))[: size or len(name)]


@tool(effect="keyed")
def append(text: str, context: ToolContext) -> None:
    """Write a line into the ledger without looking whether it is there already.

    Args:
        text: The line.

    Returns:
        Nothing.
    """
    context.fault("before_effect")
    _write(context, text)


@tool(effect="keyed")
def enter(name: str, context: ToolContext) -> str:
    """Write `NAME KEY` into the ledger, unless this very call has written it before.

    Args:
        name: What to write.

    Returns:
        The name.
    """
    path = Path(context.workspace.root, "ledger.txt")
    with path.open("a+") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.seek(0)
        key = context.call.key
        if all(line.split()[1:] != [key] for line in ledger):
            ledger.write(f"{name} {key}\n")
    return name


@tool(effect="keyed")
async def stamp(name: str, context: ToolContext, seconds: float = 0.0, busy: float = 0.0, until: str = "") -> str:
    """Write `TIME NAME` into the ledger, the time in seconds, wait, and write `TIME -NAME`.

    Args:
        name: What to write.
        seconds: How long to wait.
        busy: The first call fails, and asks to be left alone for so many seconds.
        until: A file that is waited for as well.

    Returns:
        The name.
    """
    _write(context, f"{time.time()} {name}")
    if busy and activity.info().attempt == 1:
        raise ToolError("BUSY", "too many requests", retryable=True, retry_after=busy)
    await asyncio.sleep(seconds)
    while until and not Path(context.workspace.root, until).exists():
        await asyncio.sleep(0.02)
    _write(context, f"{time.time()} -{name}")
    return name


@tool(effect="keyed", approval="always")
def sign(text: str, context: ToolContext, path: str = "") -> str:
    """Write `signed TEXT` into the ledger, once a person has approved it.

    Args:
        text: What to sign.
        path: Calls with different paths are made at the same time.

    Returns:
        The line.
    """
    _write(context, f"signed {text}")
    return f"signed {text}"


@tool(effect="keyed")
async def report(percents: list[float], until: str, context: ToolContext) -> str:
    """Report each percentage in turn, a new one as soon as the file `until` has as many bytes.

    Args:
        percents: What to report.
        until: The file.

    Returns:
        The last line of progress.
    """
    file = Path(context.workspace.root, until)
    for number, percent in enumerate(percents):
        while (file.stat().st_size if file.exists() else 0) < number:
            await asyncio.sleep(0.02)
        context.progress(f"part {number + 1} of {len(percents)}", percent=percent)
    while file.stat().st_size < len(percents):
        await asyncio.sleep(0.02)
    return context.line


@tool(effect="pure")
async def refuse(code: str) -> None:
    """Fail in a way that no further attempt can mend.

    Args:
        code: The error's code.

    Returns:
        Nothing, ever.
    """
    raise ToolError(code, f"refused with {code}")


def _write(context: ToolContext, line: str) -> None:
    file = os.open(Path(context.workspace.root) / "ledger.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def _count(context: ToolContext, name: str, what: str = "start") -> int:
    lines = (Path(context.workspace.root) / "ledger.txt").read_text().splitlines()
    return sum(line.split()[:2] == [what, name] for line in lines)
