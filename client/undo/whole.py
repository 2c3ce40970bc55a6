"""Undoes a plan or one step as a whole: runs the undos of its steps as a plan of its own, then restores the files.

Nothing is begun while a file could not be restored, unless `partly` says so; and files stay as they are if an undo
did not complete. What was stopped in between is simply undone again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio.client import Client

from plansurvive.client.start import Started
from plansurvive.client.undo.compensations import compensate, compensations
from plansurvive.client.undo.files import ended, undo
from plansurvive.plans.files.changes import ChangesReport
from plansurvive.plans.flow.undo_run import UndoCall
from plansurvive.plans.views.summary import Summary


@dataclass(frozen=True)
class Undone:
    """What was undone, or would be."""

    report: ChangesReport
    calls: list[UndoCall]
    """The undos that ran, or would run, in this order."""
    is_whole: bool = True
    """All of them completed."""
    undo_plan: str = ""


async def would_undo(client: Client, plan: str, step: str | None, *, partly: bool = False) -> Undone:
    """What `undo_whole` would do; also of a plan that is running. Raises as `client.undo.files.undo`."""
    calls = await compensations(client, plan, step)
    return Undone(await undo(client, plan, step, dry_run=True, partly=partly), calls)


async def undo_whole(
    client: Client,
    plan: str,
    step: str | None,
    to_its_end: Callable[[Started], Awaitable[Summary]],
    *,
    partly: bool = False,
    yes: bool = False,
    waivers: bool = True,
) -> Undone:
    """Undo an ended plan, or one step of it. `to_its_end` waits for the plan that runs the undos, if there are any.

    `yes`: no undo awaits approval. `waivers`: as for `client.runs.compensate`, as which and as `client.runs.undo` it
    raises.
    """
    await ended(client, plan)
    calls, undo_plan = await compensations(client, plan, step), ""
    if calls and not partly:
        trial = await undo(client, plan, step, dry_run=True, partly=False)
        if trial.refused:
            return Undone(trial, calls)
    if calls and (started := await compensate(client, plan, step, yes=yes, waivers=waivers)) is not None:
        undo_plan = started.plan_id
        if not (await to_its_end(started)).is_completed and not partly:
            return Undone(ChangesReport(dry_run=False), calls, is_whole=False, undo_plan=undo_plan)
    return Undone(await undo(client, plan, step, dry_run=False, partly=partly), calls, undo_plan=undo_plan)
