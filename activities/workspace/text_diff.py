"""Unified diffs of two texts in the format of `diff -u`, truncated for messages and answers.

Only LF ends a line (`str.splitlines` splits at other characters too); a last line without one is marked.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@$", re.MULTILINE)
_NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True)
class Bounds:
    """Limits on a diff's length; its last line counts the omitted lines. None: no limit."""

    lines: int | None = None
    characters: int | None = None
    line_characters: int | None = None
    compared_bytes: int | None = None
    """Longer contents are not compared at all."""


def unified_diff(
    path: str, before: str, after: str, bounds: Bounds | None = None, *, context: int = 3, skipped: int = 0
) -> str:
    """Diff of two texts; empty if they are equal. `skipped` lines before both texts are added to the line numbers."""
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}", n=context)
    whole = [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines]
    if skipped:
        whole = [_HUNK.sub(lambda at: _moved(at, skipped), line) for line in whole]
    return "".join(_bounded(whole, bounds) if bounds else whole)


def content_diff(
    path: str, before: bytes | None, after: bytes | None, bounds: Bounds, *, context: int = 3
) -> str | None:
    """Diff of two contents; None if one is unknown (None), too long or not UTF-8 text."""
    if before is None or after is None or b"\0" in before + after:
        return None
    if bounds.compared_bytes is not None and max(len(before), len(after)) > bounds.compared_bytes:
        return None
    try:
        return unified_diff(path, before.decode(), after.decode(), bounds, context=context)
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _moved(at: re.Match[str], skipped: int) -> str:
    return f"@@ -{int(at[1]) + skipped}{at[2]} +{int(at[3]) + skipped}{at[4]} @@"


def _bounded(lines: list[str], bounds: Bounds) -> Iterator[str]:
    room = bounds.characters
    for number, line in enumerate(lines):
        cut = line
        if bounds.line_characters is not None and len(line) > bounds.line_characters + 1:
            cut = f"{line[: bounds.line_characters]}...\n"
        if number == bounds.lines or (room is not None and len(cut) > room):
            yield f"... {len(lines) - number} more line{'s' * (len(lines) - number != 1)}\n"
            return
        if room is not None:
            room -= len(cut)
        yield cut
