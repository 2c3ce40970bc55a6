"""Finds the plans that undid a plan: `PLAN-undo`, and if something of it was left, `PLAN-undo-r2` and so on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from temporalio.client import Client, WorkflowExecutionDescription

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import ask, describe
from plansurvive.plans.execution.undo_run import MAX_UNDOS, undo_plan_id, with_restored, with_undone
from plansurvive.plans.files.changes import RestoredFiles
from plansurvive.plans.run import Run
from plansurvive.plans.run.undone import undone_child, undone_steps
from plansurvive.plans.step_state import StepState
from plansurvive.runtime.sides import sides


async def undo_plans(client: Client, plan: str) -> AsyncIterator[tuple[str, WorkflowExecutionDescription]]:
    """The plans that undid a plan, the first one first."""
    for number in range(1, MAX_UNDOS + 1):
        name = undo_plan_id(plan_id(plan), number)
        try:
            yield name, await describe(client, name)
        except PlanNotFound:
            return


async def restored_since(client: Client, run: Run) -> RestoredFiles:
    """What `plan undo` has done since to the files of an ended plan or agent, and which steps that are child plans it
    has undone by themselves."""
    found = [each for side in sides("restored") if (each := await side.restored_files(client, run)) is not None]
    below = [name for name, state in run.steps.items() if await _is_child_undone(client, run, name, state)]
    steps = [name for each in found for name in each.steps]
    return RestoredFiles(steps=[*steps, *below], files=[file for each in found for file in each.files])


async def _is_child_undone(client: Client, run: Run, name: str, state: StepState) -> bool:
    """Whether a plan has undone steps of the step's child plan."""
    child = undone_child(run.outline.step(name), state) if state.child is not None and not state.closes else None
    names = [each async for each, _ in undo_plans(client, child)] if child is not None else []
    return bool(names) and bool(undone_steps(read_run(await ask(client, names[-1], "state"))))


async def undone_since(client: Client, run: Run) -> Run:
    """The run of an ended plan, with what `plan undo` has undone of it since: steps by their `undo`, and files."""
    back = await restored_since(client, run)
    run = with_restored(run, back)
    names = [name async for name, _ in undo_plans(client, run.plan.id or "")]
    if not names:
        return run
    known = [file.path for file in back.files]
    return with_undone(run, read_run(await ask(client, names[-1], "state")), known)
