"""How long a plan takes at least, from the times of its steps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from plansurvive.features.forecast.model import ForeseenStep


def needed(
    steps: Sequence[ForeseenStep], after: Mapping[str, Sequence[str]], within: Mapping[str, str], limit: int
) -> tuple[float | None, int]:
    """Seconds that a plan takes at least with so many steps at once, and for how many steps no time is known.

    `steps`: each behind what it waits for and what it is in. `after`, `within`: ids of these. A step that runs a plan
    and whose time is known counts with that, and nothing in it does.
    """
    spans = _Spans(steps, after, within)
    known = [spans.own[step.step_id] for step in spans.counted if step.seconds is not None]
    untimed = sum(
        step.seconds is None and not spans.inside[step.step_id]
        for step in spans.counted
        if step.tool and step.outlook in ("run", "depends")
    )
    longest = max((spans.end(step.step_id) for step in spans.counted), default=0.0)
    return (max(longest, math.fsum(known) / limit) if known or not untimed else None), untimed


class _Spans:
    """When each step begins and ends, in seconds from the plan's start."""

    def __init__(
        self, steps: Sequence[ForeseenStep], after: Mapping[str, Sequence[str]], within: Mapping[str, str]
    ) -> None:
        self.own = {step.step_id: step.seconds or 0.0 for step in steps}
        self.inside = defaultdict[str, list[str]](list)
        self.counted: list[ForeseenStep] = []
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        whole = set[str]()  # steps that are timed with all that is in them, and all of that
        for step in steps:
            name, place = step.step_id, within.get(step.step_id, "")
            if place in whole:
                whole.add(name)
                continue
            if step.tool and step.seconds is not None:
                whole.add(name)
            self.counted.append(step)
            if place:
                self.inside[place].append(name)
            began = max((self.end(each) for each in after.get(name, ()) if each in self._began), default=0.0)
            self._began[name] = max(began, self._began.get(place, 0.0))

    def end(self, name: str) -> float:
        """When a step has ended, and all in it. Asked for once all of that is known."""
        if name not in self._ended:
            inside = (self.end(each) for each in self.inside[name])
            self._ended[name] = max([self._began[name] + self.own[name], *inside])
        return self._ended[name]
