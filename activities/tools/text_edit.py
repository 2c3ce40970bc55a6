"""Replaces the only occurrence of a passage in a text, or fails with an error that shows where to look. Pure text.

Line endings are preserved: in a file that uses CRLF throughout, LF in the passages is converted to CRLF first.
"""

from __future__ import annotations

import difflib
import heapq
from dataclasses import dataclass

from plansurvive.activities.workspace.paths import shown
from plansurvive.activities.workspace.text_diff import COMPARISONS, BoundedMatcher, unified_diff
from plansurvive.plans.errors import ToolError

NEAREST = 3
"""Number of similar lines shown when a passage does not occur."""
_SEARCHED_LINES = 20_000
_LINE_CHARACTERS = 200
_CANDIDATES = 50
"""Lines of the most similar characters that are compared in earnest."""
_SIMILAR = 0.5
_CONTEXT = 3


@dataclass(frozen=True)
class Edit:
    """A passage of a text and its replacement; `start` is its offset in characters."""

    path: str
    text: str
    start: int
    old: str
    new: str

    @property
    def result(self) -> str:
        """The text with the passage replaced."""
        return self.text[: self.start] + self.new + self.text[self.start + len(self.old) :]

    def diff(self) -> str:
        """The change as a unified diff. Compares only the lines around the passage, however long the text is."""
        first, after = _window(self.text, self.start, self.start + len(self.old))
        before = self.text[first:after]
        changed = self.text[first : self.start] + self.new + self.text[self.start + len(self.old) : after]
        return unified_diff(self.path, before, changed, context=_CONTEXT, skipped=self.text.count("\n", 0, first))


def find_edit(path: str, text: str, old: str, new: str) -> Edit:
    """The edit that replaces `old` by `new`. Raises EDIT_NO_MATCH, EDIT_NOT_UNIQUE or EDIT_NO_CHANGE."""
    if old == new:
        raise ToolError("EDIT_NO_CHANGE", f"oldText and newText for {shown(path)} are the same; nothing would change")
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        old, new = _with_crlf(old), _with_crlf(new)
    starts = _all(text, old)
    if not starts:
        raise ToolError("EDIT_NO_MATCH", f"{shown(path)} does not contain oldText; {_nearest(text, old)}")
    if len(starts) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:10])
        raise ToolError(
            "EDIT_NOT_UNIQUE",
            f"oldText occurs in {shown(path)} more than once, at lines {lines}{', ...' if len(starts) > 10 else ''};"
            " include more of the surrounding text",
        )
    return Edit(path, text, starts[0], old, new)


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _all(text: str, passage: str) -> list[int]:
    """Offsets of all occurrences of the passage, including overlapping ones; at most 100."""
    starts: list[int] = []
    start = text.find(passage)
    while start >= 0 and len(starts) < 100:
        starts.append(start)
        start = text.find(passage, start + 1)
    return starts


def _nearest(text: str, old: str) -> str:
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")[:_LINE_CHARACTERS]
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()[:_SEARCHED_LINES], 1):
        lines.setdefault(line.strip()[:_LINE_CHARACTERS], number)
    near = _similar(wanted, list(lines)) if wanted else []
    if not near:
        return "no line resembles its first line; use read_file to see the content"
    return "the nearest lines are " + ", ".join(f"{lines[line]}: {line!r}" for line in near)


def _similar(wanted: str, lines: list[str]) -> list[str]:
    """The NEAREST most similar lines, as `difflib.get_close_matches` has them, but with bounded work."""
    quick = difflib.SequenceMatcher(None, "", wanted)
    candidates: list[tuple[float, str]] = []
    for line in lines:
        quick.set_seq1(line)
        if quick.real_quick_ratio() >= _SIMILAR and (ratio := quick.quick_ratio()) >= _SIMILAR:
            candidates.append((ratio, line))
    found, left = [], COMPARISONS
    for _, line in heapq.nlargest(_CANDIDATES, candidates):
        matcher = BoundedMatcher(line, wanted, left)
        found.append((matcher.ratio(), line))
        left = max(matcher.left, 0)
    return [line for ratio, line in heapq.nlargest(NEAREST, found) if ratio >= _SIMILAR]


def _window(text: str, start: int, end: int) -> tuple[int, int]:
    """The range of characters with the passage's lines and _CONTEXT lines around them."""
    for _ in range(_CONTEXT + 1):
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1
        following = text.find("\n", end)
        end = len(text) if following < 0 else following + 1
    return start, end
