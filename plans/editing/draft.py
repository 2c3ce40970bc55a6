"""A plan being edited, as the data of a plan file: its steps, those inside blocks, and instances that have begun."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.editing.inner_edits import Data, is_inner, place_in, place_of, require_open
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.flow.ids import inner_id, template_of
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.step_state import SKIPPED, Status


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
    removed: set[str] = field(default_factory=set)
    """Steps removed from blocks that have begun."""

    @classmethod
    def of(cls, run: Run, recovering: str | None) -> Draft:
        """The present plan of the run."""
        plan = run.plan
        head = plan.model_dump(mode="json", exclude={"steps"}, exclude_none=True)
        return cls(run, head, {}, [step.id for step in plan.steps], recovering)

    def step(self, name: str) -> dict[str, Any]:
        """The step's data, which the caller may modify. Raises Refused if the step cannot be edited."""
        self.require(name)
        if is_inner(self.run, name):
            return self.block(name)
        return self._top(name) if name in self.order else self._nested(name)

    def require(self, name: str) -> None:
        """Raise Refused if the step cannot be edited."""
        if name in self.removed:
            raise unknown_step(name, self.run, template_of)
        if is_inner(self.run, name):
            require_open(self.run, name)
            self._require_not_begun(name)
        elif name not in self.order:
            self._nested(name)
        else:
            self._require_not_begun(name)

    def block(self, name: str) -> dict[str, Any]:
        """The data of a step that has begun, or of one inside it."""
        if not is_inner(self.run, name):
            return self._top(name)
        if name not in self.inner:
            step = self.run.outline.step(name)
            self.inner[name] = data_of(step.model_copy(update={"args": self.run.args_of(step)}))
        return self.inner[name]

    def place_inside(self, anchor: str) -> tuple[list[Data], int] | None:
        """The list with a step inside a block, which the caller may modify, and its index; None for the plan's own.

        Raises Refused.
        """
        if anchor in self.removed:
            raise unknown_step(anchor, self.run, template_of)
        if is_inner(self.run, anchor):
            node = self.run.outline.nodes[anchor]
            if node.parent is None or not node.needs_siblings:
                text = f"'{anchor}' is not among the steps of a block; edit the steps inside it, or skip it"
                raise Refused(text, "NOT_A_BLOCK")
            require_open(self.run, anchor)
            found = place_in(self.block(node.parent), self.run.outline.inner_name(anchor))
        else:
            top, *path = anchor.split(".")
            if anchor in self.order or not path:
                return None
            self._nested(anchor)
            if top in self.run.steps and has_begun(self.run, top):
                text = f"'{top}' has started: steps are added and removed in its single items, such as '{top}[KEY]'"
                raise Refused(text, "TOO_LATE")
            found = place_of(self._top(top), path)
        if found is None:
            raise unknown_step(anchor, self.run, template_of)
        return found

    def sibling(self, anchor: str, name: str) -> str:
        """The id of a step beside another one inside a block."""
        parent = self.run.outline.nodes[anchor].parent if is_inner(self.run, anchor) else anchor.rpartition(".")[0]
        return inner_id(parent or "", name)

    def _top(self, name: str) -> dict[str, Any]:
        if name not in self.steps:
            step = next(step for step in self.run.plan.steps if step.id == name)
            self.steps[name] = data_of(step.model_copy(update={"args": self.run.args_of(step)}))
        return self.steps[name]

    def _nested(self, name: str) -> dict[str, Any]:
        """A step inside a block as the plan has it: an edit holds for whatever has not got to it."""
        top, *path = name.split(".")
        found = place_of(self._top(top), path) if top in self.order and path else None
        if found is None:
            raise unknown_step(name, self.run, template_of)
        status = self.run.steps[top].status if top in self.run.steps else None
        if status is not None and has_begun(self.run, top) and status is not Status.RUNNING:
            raise Refused(f"step '{top}' is {status}: only steps that have not started can be edited", "TOO_LATE")
        rows, index = found
        return rows[index]

    def _require_not_begun(self, name: str) -> None:
        if name != self.recovering and name in self.run.steps and has_begun(self.run, name):
            status = self.run.steps[name].status
            raise Refused(f"step '{name}' is {status}: only steps that have not started can be edited", "TOO_LATE")

    def place(self, after: str | None) -> int:
        """The index after the step `after`; 0 if that is None. Raises Refused for an unknown step."""
        if after is None:
            return 0
        if after not in self.order:
            raise unknown_step(after, self.run, template_of)
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
