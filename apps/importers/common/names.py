"""Ids for imported steps: what the document calls them, as far as a plan allows it, each once where it counts."""

from __future__ import annotations

import re
from collections.abc import Iterable

RESERVED = frozenset(("inputs", "item", "index", "key", "round", "error", "status", "value", "matrix"))
"""Names that mean something else inside a construct."""
MAX_CHARACTERS = 60


class Names:
    """The ids given so far in one list of steps."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.casefold() for name in (*RESERVED, *taken)}

    def new(self, wanted: str, otherwise: str = "step") -> str:
        """An id like the wanted name, with a number behind it if it is taken."""
        base = id_of(wanted, otherwise)
        name, number = base, 2
        while name.casefold() in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name.casefold())
        return name


def id_of(wanted: str, otherwise: str = "step") -> str:
    """The letters, digits, `_` and `-` of a name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted)[:MAX_CHARACTERS].strip("-")
    return plain or otherwise
