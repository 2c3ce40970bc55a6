"""What a feature keeps in the state directory until nobody has used it for long, for the upkeep of that directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from plansurvive.runtime.settings import Settings

DAY = 86_400.0


class Unused(NamedTuple):
    """Files that a feature keeps in the state directory and that may go, in any order, once nobody has used them."""

    files: Callable[[Settings], Iterable[Path]]
    age: Callable[[Settings], float]
    """Seconds since the last use, after which they go."""
