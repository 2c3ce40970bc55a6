"""The figures of a night, over all of its rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.checker.recovery import percentiles
from tests.chaos.night.rounds import Verdict


@dataclass
class Figures:
    """Sums over rounds, and all recovery times."""

    counted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    recovery: dict[str, list[float]] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Take in a round."""
        self.counted.update({name: verdict.said[name] for name in ("plans", "workflows", "steps", "kills")})
        self.found.update(verdict.said["counts"])
        self.faults.update(verdict.faults)
        for name, values in verdict.said["recovery"].items():
            self.recovery.setdefault(name, []).extend(values)
        self.seeds.append(verdict.seed)
        if not verdict.is_good:
            self.bad.append(verdict.seed)

    @property
    def is_good(self) -> bool:
        """Whether no round found anything."""
        return not self.bad

    def shown(self) -> Mapping[str, Any]:
        """All of it, as JSON data."""
        recovered = {name: percentiles(values) for name, values in self.recovery.items()}
        return {
            "rounds": len(self.seeds),
            **self.counted,
            **self.found,
            "faults": dict(self.faults.most_common()),
            "recovery seconds": recovered,
            "seeds": self.seeds,
            "seeds that found something": self.bad,
        }
