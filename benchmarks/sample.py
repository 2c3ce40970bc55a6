"""One measured run, and medians over several runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Sample:
    """Measurements of one run of some graphs; memory and history in bytes, CPU in seconds."""

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
    """Median of a figure over several runs."""
    return median(of(sample) for sample in samples)


def ratio(ours: Sequence[Sample], theirs: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """Our median as a multiple of theirs."""
    return middle(ours, of) / max(middle(theirs, of), 1e-9)
