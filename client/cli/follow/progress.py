"""A plan's view kept up to date by its events, so that a big plan need not be sent whole for every change.

Events tell everything but what people are asked for and what is blocked for good: `apply` says when the view itself is
needed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from client.runs import Event

ENDED = ("completed", "failed", "skipped")


class Progress:
    """One view, changed in place."""

    def __init__(self, view: dict[str, Any]) -> None:
        self.view = view
        self._steps = {step["id"]: step for step in view["steps"]}

    def apply(self, events: Iterable[Event]) -> bool:
        """Take in what happened. False when somebody is asked for something now, which only the view tells."""
        known = True
        for event in events:
            self.view["seq"] = event.seq
            if event.logs and not event.step_id:
                self.view["status"] = event.status
            elif not event.logs and event.step_id in self._steps:
                known = self._move(self._steps[event.step_id], event) and known
        return known

    def _move(self, step: dict[str, Any], event: Event) -> bool:
        before, counts = step["status"], self.view["counts"]
        counts[before] -= 1
        counts[event.status] = counts.get(event.status, 0) + 1
        step["status"] = event.status
        if step.pop("awaiting", None):
            self.view["pending"] = [item for item in self.view["pending"] if item["stepId"] != step["id"]]
        if event.status == "running":
            step["startedAt"] = event.time
            self.view["startedAt"] = self.view["startedAt"] or event.time
        if event.status in ENDED:
            step |= {"endedAt": event.time, "result": event.result or {}}
        return event.status != "ready" or before not in ("ready", "running")
