"""CONFLICT errors: the path, how the file differs from its stamp (a diff where possible), and what to do."""

from __future__ import annotations

from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.text_diff import Bounds, content_diff
from plansurvive.activities.workspace.workspace import DirectoryEntry
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp

BOUNDS = Bounds(lines=60, characters=4_000, line_characters=300, compared_bytes=256 * 1024)
AGAIN = "Nothing was written; call read_file again, then retry"
GONE = "Nothing was written; if it is needed, call read_file to confirm that it is gone, then create it with write_file"


def conflict(place: DirectoryEntry, seen: Stamp, before: bytes | None, now: bytes | None) -> ToolError:
    """The error for a file that differs from its stamp; `before` and `now` are the contents, None if unavailable."""
    name = shown(place.path)
    if place.status is None:
        return deleted(place, by_the_run=seen.state == "deleted")
    if not place.is_regular:
        kind = "directory" if place.is_directory else "pipe, device, socket or link"
        what = f"{name} was replaced since it was read: it is now a {kind}"
    elif place.linked and not seen.linked:
        what = f"{name} was replaced since it was read: it is now a link"
    elif seen.state == "stale" and before is not None and before == now:
        what = f"{name} was reported as changed, so it counts as modified since last read"
    else:
        what = f"{name} was modified since last read{_difference(place.path, seen, before, now)}"
    return ToolError("CONFLICT", f"{what}\n{AGAIN}" if "\n" in what else f"{what}. {AGAIN}")


def deleted(place: DirectoryEntry, *, by_the_run: bool) -> ToolError:
    """The error for a file that was there when the run last saw it. `by_the_run`: a step of its own has deleted it."""
    name, who = shown(place.path), ", by a step of this run" if by_the_run else ""
    todo = "Nothing was written; if it is needed, create it with write_file" if by_the_run else GONE
    return ToolError("CONFLICT", f"{name} was deleted since it was read{who}. {todo}")


def meanwhile(place: DirectoryEntry, *, gone: bool = False) -> ToolError:
    """The error for a file that another program saved, or deleted (`gone`), while the tool was changing it."""
    if gone:
        return deleted(place, by_the_run=False)
    return ToolError(
        "CONFLICT",
        f"{shown(place.path)} was modified since last read: another program saved it during this change. {AGAIN}",
    )


def _difference(path: str, seen: Stamp, before: bytes | None, now: bytes | None) -> str:
    if before is not None and now is not None and before.splitlines() == now.splitlines():
        return " (only the line endings differ)"
    text = content_diff(path, before, now, BOUNDS, context=2)
    if text:
        return f":\n{text.rstrip()}"
    size = "" if now is None else f", now {len(now)}"
    return f" (it had {seen.size} bytes{size})"
