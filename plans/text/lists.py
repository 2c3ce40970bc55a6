"""Lists of names in sentences, and how many there are of something."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def some(names: Sequence[str], most: int, show: Callable[[str], str] = str) -> str:
    """The first of these names, each as `show` has it, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def number_of(number: int, what: str) -> str:
    """A number of things: `1 step`, `2 steps`, `1,200 steps`; `what` is one of them."""
    return f"{number:,} {what}{'s' * (number != 1)}"
