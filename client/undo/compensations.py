"""Undoes what the steps of an ended plan say with `undo`, as a plan of its own: `PLAN-undo` (DESIGN 2.8).

Each undo runs once, whatever dies meanwhile: the id of that plan is taken once, and what it has undone is in its Run.
If an undo fails, or is denied, the next call runs what is left, as `PLAN-undo-r2`.

A plan of its own, so that an undo asks and retries like any step, and its id is taken once; before files, so they find
the workspace as the plan left it. Rejected: activities without approvals.
"""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.client import Client, WorkflowExecutionStatus

from plansurvive.client.errors import PlanExists
from plansurvive.client.ids import plan_id
from plansurvive.client.resume import links, unwaived
from plansurvive.client.rpc import ask
from plansurvive.client.start import Started, start_run
from plansurvive.client.undo.files import ended
from plansurvive.client.undo.latest import undo_plans
from plansurvive.plans.errors import Refused
from plansurvive.plans.flow.undo_run import UndoCall, preview, undo_plan_id, undoing
from plansurvive.plans.flow.undone import undone_child
from plansurvive.plans.run import Run


async def compensations(client: Client, plan: str, step_id: str | None = None) -> list[UndoCall]:
    """The calls that would undo the steps of a plan, or of one, that say how and were not undone yet, in this order.

    Raises Refused (UNKNOWN_STEP).
    """
    names = [name async for name, _ in undo_plans(client, plan)]
    run = await _run_of(client, names[-1] if names else plan)
    found = list[UndoCall]()
    for call in preview(run, step_id) if run is not None else ():
        child = undone_child(run.outline.step(call.step_id), run.steps[call.step_id]) if run else None
        if child is None:
            found.append(call)
            continue
        prefix = f"{call.step_id}/"
        for inner in await compensations(client, child):
            ids = {"step_id": prefix + inner.step_id, "undo_id": f"{call.undo_id}/{inner.undo_id}"}
            found.append(inner.model_copy(update=ids))
    return found


async def compensate(
    client: Client, plan: str, step_id: str | None = None, *, yes: bool = False, waivers: bool = True
) -> Started | None:
    """Start the plan that undoes an ended one, or only one of its steps; None if nothing is left to undo.

    Returns at once; `wait` for its end. `yes`: no undo awaits approval. `waivers` as for `resume`. One that is under
    way is returned as it is. Raises Refused: NOT_ENDED, UNKNOWN_STEP, ALREADY_RESUMED (undo the later run, which has
    taken over the steps).
    """
    name, description = plan_id(plan), await ended(client, plan)
    earlier = [each async for each in undo_plans(client, plan)]
    if earlier and earlier[-1][1].status is WorkflowExecutionStatus.RUNNING:
        last, running = earlier[-1]
        return Started(plan_id=last, workflow_id=running.id, run_id=running.run_id or "")
    run = await _run_of(client, earlier[-1][0] if earlier else plan)
    if run is None or not preview(run, step_id):
        return None
    if later := (await links(client, plan)).resumed_by:
        raise Refused(f"plan '{name}' was resumed as '{later[-1]}'; undo that run instead", "ALREADY_RESUMED")
    new_id = undo_plan_id(name, len(earlier) + 1)
    try:
        new = undoing(run, new_id, datetime.now(UTC), step_id=step_id, yes=yes)
        return await start_run(client, new if waivers else unwaived(new), description.task_queue)
    except PlanExists:
        text = f"another undo of plan '{name}' has just begun: plan watch {new_id}"
        raise Refused(text, "UNDO_RUNNING") from None


async def _run_of(client: Client, plan: str) -> Run | None:
    """The Run of a plan; None for an agent, whose calls have no undo."""
    state = await ask(client, plan, "state")
    return None if "order" in state else Run.model_validate(state)
