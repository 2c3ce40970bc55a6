"""The Run of a batch: the child plan that runs some items of a loop with `mode: plans`.

Its plan is the loop, over its own items, and before it one step for each value from outside that the items may use:
done already, with the status and the value that the parent's step has. Large values go along as references.

Outer values are steps that are done, so references mean the same. Rejected: rewriting references to inputs. A rerun
keeps whole batches only: finding items again across batches would need the runs of all earlier children.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.features.children import child_run
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.execution import accounts, resume
from plansurvive.plans.execution.schedule import left_out
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.flow.batch_part import Batch
from plansurvive.plans.flow.batches.split import window_of
from plansurvive.plans.flow.outline import Node, when_of_item
from plansurvive.plans.flow.progress import tolerated
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.large_value import Composed
from plansurvive.plans.model import DEFAULT_PARALLEL, ForEach, Step
from plansurvive.plans.model.plan import OfPlan, plan_names
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.step_state import Change, Result, Status, StepState


def batch_run(parent: Run, step: Step, earlier: Any, name: str, now: datetime, rules: RuleSet) -> Run:
    """The Run of a batch, with the id `name`; it resumes `earlier`, if that has the same items and values.

    Raises InvalidPlan, and Refused (NESTED_TOO_DEEP).
    """
    new = _begun(parent, step, name, now)
    try:
        before = Run.model_validate(earlier) if earlier is not None else None
    except ValidationError:
        before = None  # written by another version of this program
    if before is None or before.batch != new.batch or _given(before) != _given(new):
        return new
    found = resume.continued(accounts.caught_up(before, rules, now), name, now)
    loop = new.batch.step_id if new.batch else ""
    if loop not in found.opened:  # it runs again, as its author has it now
        found.plan = new.plan.model_copy(update={"task_id": found.plan.task_id})
    found.options, found.parent, found.unsigned, found.value = new.options, new.parent, new.unsigned, None
    return found


def _begun(parent: Run, step: Step, name: str, now: datetime) -> Run:
    loop = parent.outline.loop_of(step.id)
    if loop is None:
        raise LookupError(step.id)
    own = _loop_step(parent, loop)
    roots = (root for root in dependencies(own) if root not in (INPUTS, own.id))
    known = {root: found for root in roots if (found := _found(parent, loop, root, now)) is not None}
    limit = parent.options.max_parallel or parent.plan.max_parallel or DEFAULT_PARALLEL
    window = window_of(loop.step.for_each or ForEach(items=[]), limit)
    data = {
        "title": f"{loop.id}, {step.description}",
        **parent.plan.model_dump(mode="json", include={*plan_names(OfPlan.BATCH)}, exclude_unset=True),
        "maxParallel": window.steps,
        "steps": [*(_stub(root) for root in known), own.model_dump(mode="json", exclude_unset=True)],
    }
    inputs = {key: value for key, value in parent.inputs.items() if value is not None}
    run = child_run.child_run(parent, step, data, inputs, name)
    for state, _ in known.values():
        state.changes = [Change(run.next_seq(), now, state.status)]
    run.steps |= {root: state for root, (state, _) in known.items()}
    node = parent.outline.nodes[step.id]
    items, keys = (node.bindings or {}).get("", ([], []))
    composed = {root: found for root, (_, found) in known.items() if found is not None}
    first = int(step.id[len(loop.id) + 1 :].split("..")[0])
    run.batch = Batch(step_id=own.id, items=items, keys=keys, first=first, composed=composed)
    return run


def _loop_step(parent: Run, loop: Node) -> Step:
    """The loop as it stands in the child plan."""
    rule, opened = loop.step.for_each or ForEach(items=[]), parent.opened[loop.id]
    limit = parent.options.max_parallel or parent.plan.max_parallel or DEFAULT_PARALLEL
    # Without `maxParallel`, the steps that the child plan may run at the same time limit its items.
    most = None if rule.max_parallel is None else window_of(rule, limit).items
    inner = rule.model_copy(
        update={
            "items": [], "mode": "steps", "batch": None, "max_parallel": most,
            "tolerate": tolerated(rule, len(opened.items or [])),
        }
    )  # fmt: skip
    changed = {
        "id": re.sub(r"[^A-Za-z0-9_-]+", "-", parent.outline.inner_name(loop.id)).strip("-") or "items",
        "for_each": inner, "when": when_of_item(loop.step), "depends_on": [], "critical": False,
    }  # fmt: skip
    return loop.step.model_copy(update=changed)


def _found(parent: Run, loop: Node, root: str, now: datetime) -> tuple[StepState, Composed | None] | None:
    """The state of a value from outside, and what it holds of large ones; None if the name means nothing there."""
    found = parent.outline.find(loop.id, root)
    if found is None:
        return None
    if found.step_id is None:
        return left_out("", Result(ok=True, value=found.value, timestamp=now)), None
    state = parent.steps.get(found.step_id)
    if state is None or state.status not in (Status.COMPLETED, Status.SKIPPED):
        text = state.reason if state is not None else "it has not run"
        return left_out(text), None
    result = state.result
    if result is None or not result.composed:
        return left_out(state.reason, result), None
    composed = Composer(parent.outline, parent.opened, parent.steps).composed(found.step_id)
    if composed.parts:
        return left_out("", result), composed
    plain = result.model_copy(update={"composed": False, "value": composed.value})
    return left_out("", plain), None


def _stub(root: str) -> dict[str, Any]:
    """The step that stands for a value from outside. It is done; run again, it waits for an event."""
    return {
        "id": root,
        "description": "a value of the plan above",
        "tool": "wait_for",
        "args": {"event": f"value.{root}"},
    }


def _given(run: Run) -> Mapping[str, Any]:
    """The values from outside, and the inputs."""
    names = [step.id for step in run.plan.steps if run.batch is not None and step.id != run.batch.step_id]
    results = [run.steps[name].result for name in names if name in run.steps]
    values = [(each.value, each.large) if each is not None else None for each in results]
    return {"names": names, "values": values, "inputs": run.options.inputs}
