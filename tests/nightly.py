"""Parameters of which a sample runs by default, and all of them in the nightly run.

What .ci/run adds to the sample is another part of them every day: TURN, which it prints and SAMPLE_TURN repeats. So it
is with the tests of a file that are marked in_turn: every TURNSth of them runs each day.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

TURN = int(os.environ.setdefault("SAMPLE_TURN", str(datetime.now(UTC).toordinal())))
"""The number of the day; in the environment, so that all processes of a run have the same."""

TURNS = 2


def on_turn(ids: Iterable[str], turn: int = TURN) -> Iterator[str]:
    """Of the tests of each file, by their ids, those whose turn it is, whatever else runs. Files with a single one take
    turns as well.
    """
    files: dict[str, list[str]] = {}
    for test in ids:
        files.setdefault(test.partition("::")[0], []).append(test)
    for file, found in files.items():
        yield from found[(turn + zlib.crc32(file.encode())) % TURNS :: TURNS]


def only_nightly(*values: Any) -> Any:
    """These values, one test, left to the nightly run."""
    return pytest.param(*values, marks=pytest.mark.slow)


def only_sampled(*values: Any) -> Any:
    """These values, one test, left to .ci/run and the nightly run."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.sampled])


def sampled(values: Iterable[Any], count: int, in_ci: int = 0, turn: int = TURN) -> list[Any]:
    """All values; as many as `count`, evenly spread, run by default, and as many as `in_ci` more in .ci/run: others at
    each turn, until every value has had its turn.
    """
    every = list(values)
    chosen = {index * len(every) // count for index in range(count)}
    shift = turn % -(-len(every) // in_ci) if in_ci else 0
    more = {(index * len(every) // in_ci + shift) % len(every) for index in range(in_ci)} - chosen

    def marked(index: int, value: Any) -> Any:
        values = value if isinstance(value, tuple) else (value,)
        return only_sampled(*values) if index in more else only_nightly(*values)

    return [value if index in chosen else marked(index, value) for index, value in enumerate(every)]
