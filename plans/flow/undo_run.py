"""The run that undoes an ended plan: a Run of the same plan whose steps are over, and whose undos begin (DESIGN 2.8).

It is a plan of its own, `PLAN-undo`: approvals, retries, views and records are those of any plan. What was undone
before, by the plan's rollback or by an earlier run of this kind, is not undone again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from plans.errors import Refused
from plans.execution.resume import LEFT_OUT
from plans.execution.schedule import left_out, reset_to_draft
from plans.flow.closing import to_undo
from plans.flow.closing_state import Closing
from plans.flow.closing_steps import UNDO, closing_step, undo_ids
from plans.flow.undone import undone_steps
from plans.log import LogKind
from plans.model import Step, Value
from plans.run import PlanStatus, Result, Run, Status, StepState
from plans.step_call import upcoming

SUFFIX = "-undo"


class UndoCall(Value):
    """A call that undoes a step, or is part of that."""

    step_id: str = Field(description="The step that is undone.")
    undo_id: str = Field(description="Names the call in `plan approve`.")
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)


def undo_id(plan_id: str) -> str:
    """The id of the plan that undoes a plan."""
    return plan_id + SUFFIX


def compensations(run: Run, step_id: str | None = None) -> list[Step]:
    """The steps that are still to be undone, in this order; of one step, only that. Raises Refused (UNKNOWN_STEP)."""
    steps = {step.id: step for step in run.plan.steps}
    if step_id is not None and step_id not in steps:
        raise Refused(f"the plan has no step '{step_id}'; `plan show` lists its steps", "UNKNOWN_STEP")
    return [steps[name] for name in to_undo(run, iter(run.plan.steps)) if step_id in (None, name)]


def undoing(run: Run, new_id: str, now: datetime, *, step_id: str | None = None, yes: bool = False) -> Run:
    """A run that undoes these steps; `run` is not changed. `yes`: no undo awaits approval.

    Raises Refused (NOTHING_TO_DO, UNKNOWN_STEP).
    """
    order = [step.id for step in compensations(run, step_id)]
    if not order:
        raise Refused("no completed step has an `undo` that is still to be done", "NOTHING_TO_DO")
    of = run.closing.of if run.closing and run.closing.of else run.plan.id or ""
    new = run.model_copy(deep=True)
    title = run.plan.title if run.closing and run.closing.of else f"undo {run.plan.title or of}"
    new.plan = run.plan.model_copy(
        update={"id": new_id, "task_id": run.plan.task_id or of, "title": title[:1_000], "finally_": None}
    )
    new.options = run.options.model_copy(update={"review": False, "approve_all": yes})
    reset_to_draft(new)
    new.ledger = new.ledger.model_copy(update={"open": {}})
    new.interrupted, new.aborted, new.resumes, new.request, new.agents = False, False, "", "", {}
    new.remembered, new.decisions, new.denied = {}, {}, []
    retained = undone_steps(run)
    for name, state in run.steps.items():
        if not state.closes and state.status not in (Status.COMPLETED, Status.SKIPPED):
            text = f"this run only undoes steps of '{of}'"
            new.steps[name] = left_out(text, Result(ok=False, error=text, code=LEFT_OUT, timestamp=now))
    kept = {undo for step in run.plan.steps if step.id in retained for undo in undo_ids(step)}
    new.steps = {name: state for name, state in new.steps.items() if not state.closes or name in kept}
    new.closing = Closing(phase="rollback", ends=PlanStatus.COMPLETED.value, order=order, of=of)
    new.note(LogKind.CLOSING, f"undoes plan '{of}': {len(order)} to undo, the last completed first", now)
    return new


def preview(run: Run, step_id: str | None = None) -> list[UndoCall]:
    """The calls that would undo the plan, in this order, with values filled in as far as they are known."""
    found: list[UndoCall] = []
    for step in compensations(run, step_id):
        ids = undo_ids(step)
        copy = run.model_copy(update={
            "steps": run.steps | {name: StepState(closes=UNDO) for name in ids},
            "closing": Closing(phase="rollback", ends=PlanStatus.COMPLETED.value),
        })  # fmt: skip
        calls = [each for name in ids if (each := closing_step(copy, name)) is not None]
        found += [
            UndoCall(step_id=step.id, undo_id=each.id, tool=each.tool, args=upcoming(copy, each).call.args)
            for each in calls
        ]
    return found


def with_undone(run: Run, undo_run: Run) -> Run:
    """The run of a plan with what `undo_run` has undone of it since, so that resuming it does those steps again.

    The files of these steps were restored, or their undo has changed them: what the plan saw of them no longer counts.
    """
    retained = undone_steps(undo_run)
    if not retained:
        return run
    found = {name: state for name, state in undo_run.steps.items() if state.closes == UNDO}
    own = {name: state for name, state in run.steps.items() if not state.closes}
    closing = run.closing or Closing(phase="rollback", ends=run.status.value)
    theirs = {path for name in retained if name in own for path in (*own[name].wrote, *own[name].deleted)}
    files = run.files.model_copy(deep=True)
    for seen in [seen for seen in files.stamps if seen.rpartition(":")[2] in theirs or seen in theirs]:
        del files.stamps[seen]
    return run.model_copy(update={"steps": {**own, **found}, "closing": closing, "files": files})


def problem_of(run: Run) -> str | None:
    """Why a Run that is handed in cannot close its plan as it says; None if it can, or says nothing about it."""
    steps = {step.id: step for step in run.plan.steps}
    undos = {name for step in run.plan.steps for name in undo_ids(step)}
    odd = next((name for name, state in run.steps.items() if state.closes and name not in undos), None)
    if odd is not None or any(state.closes not in ("", UNDO) for state in run.steps.values()):
        return f"run.steps: '{str(odd)[:100]}' is not the undo of a step"
    closing = run.closing
    if closing is None:
        return "run.closing: absent, but steps are undone" if any(s.closes for s in run.steps.values()) else None
    if not closing.of or closing.phase != "rollback" or closing.begun or closing.cancelled or closing.abandoned:
        return "run.closing: only a run that undoes a plan starts with it"
    if run.plan.finally_ or closing.ends != PlanStatus.COMPLETED.value:
        return "run.closing: a run that undoes a plan does nothing else"
    if len(set(closing.order)) < len(closing.order) or set(closing.order) - set(to_undo(run, iter(steps.values()))):
        return "run.closing.order: names what cannot be undone, or twice"
    partly = [name for name in closing.order if any(undo in run.steps for undo in undo_ids(steps[name]))]
    return f"run.steps: the undo of '{partly[0]}' has begun" if partly else None
