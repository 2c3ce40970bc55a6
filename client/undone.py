"""Finds the plans that undid a plan: `PLAN-undo`, and if something of it was left, `PLAN-undo-r2` and so on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from temporalio.client import Client, WorkflowExecutionDescription

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import ask, describe
from plansurvive.plans.execution.undo_run import MAX_UNDOS, undo_plan_id, with_restored, with_undone
from plansurvive.plans.run import Run
from plansurvive.runtime.sides import sides


async def undo_plans(client: Client, plan: str) -> AsyncIterator[tuple[str, WorkflowExecutionDescription]]:
    """The plans that undid a plan, the first one first."""
    for number in range(1, MAX_UNDOS + 1):
        name = undo_plan_id(plan_id(plan), number)
        try:
            yield name, await describe(client, name)
        except PlanNotFound:
            return


async def undone_since(client: Client, run: Run) -> Run:
    """The run of an ended plan, with what `plan undo` has undone of it since: steps by their `undo`, and files."""
    back = [each for side in sides("restored") if (each := await side.restored_files(client, run)) is not None]
    for each in back:
        run = with_restored(run, each)
    names = [name async for name, _ in undo_plans(client, run.plan.id or "")]
    if not names:
        return run
    known = [file.path for each in back for file in each.files]
    return with_undone(run, read_run(await ask(client, names[-1], "state")), known)
