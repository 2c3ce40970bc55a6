"""A tool for plans over real files: joins files into one, and writes down that it was called."""

from __future__ import annotations

from pathlib import Path

from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.activities.workspace.contents import read_bytes, stamp_at

CALLS = "calls-of-join"
"""The file beside the workspace that lists the targets of the calls."""


@tool(effect="keyed", reads="reported", outside=False, version="1")
def join(files: list[str], target: str, context: ToolContext) -> dict[str, int]:
    """Join files into one.

    Args:
        files: The files.
        target: Where to.
    """
    root, parts = Path(context.workspace.root), []
    for path in files:
        with context.reading(path) as place:
            parts.append(read_bytes(place))
            context.read(path, stamp_at(place))
    with (root.parent / CALLS).open("a") as calls:
        calls.write(f"{target}\n")
    (root / target).parent.mkdir(parents=True, exist_ok=True)
    (root / target).write_bytes(b"".join(parts)[-200:])
    context.wrote(target)
    return {"length": len(b"".join(parts))}
