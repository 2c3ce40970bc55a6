"""Unified diffs of two texts in the format of `diff -u`, truncated for messages and answers.

Only LF ends a line (`str.splitlines` splits at other characters too); a last line without one is marked. `difflib`
takes quadratic to cubic time (256 KB that differ in every second line: a minute), so its search has a budget: of what
it has not compared by then only beginning and end are compared, the rest is shown as replaced. Such a diff is still
right, just longer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

from plansurvive.plans.text.lists import number_of

COMPARISONS = 3_000_000
"""Pairs of equal lines, or of characters, that a search for similarities looks at: some tenths of a second."""
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
    lines = diff_lines(_lines(before), _lines(after), context, skipped)
    whole = [line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines]
    whole = [f"--- a/{path}\n", f"+++ b/{path}\n", *whole] if whole else []
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


def diff_lines(before: Sequence[str], after: Sequence[str], context: int = 3, skipped: int = 0) -> Iterator[str]:
    """The hunks of a unified diff, line by line, as `difflib.unified_diff` has them after the names."""
    matcher = BoundedMatcher(before, after)
    for group in matcher.get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2], skipped)} +{_range(first[3], last[4], skipped)} @@\n"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[start:end])
                continue
            yield from (f"-{line}" for line in before[start:end])
            yield from (f"+{line}" for line in after[new_start:new_end])


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """A matcher that only finds common beginnings and ends once it has looked at so many pairs."""

    a: Sequence[str]
    b: Sequence[str]
    b2j: dict[str, list[int]]

    def __init__(self, before: Sequence[str], after: Sequence[str], comparisons: int = COMPARISONS) -> None:
        super().__init__(None, before, after)
        self.left = comparisons
        pairs = (1 + len(self.b2j.get(item, ())) for item in before)
        self._pairs = [0, *accumulate(pairs)]

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        """As in `difflib`; a common beginning or end of the two ranges when the pairs are used up."""
        ahi, bhi = len(self.a) if ahi is None else ahi, len(self.b) if bhi is None else bhi
        self.left -= self._pairs[ahi] - self._pairs[alo]
        if self.left >= 0:
            return super().find_longest_match(alo, ahi, blo, bhi)
        size = _common(zip(self.a[alo:ahi], self.b[blo:bhi], strict=False))
        if size:
            return difflib.Match(alo, blo, size)
        size = _common(zip(reversed(self.a[alo:ahi]), reversed(self.b[blo:bhi]), strict=False))
        return difflib.Match(ahi - size, bhi - size, size)


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _range(start: int, end: int, skipped: int) -> str:
    """Lines as the header of a hunk names them; an empty range is named by the line before."""
    length = end - start
    first = start + skipped + (length > 0)
    return str(first) if length == 1 else f"{first},{length}"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _bounded(lines: list[str], bounds: Bounds) -> Iterator[str]:
    room = bounds.characters
    for number, line in enumerate(lines):
        cut = line
        if bounds.line_characters is not None and len(line) > bounds.line_characters + 1:
            cut = f"{line[: bounds.line_characters]}...\n"
        if number == bounds.lines or (room is not None and len(cut) > room):
            yield f"... {number_of(len(lines) - number, 'more line')}\n"
            return
        if room is not None:
            room -= len(cut)
        yield cut
