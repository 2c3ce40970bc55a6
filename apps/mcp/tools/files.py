"""Files that plans changed: plan_files, plan_undo. Undoing waives nothing: an `undo` that needs an approval asks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult
from pydantic import Field

from plansurvive.apps.mcp.common.host import Host, Request
from plansurvive.apps.mcp.common.replies import reply
from plansurvive.apps.mcp.common.where import Where, where
from plansurvive.apps.mcp.tools.adding import Kind, add
from plansurvive.apps.mcp.tools.views import PlanId, StepId
from plansurvive.apps.mcp.tools.waiting import MAX_WAIT
from plansurvive.client import runs
from plansurvive.client.ids import plan_id as id_of
from plansurvive.client.requests.connected import Connected
from plansurvive.client.runs import Started, Summary
from plansurvive.features.files.model import Refusal, UndoCall
from plansurvive.features.files.verbs import Undone, undo_whole, would_undo
from plansurvive.plans.errors import Refused
from plansurvive.plans.files.changes import CallChanges, FileChange
from plansurvive.plans.model import Value
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.safe_text import line

MAX_CHARACTERS = 60_000
"""Of the JSON of the changes in one answer."""
MAX_DIFF = 10_000
MAX_LISTED = 200
_MARKS = {"created": "+", "changed": "~", "deleted": "-"}


class FilesShown(Value):
    """The files that a plan changed, call by call."""

    plan_id: str
    calls: list[CallChanges] = Field(default_factory=list)
    next: int | None = Field(default=None, description="`fromCall` for the calls after these.")


class UndoneShown(Value):
    """What was undone, or would be."""

    plan_id: str
    dry_run: bool
    is_whole: bool = Field(description="Everything was undone, or would be.")
    restored: list[str] = Field(default_factory=list, description="Files.")
    refused: list[Refusal] = Field(default_factory=list, description="Files that others changed since, or like that.")
    calls: list[UndoCall] = Field(default_factory=list, description="The `undo` of its steps, in this order.")
    undo_plan: str = Field(default="", description="The plan that runs them; it may await a person.")
    decide: Where | None = None


@dataclass(frozen=True)
class Files:
    """The tools about files."""

    host: Host

    async def plan_files(
        self,
        ctx: Request,
        plan_id: PlanId,
        step_id: Annotated[StepId | None, Field(description="Only of this step.")] = None,
        diffs: Annotated[bool, Field(description="With a diff for each file.")] = True,
        from_call: Annotated[int, Field(ge=0, description="First call; see `next`.")] = 0,
    ) -> Annotated[CallToolResult, FilesShown]:
        """Show the files that each step of a plan created, changed and deleted, with diffs."""
        del ctx
        here = await self.host.connected()
        report = await runs.file_changes(here.client, plan_id, step_id, diffs=diffs)
        kept, size = list[CallChanges](), 0
        for call in report.calls[from_call:]:
            short = _bounded(call)
            size += len(short.model_dump_json())
            if kept and size > MAX_CHARACTERS:
                break
            kept.append(short)
        end = from_call + len(kept)
        found = FilesShown(plan_id=id_of(plan_id), calls=kept, next=end if end < len(report.calls) else None)
        rows = [row for call in kept for row in _rows(call)] or ["No file changes are recorded."]
        return reply(found, "\n".join(rows + ([f"… more: fromCall {end}"] if found.next else [])))

    async def plan_undo(
        self,
        ctx: Request,
        plan_id: PlanId,
        step_id: Annotated[StepId | None, Field(description="Only this step.")] = None,
        dry_run: Annotated[bool, Field(description="Only report what would be undone.")] = True,
        partly: Annotated[bool, Field(description="Undo what can be undone, even if not everything can.")] = False,
        wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds that the undos of steps may take.")] = 30,
    ) -> Annotated[CallToolResult, UndoneShown]:
        """Undo a plan that has ended, or one of its steps: run the `undo` of each step, then restore files. By default
        a dry run. Undos that need an approval await a person; call it again afterwards to restore the files."""
        caller = self.host.caller(ctx)
        here = await self.host.connected(starts=not dry_run)
        if dry_run:
            return await _undone(here, plan_id, await would_undo(here.client, plan_id, step_id, partly=partly))
        caller.to_operate()

        async def to_its_end(started: Started) -> Summary:
            return await _ended(here, started.plan_id, wait, partly=partly)

        undone = await undo_whole(here.client, plan_id, step_id, to_its_end, partly=partly, waivers=False)
        return await _undone(here, plan_id, undone)


async def _ended(here: Connected, plan: str, seconds: float, *, partly: bool) -> Summary:
    """The summary of the plan that undoes; one that still runs after this time has not undone everything."""
    try:
        async with asyncio.timeout(seconds):
            return await runs.wait(here.client, plan)
    except TimeoutError:
        if partly:
            text = f"plan '{plan}' undoes the steps and has not ended; follow it, then undo the rest"
            raise Refused(text, "UNDO_RUNNING") from None
        return Summary(plan_id=plan, status=PlanStatus.RUNNING)


async def _undone(here: Connected, plan: str, undone: Undone) -> CallToolResult:
    report = undone.report
    restored = [each.path for each in report.restored if each.expected != each.target]
    found = UndoneShown(
        plan_id=id_of(plan), dry_run=report.dry_run, is_whole=undone.is_whole and not report.refused,
        restored=restored[:MAX_LISTED], calls=undone.calls[:MAX_LISTED], undo_plan=undone.undo_plan,
        refused=[each.model_copy(update={"diff": each.diff[:MAX_DIFF]}) for each in report.refused[:MAX_LISTED]],
        decide=where(here, undone.undo_plan) if undone.undo_plan and not undone.is_whole else None,
    )  # fmt: skip
    verb = "would be " if report.dry_run else ""
    rows = [f"{verb}undone: {line(each.step_id)} ({line(each.tool) or 'steps'})" for each in found.calls]
    rows += [f"{verb}restored: {line(path)}" for path in found.restored]
    rows += [f"{each.code} {line(each.path)}: {line(each.reason)}" for each in found.refused]
    if found.decide is not None:
        rows.append(f"Plan {undone.undo_plan} undoes the steps and has not completed. {found.decide.text}")
    return reply(found, "\n".join(rows) or f"Nothing to undo{f': {undone.before}' if undone.before else ''}.")


def _bounded(call: CallChanges) -> CallChanges:
    changes = [_cut(change) for change in call.changes[:MAX_LISTED]]
    return call.model_copy(update={"changes": changes, "more": call.more + len(call.changes) - len(changes)})


def _cut(change: FileChange) -> FileChange:
    if len(change.diff) <= MAX_DIFF:
        return change
    return change.model_copy(update={"diff": f"{change.diff[:MAX_DIFF]}\n… the diff is longer\n"})


def _rows(call: CallChanges) -> list[str]:
    undone = ", undone since" if call.undone else ""
    rows = [f"{line(call.step_id)}{f' ({line(call.tool)})' if call.tool else ''}{undone}"]
    for change in call.changes:
        alone = " (undone since)" if change.undone and not call.undone else ""
        rows += [
            f"  {_MARKS[change.kind]} {line(change.path)}{alone}",
            *(f"    {row}" for row in change.diff.splitlines()),
        ]
    return rows


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the tools."""
    tools = Files(host)
    add(server, tools.plan_files, "Files that a plan changed", Kind.READS)
    add(server, tools.plan_undo, "Undo a plan", Kind.STARTS)
