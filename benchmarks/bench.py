"""Parameters shared by all measurements: repetitions, size, test stand, progress output."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stand import KINDS, Kind, Stand


@dataclass(frozen=True)
class Bench:
    """The settings of one run of the benchmarks."""

    repeats: int
    quick: bool
    say: Callable[[str], None]

    @asynccontextmanager
    async def stand(self, *, durable: bool = False, kinds: Sequence[Kind] = KINDS) -> AsyncIterator[Stand]:
        """A new test stand, removed afterwards."""
        with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
            async with Stand(Path(folder), durable=durable, kinds=kinds) as stand:
                yield stand
