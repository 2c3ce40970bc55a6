"""What is said when a file is not as the run last saw it: the path, what happened to it, and what to do."""

from __future__ import annotations

import difflib
from itertools import islice

from activities.workspace.paths import shown
from activities.workspace.workspace import Place
from plans.errors import ToolError
from plans.file_stamps import Stamp

DIFF_LINES = 60
DIFF_CHARACTERS = 4_000
_DIFFED_BYTES = 256 * 1024
_LINE_CHARACTERS = 300
AGAIN = "Nothing was written; read_file again and decide anew"


def conflict(place: Place, seen: Stamp, before: bytes | None, now: bytes | None) -> ToolError:
    """The error for a file that differs from what was read; `before` and `now` are the contents, where at hand."""
    name = shown(place.path)
    if place.status is None:
        what = f"{name} was deleted since it was read"
    elif not place.is_regular:
        kind = "directory" if place.is_directory else "pipe, device, socket or link"
        what = f"{name} was replaced since it was read: it is a {kind} now"
    elif place.linked and not seen.linked:
        what = f"{name} was replaced since it was read: it is a link now"
    elif seen.state == "stale" and before is not None and before == now:
        what = f"{name} was reported as changed and counts as modified since last read"
    else:
        what = f"{name} was modified since last read{_difference(place.path, seen, before, now)}"
    return ToolError("CONFLICT", f"{what}\n{AGAIN}" if "\n" in what else f"{what}. {AGAIN}")


def meanwhile(place: Place) -> ToolError:
    """The error for a file that somebody saved at the moment of our change."""
    return ToolError(
        "CONFLICT",
        f"{shown(place.path)} was modified since last read: somebody saved it at this moment. {AGAIN}",
    )


def diff(path: str, before: bytes, now: bytes) -> str | None:
    """The change as a unified diff of bounded length; None when it cannot be shown as text."""
    if max(len(before), len(now)) > _DIFFED_BYTES or b"\0" in before + now:
        return None
    try:
        old, new = before.decode().splitlines(), now.decode().splitlines()
    except UnicodeDecodeError:
        return None
    lines = list(islice(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="", n=2), DIFF_LINES + 1))
    shortened = [line[:_LINE_CHARACTERS] for line in lines[:DIFF_LINES]]
    text = "\n".join(shortened + (["...[more]"] if len(lines) > DIFF_LINES else []))
    return text if len(text) <= DIFF_CHARACTERS else text[:DIFF_CHARACTERS] + "\n...[more]"


def _difference(path: str, seen: Stamp, before: bytes | None, now: bytes | None) -> str:
    text = diff(path, before, now) if before is not None and now is not None else None
    if text:
        return f":\n{text}"
    if before is not None and now is not None and text == "":
        return " (only its line ends differ)"
    size = "" if now is None else f", {len(now)} now"
    return f" ({seen.size} bytes then{size})"
