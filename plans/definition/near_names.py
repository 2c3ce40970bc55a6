"""Finds the name that a misspelt one, or one of other programs, probably means, with bounded work.

Comparing two names takes time proportional to the product of their lengths, and a hostile plan can misspell 200,000 of
them: so all hints of one check share an allowance, and the mistakes after it are reported without a hint. The
allowance is a count and not a time, since a check inside a workflow must give the same texts when it is replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

MAX_NAMES = 1_000
"""Among more names than this nothing is searched."""
MAX_CHARACTERS = 128
"""Longer names get no hint; ids are not longer."""
ALLOWANCE = 1_000_000
"""Pairs of characters compared in one check: 50 mistakes among 200 names of 10 letters, in at most a quarter second."""
MIN_COST = 10_000
"""What each hint costs at least: there are at most 100 per check."""
SIMILAR = 0.65
"""From this ratio on, a name may be a misspelt other one."""


def folded(name: str) -> str:
    """A name without what joins its parts, `-`, `_` or a capital."""
    return name.replace("-", "").replace("_", "").lower()


def _by_folded(table: Mapping[str, str]) -> dict[str, str]:
    return {folded(name) or name: text for name, text in table.items()} | dict(table)


def _found(name: str, table: Mapping[str, str]) -> str:
    return table.get(name) or table.get(folded(name), "")


class Foreign:
    """What other programs call by names that mean nothing here. Each table is beside what it is about.

    Whether parts of a name are joined by `-`, `_` or a capital is the same.
    """

    def __init__(self, names: Mapping[str, str], answers: Mapping[str, str] | None = None) -> None:
        """`names`: by such a name what is meant, of several the first that is known counts; it may be a path.

        `answers`: what to write instead where there is no other name for it.
        """
        self.names, self.answers = _by_folded(names), _by_folded(answers or {})

    def meant(self, name: str, known: Collection[str]) -> str:
        """What is meant; empty if that is nothing that is known."""
        return next((each for each in _found(name, self.names).split() if each.partition(".")[0] in known), "")

    def answer(self, name: str) -> str:
        """What to write instead; empty if there is no answer."""
        return _found(name, self.answers)


NONE = Foreign({})


class Hints:
    """The hints of one check. Share one between all mistakes of a plan."""

    def __init__(self, allowance: int = ALLOWANCE) -> None:
        self._left = allowance

    def near(self, name: str, known: Collection[str], foreign: Foreign = NONE) -> str:
        """The known name that other programs call so, else the one that is most similar.

        Empty if there is none, or the allowance is used up.
        """
        if meant := foreign.meant(name, known):
            return meant
        if self._left <= 0 or len(known) > MAX_NAMES or len(name) > MAX_CHARACTERS:
            return ""
        candidates = [other for other in sorted(known) if len(other) <= MAX_CHARACTERS]
        self._left -= max(len(name) * sum(map(len, candidates)), MIN_COST)
        return next(iter(get_close_matches(name, candidates, 1, SIMILAR)), "") if self._left >= 0 else ""

    def question(self, name: str, known: Collection[str], foreign: Foreign = NONE) -> str:
        """`; did you mean 'x'?`, or what to write instead of the name of another program, or nothing."""
        near, answer = self.near(name, known, foreign), foreign.answer(name)
        if near:
            return f"; did you mean '{near}'?"
        return f"; {answer}" if answer else ""
