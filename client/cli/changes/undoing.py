"""`plan undo`: runs the undos of a plan's steps as a plan of its own, follows it, then restores the files.

Nothing is begun while a file could not be restored, unless `--partly` says so; and files stay as they are if an undo
did not complete. A command that is stopped in between is simply given again.
"""

from __future__ import annotations

from dataclasses import dataclass

from client import runs
from client.cli import output
from client.cli.follow.follow import follow
from client.cli.session import Connected
from client.undo.files import ended, undo
from client.undo.latest import undo_plans
from plans.files.undo import ChangesReport
from plans.flow.undo_run import UndoCall


@dataclass(frozen=True)
class Undone:
    """What `plan undo` did, or would do."""

    report: ChangesReport
    calls: list[UndoCall]
    """The undos that it ran, or would run, in this order."""
    is_whole: bool = True
    """All of them completed."""
    undo_plan: str = ""


@dataclass
class Undoing:
    """One call of the command."""

    plan: str
    step: str | None
    dry_run: bool
    partly: bool
    yes: bool
    as_json: bool
    begun: str | None = None
    """Id of the plan that runs the undos, once there is one."""

    async def run(self, here: Connected) -> Undone:
        """Undo steps and files, or say what would be undone."""
        if not self.dry_run:
            await ended(here.client, self.plan)
        calls = await runs.compensations(here.client, self.plan, self.step)
        if self.dry_run:
            return Undone(await self._files(here, dry_run=True), calls)
        if calls and not self.partly and (trial := await self._files(here, dry_run=True)).refused:
            return Undone(trial, calls)
        if calls and not await self._compensated(here) and not self.partly:
            return Undone(ChangesReport(dry_run=False), calls, is_whole=False, undo_plan=self.begun or "")
        return Undone(await self._files(here, dry_run=False), calls)

    async def _compensated(self, here: Connected) -> bool:
        """Run the undos of the steps, and follow them. Returns whether all of them completed."""
        started = await runs.compensate(here.client, self.plan, self.step, yes=self.yes)
        if started is None:
            return True
        self.begun = started.plan_id
        if self.as_json:
            summary = await runs.wait(here.client, started.plan_id)
        else:
            output.show(f"plan {started.plan_id}")
            summary = await follow(here, started.plan_id, as_json=False)
        return summary.is_completed

    async def _files(self, here: Connected, *, dry_run: bool) -> ChangesReport:
        also = [name async for name, _ in undo_plans(here.client, self.plan)]
        return await undo(here.client, self.plan, self.step, dry_run=dry_run, partly=self.partly, also=also)
