"""What a feature says to the upkeep of the state directory: what may go there, and what only a person removes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from plansurvive.runtime.settings import Settings

DAY = 86_400.0


class Unused(NamedTuple):
    """Files that a feature keeps in the state directory and that may go, in any order, once nobody has used them."""

    files: Callable[[Settings], Iterable[Path]]
    age: Callable[[Settings], float]
    """Seconds since the last use, after which they go."""
    are_records: bool = False
    """They are counted among the records; else among the results of earlier runs."""


class Records(NamedTuple):
    """Files among the records of plans (`runs/ID`) that only a person removes; and who is asked before records go."""

    pattern: str
    removing: Callable[[Settings, Path, Sequence[Path]], None]
    """Called with the folder of a plan, and its files that are about to be removed. Raises OSError."""


class Leftover(NamedTuple):
    """Something that steps of a plan have left, and that goes as a whole once the server has that plan no more."""

    plan: str
    """Its id, or that of the run that it was resumed from first."""
    used: float
    """When it was last used, in seconds since 1970."""
    remove: Callable[[], None]


class Leftovers(NamedTuple):
    """What a feature has of these."""

    name: str
    """What they are called: `worktrees`."""
    found: Callable[[Settings], Iterable[Leftover]]
