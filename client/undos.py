"""What `plan undo` has undone of ended plans since, from the server's index and the reports of the undos.

A plan that has ended cannot note what is done to it later. `plan undo` ends with the workflow `undo-PLAN`, which
stays, with its report; the plan that ran the undos of steps is `PLAN-undo`. Neither needs a worker to be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import Field
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import PREFIX, plan_id, recorded_id
from plansurvive.client.rpc import RPC_TIMEOUT, describe, memo_of
from plansurvive.plans.model import Value
from plansurvive.plans.text.lists import number_of

STEP = "undoneStep"
"""Name in that workflow's memo: the step that was to be undone, if it was not the whole plan."""
MAX_STEP = 200
AT_ONCE = 50
"""Plans in one question to the index."""


class Undo(Value):
    """What was undone of a plan after its end, and when last."""

    at: datetime
    step: str = Field(default="", description="Only this step; empty: the whole plan.")
    files: int = Field(default=0, description="Files that were restored or deleted.")
    left: int = Field(default=0, description="Files that were left as they are, as somebody else has changed them.")
    plan: str = Field(default="", description="Id of the plan that ran the undos of steps.")

    def sentence(self) -> str:
        """When, and what: `11-29 12:03, 4 of 5 files`."""
        return ", ".join(filter(None, (self.at.astimezone().strftime("%m-%d %H:%M"), self.in_words())))

    def in_words(self) -> str:
        """What was undone, without the time: `only step make, 4 of 5 files`."""
        total = self.files + self.left
        files = f"{self.files} of {number_of(total, 'file')}" if total else ""
        steps = f"the `undo` of steps in plan {self.plan}" if self.plan else ""
        return ", ".join(filter(None, (f"only step {self.step}" if self.step else "", files, steps)))


def undo_workflow(plan: str) -> str:
    """Id of the workflow that undoes a plan's files, and whose report stays."""
    return f"undo-{plan_id(plan)}"


async def undos(client: Client, ended: Mapping[str, datetime]) -> dict[str, Undo]:
    """By plan id, what was undone. `ended`: when each plan ended; an undo before that was another plan's of this id.

    Empty where the server's index cannot tell.
    """
    names, found = [name for name in ended if recorded_id(name)], dict[str, Undo]()
    for first in range(0, len(names), AT_ONCE):
        with suppress(RPCError):
            found |= await _of(client, names[first : first + AT_ONCE], ended)
    return found


async def undo_of(client: Client, plan: str, ended: datetime | None) -> Undo | None:
    """What was undone of one plan, which ended at that time; None while it has not ended."""
    name = plan_id(plan)
    return (await undos(client, {name: ended})).get(name) if ended is not None else None


async def last_undo(client: Client, plan: str) -> Undo | None:
    """What the last undo of an ended plan undid; None: nothing. The index would learn of it a moment later."""
    try:
        ended = (await describe(client, plan)).close_time
        last = await client.get_workflow_handle(undo_workflow(plan)).describe(rpc_timeout=RPC_TIMEOUT)
    except (PlanNotFound, RPCError):
        return None
    if ended is None or last.close_time is None or last.start_time < ended:
        return None
    from plansurvive.client.undone import undo_plans  # imports what reads a Run, which `plan list` does without

    names = [name async for name, _ in undo_plans(client, plan)]
    found = await _all(client, [last], names[-1] if names else "")
    return found or await undo_of(client, plan, ended)


async def _of(client: Client, names: Collection[str], ended: Mapping[str, datetime]) -> dict[str, Undo]:
    ids = {undo_workflow(name): name for name in names} | {f"{PREFIX}{name}-undo": name for name in names}
    listed = ", ".join(f"'{each}'" for each in ids)
    query = f"ExecutionStatus = 'Completed' AND WorkflowId IN ({listed})"
    files, plans = dict[str, list[WorkflowExecution]](), dict[str, str]()
    async for each in client.list_workflows(query):
        name = ids[each.id]
        if each.close_time is None or each.start_time < ended[name]:
            continue
        if each.workflow_type == "ChangesWorkflow":
            files.setdefault(name, []).append(each)
        elif each.workflow_type == "PlanWorkflow":
            plans[name] = plan_id(each.id)
    marks = await asyncio.gather(*(_all(client, runs, plans.get(name, "")) for name, runs in files.items()))
    return {name: mark for name, mark in zip(files, marks, strict=True) if mark is not None}


async def _all(client: Client, runs: Sequence[WorkflowExecution], plan: str) -> Undo | None:
    """What these have undone together; None if all of them found nothing, or were refused."""
    found, steps = None, list[str]()
    for each in sorted(runs, key=lambda run: run.start_time):
        report = await _report(client, each)
        restored = [one for one in report.get("restored") or [] if one.get("expected") != one.get("target")]
        left = len(report.get("refused") or [])
        if report.get("dryRun", True) or not (restored or left or plan) or not each.close_time:
            continue
        steps.append(str((await memo_of(each)).get(STEP) or "")[:MAX_STEP])
        at, before = each.close_time, found.files if found is not None else 0
        if found is not None and not restored:  # it has only looked again at what was left
            at = found.at
        found = Undo(at=at, files=before + len(restored), left=left, plan=plan)
    only = "" if "" in steps else ", ".join(dict.fromkeys(steps))
    return found.model_copy(update={"step": only}) if found is not None else None


async def _report(client: Client, run: WorkflowExecution) -> dict[str, Any]:
    """The report of an undo, as JSON data; empty if it cannot be read here."""
    with suppress(Exception):  # deleted since, or not to be decoded here: anybody may start a workflow of this name
        handle = client.get_workflow_handle(run.id, run_id=run.run_id, result_type=dict)
        found = await handle.result(rpc_timeout=RPC_TIMEOUT)
        return found if isinstance(found, dict) else {}
    return {}
