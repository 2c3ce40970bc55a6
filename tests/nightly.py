"""Parameters of which a sample runs by default, and all of them in the nightly run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def only_nightly(*values: Any) -> Any:
    """These values, one test, left to the nightly run."""
    return pytest.param(*values, marks=pytest.mark.slow)


def sampled(values: Iterable[Any], count: int) -> list[Any]:
    """All values; as many as `count`, evenly spread, run by default."""
    found = list(values)
    chosen = {index * len(found) // count for index in range(count)}
    return [value if index in chosen else only_nightly(*_each(value)) for index, value in enumerate(found)]


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)
