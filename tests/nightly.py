"""Parameters of which a sample runs by default, and all of them in the nightly run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def only_nightly(*values: Any) -> Any:
    """These values, one test, left to the nightly run."""
    return pytest.param(*values, marks=pytest.mark.slow)


def only_sampled(*values: Any) -> Any:
    """These values, one test, left to .ci/run and the nightly run."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.sampled])


def sampled(values: Iterable[Any], count: int, in_ci: int = 0) -> list[Any]:
    """All values; as many as `count`, evenly spread, run by default, and as many as `in_ci` more in .ci/run."""
    every = list(values)
    chosen = {index * len(every) // count for index in range(count)}
    more = {index * len(every) // in_ci for index in range(in_ci)} - chosen

    def marked(index: int, value: Any) -> Any:
        values = value if isinstance(value, tuple) else (value,)
        return only_sampled(*values) if index in more else only_nightly(*values)

    return [value if index in chosen else marked(index, value) for index, value in enumerate(every)]
