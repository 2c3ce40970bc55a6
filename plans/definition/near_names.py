"""Finds the name that a misspelt one probably means, with bounded work.

Comparing two names takes time proportional to the product of their lengths, and a hostile plan can misspell 200,000 of
them: so all hints of one check share an allowance, and the mistakes after it are reported without a hint. The
allowance is a count and not a time, since a check inside a workflow must give the same texts when it is replayed.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

MAX_NAMES = 1_000
"""Among more names than this nothing is searched."""
MAX_CHARACTERS = 128
"""Longer names get no hint; ids are not longer."""
ALLOWANCE = 1_000_000
"""Pairs of characters compared in one check: 50 mistakes among 200 names of 10 letters, in at most a quarter second."""
ELSEWHERE = {
    "needs": "dependsOn", "requires": "dependsOn", "after": "dependsOn", "if": "when", "uses": "tool", "with": "args",
    "params": "args", "retries": "retry", "cmd": "command", "script": "code", "filename": "path", "file": "path",
}  # fmt: skip
"""Names that other programs have for fields of plans and arguments of tools."""
_COMMAND = "a command is `tool: run_command` with `args: {command: ...}`"
ANSWERS = {
    "jobs": "this looks like a GitHub Actions workflow, of which `plan import FILE` makes a plan",
    "on": "nothing in a plan starts it; `plan schedule create` runs it at set times",
    "schedule": "`plan schedule create FILE --cron ...` runs a plan at set times",
    "cron": "`plan schedule create FILE --cron ...` runs a plan at set times",
    "run": _COMMAND, "shell": _COMMAND, "command": _COMMAND, "cmd": _COMMAND, "script": _COMMAND,
    "as": "the name of an item is part of the loop: `forEach: {items: LIST, as: NAME}`",
    "env": "the environment of a command is in its step: `args: {command: ..., env: {NAME: VALUE}}`",
    "name": "a plan has a `title`, a step an `id` and a `description`",
}  # fmt: skip
"""Fields of other programs that no field of plans and steps stands for, and what to write instead."""
MIN_COST = 10_000
"""What each hint costs at least: there are at most 100 per check."""


def named_elsewhere(name: str, known: Collection[str]) -> str:
    """The known field or argument that another program calls by this name; empty if there is none."""
    meant = ELSEWHERE.get(name, "")
    return meant if meant in known else ""


class Hints:
    """The hints of one check. Share one between all mistakes of a plan."""

    def __init__(self, allowance: int = ALLOWANCE) -> None:
        self._left = allowance

    def near(self, name: str, known: Collection[str]) -> str:
        """The known name that is most similar; empty if none is, or the allowance is used up."""
        if self._left <= 0 or len(known) > MAX_NAMES or len(name) > MAX_CHARACTERS:
            return ""
        candidates = [other for other in sorted(known) if len(other) <= MAX_CHARACTERS]
        self._left -= max(len(name) * sum(map(len, candidates)), MIN_COST)
        return next(iter(get_close_matches(name, candidates, 1)), "") if self._left >= 0 else ""

    def question(self, name: str, known: Collection[str]) -> str:
        """`; did you mean 'x'?`, or nothing."""
        near = self.near(name, known)
        return f"; did you mean '{near}'?" if near else ""
