"""One measured run, and medians over several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Sample:
    """What one run of some graphs took."""

    steps: int
    seconds: float
    worker_cpu: float
    server_cpu: float
    peak_memory: int
    events: int
    longest_run: int
    history_bytes: int
    runs: int


def middle(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """The median of something over several runs."""
    return median(of(sample) for sample in samples)


def ratio(ours: Sequence[Sample], theirs: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """Our median as a multiple of theirs."""
    return middle(ours, of) / max(middle(theirs, of), 1e-9)
