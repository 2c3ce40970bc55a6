"""Tracebacks of Python in the texts of failures: what was raised comes first, and one line shows nothing else."""

from __future__ import annotations

import re

HEAD = "Traceback (most recent call last):"
_PLACE = re.compile(r'\s+File ".*", line \d+')
_RAISED = re.compile(r"[A-Za-z_][\w.]*(: .*)?")
LONGEST = 500
"""Characters of what was raised that are put first."""


def raised(text: str) -> str:
    """What the last traceback in a text says was raised, `ValueError: bad value`; empty if there is none."""
    rows = text.rstrip().splitlines()
    last = next((at for at in range(len(rows) - 1, -1, -1) if _PLACE.match(rows[at])), None)
    if last is None:
        return ""
    row = next((row for row in rows[last + 1 :] if row[:1].strip()), "")
    return row[:LONGEST] if _RAISED.fullmatch(row) else ""


def reason_first(text: str) -> str:
    """The text; with a traceback at its end, what that raised in front of it."""
    reason = raised(text)
    if not reason:
        return text
    return f"{reason}\n{text}" if HEAD in text else f"{reason}\n{HEAD}\n  ...\n{text}"


def folded(text: str) -> str:
    """The text without the traceback behind its first line."""
    first, _, rest = text.partition("\n")
    return first if first and HEAD in rest else text
