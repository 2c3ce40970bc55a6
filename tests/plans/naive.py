"""A naive model of a run, written from the meaning of the statuses alone: it looks through everything, every time.

pending: the plan has not begun. blocked: a dependency is not done, or never will be. ready: may start, waits for a
free slot or an approval. running. completed, failed, skipped.
Dependents of a step that was skipped by a reviewer or by a condition run as if it had completed, unless they
reference its value; dependents of a denied, failed or blocked step are blocked. A critical failure stops the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class NaiveStep:
    """One step: what it needs (true: its value), whether it is critical, and what is recorded of it."""

    needs: dict[str, bool]
    critical: bool
    recorded: str = ""  # running, asking, completed, failed, skipped, denied


@dataclass
class NaiveRun:
    """What happened so far; everything else is worked out anew for each question."""

    steps: dict[str, NaiveStep]
    paused: bool = False
    stopped: bool = False
    ended: bool = False
    shut: set[str] = field(default_factory=set)

    def status(self, name: str) -> str:
        """The status of a step."""
        step = self.steps[name]
        if step.recorded == "denied":
            return "skipped"
        if step.recorded == "asking":
            return "ready"
        if step.recorded:
            return step.recorded
        free = (
            not self.ended and not self.stopped and all(self.opens(other, uses) for other, uses in step.needs.items())
        )
        return "ready" if free else "blocked"

    def opens(self, name: str, uses_value: bool) -> bool:
        """Whether a step lets one that needs it start."""
        recorded = self.steps[name].recorded
        return recorded == "completed" or (recorded == "skipped" and not uses_value)

    def is_hopeless(self, name: str) -> bool:
        """Whether a step can never start: something it needs has ended badly, or never will start itself."""
        for other, uses in self.steps[name].needs.items():
            recorded = self.steps[other].recorded
            if recorded in ("failed", "denied") or (recorded == "skipped" and uses):
                return True
            if not recorded and self.is_hopeless(other):
                return True
        return False

    def ready(self) -> set[str]:
        """The steps that may start at once."""
        return {name for name in self.steps if self.status(name) == "ready" and self.steps[name].recorded != "asking"}

    def recorded(self, what: str) -> list[str]:
        """The steps of which this is recorded."""
        return [name for name, step in self.steps.items() if step.recorded == what]

    def stop(self) -> None:
        """Nothing more starts, and nobody is asked any more."""
        self.stopped = True
        for name in self.recorded("asking"):
            self.steps[name].recorded = ""

    def settle(self, name: str, recorded: str) -> None:
        """A step ended."""
        self.steps[name].recorded = recorded
        if recorded == "failed" and self.steps[name].critical:
            self.stop()

    def plan_status(self, cancelled: bool) -> str:
        """The status of the plan at its end."""
        if cancelled:
            return "cancelled"
        if any(step.critical for step in self.steps.values() if step.recorded == "failed"):
            return "failed"
        whole = all(step.recorded in ("completed", "skipped") for step in self.steps.values())
        return "completed" if whole else "partial"
