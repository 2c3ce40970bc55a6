"""A plan being edited, as the data of a plan file: its steps, those inside blocks, and instances that have begun."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plans.definition.parsing import read_plan
from plans.editing.inner_edits import is_inner, list_of, row_of
from plans.errors import InvalidPlan, Refused
from plans.flow.ids import inner_id
from plans.model import Plan, Step
from plans.run import Run
from plans.step_state import SKIPPED, Status


def has_begun(run: Run, step_id: str) -> bool:
    """Whether the step has been started, or skipped by the run; a skip by a reviewer does not count."""
    state = run.steps[step_id]
    if state.status is Status.SKIPPED:
        return state.result is None or state.result.code != SKIPPED
    return state.status not in (Status.PENDING, Status.BLOCKED, Status.READY) or state.failure is not None


@dataclass
class Draft:
    """A plan being edited, as the data of a plan file."""

    run: Run
    head: dict[str, Any]
    steps: dict[str, dict[str, Any]]
    order: list[str]
    recovering: str | None
    skipped: dict[str, str] = field(default_factory=dict)
    unskipped: dict[str, None] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    inner: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, recovering: str | None) -> Draft:
        """The present plan of the run."""
        plan = run.plan
        head = plan.model_dump(mode="json", exclude={"steps"}, exclude_none=True)
        return cls(run, head, {}, [step.id for step in plan.steps], recovering)

    def step(self, name: str) -> dict[str, Any]:
        """The step's data, which the caller may modify. Raises Refused if the step cannot be edited."""
        if is_inner(self.run, name):
            self._require_not_begun(name)
            return self.block(name)
        if name not in self.order:
            return self._nested(name)
        if name in self.run.steps:
            self._require_not_begun(name)
        return self._top(name)

    def block(self, name: str) -> dict[str, Any]:
        """The data of a step that has begun, or of one inside it."""
        if not is_inner(self.run, name):
            return self._top(name)
        if name not in self.inner:
            step = self.run.outline.step(name)
            self.inner[name] = data_of(step.model_copy(update={"args": self.run.args_of(step)}))
        return self.inner[name]

    def beside(self, name: str, anchor: str) -> list[dict[str, Any]] | None:
        """The list with a step inside a block, which the caller may modify; None for the plan's own steps.

        `anchor`: the step that an edit names. Raises Refused.
        """
        if is_inner(self.run, anchor):
            owner = self.run.outline.nodes[anchor].parent or ""
            self.changed.add(inner_id(owner, name))
            return list_of(self.block(owner), self.run, owner)
        owner, _, local = anchor.rpartition(".")
        if anchor in self.order or not owner:
            return None
        self._require_not_begun(owner.split(".")[0])
        self._nested(anchor)
        rows = list_of(self._nested(owner), self.run, owner)
        if all(row.get("id") != local for row in rows):
            raise Refused(f"'{anchor}' is not among the steps of '{owner}'; replace the whole block", "UNKNOWN_STEP")
        self.changed.add(inner_id(owner, name))
        return rows

    def _top(self, name: str) -> dict[str, Any]:
        if name not in self.steps:
            step = next(step for step in self.run.plan.steps if step.id == name)
            self.steps[name] = data_of(step.model_copy(update={"args": self.run.args_of(step)}))
        return self.steps[name]

    def _nested(self, name: str) -> dict[str, Any]:
        """A step inside a block as the plan has it: an edit holds for whatever has not got to it."""
        top, *path = name.split(".")
        row = row_of(self._top(top), path) if top in self.order else None
        if row is None:
            raise Refused(f"the plan has no step '{name}'; `plan show` lists its steps", "UNKNOWN_STEP")
        status = self.run.steps[top].status if top in self.run.steps else None
        if status is not None and has_begun(self.run, top) and status is not Status.RUNNING:
            raise Refused(f"step '{top}' is {status}: only steps that have not begun can be edited", "TOO_LATE")
        return row

    def _require_not_begun(self, name: str) -> None:
        if name != self.recovering and name in self.run.steps and has_begun(self.run, name):
            status = self.run.steps[name].status
            raise Refused(f"step '{name}' is {status}: only steps that have not begun can be edited", "TOO_LATE")

    def place(self, after: str | None) -> int:
        """The index after the step `after`; 0 if that is None. Raises Refused for an unknown step."""
        if after is None:
            return 0
        if after not in self.order:
            raise Refused(f"the plan has no step '{after}'; `plan show` lists its steps", "UNKNOWN_STEP")
        return self.order.index(after) + 1

    def plan(self, version: int) -> Plan:
        """The edited plan. Raises InvalidPlan if it does not parse."""
        own = {step.id: step for step in self.run.plan.steps}
        rows = [self.steps.get(name) or data_of(own[name]) for name in self.order]
        if not rows:
            raise Refused("a plan needs at least one step; cancel the plan instead", "PLAN_EMPTY")
        parsed = read_plan({**self.head, "steps": rows, "version": version})
        if isinstance(parsed, list):
            raise InvalidPlan(parsed)
        return parsed


def data_of(step: Step) -> dict[str, Any]:
    """A step as the data of a plan file."""
    data = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return {"args": {}, **data}
