"""Tools of the plans of a night, loaded as a user's own would be (PLANS_TOOLS)."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Any

from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.plans.errors import ToolError


@tool(effect="keyed")
async def enter(
    path: str, line: str, context: ToolContext, seconds: float = 0.0, number: int = 0, after: float = 0.0
) -> dict[str, Any]:
    """Add a line to a ledger, unless this very call has done so before: its key stands beside the line.

    Args:
        path: The ledger.
        line: The line.
        seconds: How long to wait before.
        number: A number to give back.
        after: How long to wait afterwards.

    Returns:
        {line, number}, the line as `did LINE`.
    """
    await asyncio.sleep(seconds)
    await asyncio.to_thread(_enter, Path(context.workspace.root, path), line, context.call.key)
    await asyncio.sleep(after)
    return {"line": f"did {line}", "number": number}


def _enter(path: Path, line: str, key: str) -> None:
    """One write for both, the line and its key, as a service with idempotency keys has one transaction."""
    with path.open("r+") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        if any(each.rstrip("\n").endswith(f"\t{key}") for each in ledger):
            return
        size = path.stat().st_size
        try:
            _append(path, f"{line}\t{key}")
        except OSError as error:
            os.truncate(path, size)
            raise ToolError("NO_SPACE", str(error), retryable=True) from error


@tool(effect="keyed")
async def append(path: str, line: str, context: ToolContext, after: float = 0.0) -> None:
    """Add a line to a file without looking whether it is there, then wait: what `enter` protects from.

    Args:
        path: The file.
        line: The line.
        after: How long to wait afterwards.

    Returns:
        Nothing.
    """
    _append(Path(context.workspace.root, path), line)
    await asyncio.sleep(after)


@tool(effect="keyed")
async def scribble(path: str, text: str, context: ToolContext) -> None:
    """Write a file in place, and ignore errors: what `write_file` protects from.

    Args:
        path: The file.
        text: What to write.

    Returns:
        Nothing.
    """
    try:
        Path(context.workspace.root, path).write_text(text)
    except OSError:
        return


@tool(effect="pure")
def blob(name: str, size: int) -> str:
    """A text too large for a history, always the same for a name.

    Args:
        name: What it is made from.
        size: Number of characters.

    Returns:
        The text.
    """
    return text_of(name, size)


@tool(effect="pure")
async def refuse(code: str) -> None:
    """Fail in a way that no further attempt can repair.

    Args:
        code: Code of the error.

    Returns:
        Nothing, ever.
    """
    raise ToolError(code, f"refused with {code}")


def text_of(name: str, size: int) -> str:
    """What `blob` returns."""
    word = hashlib.sha256(name.encode()).hexdigest() + "\n"
    return (word * (size // len(word) + 1))[:size]


def _append(path: Path, line: str) -> None:
    data = f"{line}\n".encode()
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        if os.write(file, data) != len(data):
            raise OSError("not the whole line could be written")
        os.fsync(file)
    finally:
        os.close(file)
