"""Lists what a plan did to files, and takes back what it did, after it has ended.

Files are listed and restored by a short workflow, on the workers that have the plan's workspaces: the plan may have
ended, and its files may be on another machine. It is deleted when its answer has been read.

What its steps say with `undo` runs as a plan of its own, `PLAN-undo` (DESIGN 2.8): an undo asks and retries like any
step. Each runs once, whatever dies meanwhile, as the id of that plan is taken once, and what it has undone is in its
Run. If an undo fails, or is denied, the next call runs what is left, as `PLAN-undo-r2`. It comes before the files, so
that undos find the workspace as the plan left it. Rejected: activities without approvals.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from plansurvive.client.children.naming import no_such_step, parts
from plansurvive.client.children.resuming import GONE
from plansurvive.client.errors import NoWorker, PlanExists
from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id, recorded_id
from plansurvive.client.rpc import RPC_TIMEOUT, ask, describe, memo_of, translated
from plansurvive.client.undone import undo_plans
from plansurvive.client.undos import MAX_STEP, STEP, Undo, last_undo, undo_workflow
from plansurvive.client.verbs.continuing import unwaived
from plansurvive.client.verbs.resume import links
from plansurvive.client.verbs.start import Started, start_run
from plansurvive.features.files.changed import forget
from plansurvive.features.files.family import MAX_RUNS, Relative, family, undone_with
from plansurvive.features.files.model import ChangesReport, ChangesRequest, UndoCall
from plansurvive.plans.definition.scopes import UNDO, walk_step
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.execution.undo_run import left_to_undo, undo_plan_id, undoing, with_undos
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.flow.ids import covers, matches, template_of
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.run.undone import outcomes, shown_steps, undo_of, undone_child
from plansurvive.plans.step_state import StepState
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views.summary import Summary

CEILING = timedelta(minutes=30)
"""Execution timeout of the workflow."""


@dataclass(frozen=True)
class Undone:
    """What was undone, or would be."""

    report: ChangesReport
    calls: list[UndoCall]
    """The undos that ran, or would run, in this order."""
    is_whole: bool = True
    """All of them completed."""
    undo_plan: str = ""
    before: str = ""
    """Where nothing was left to undo, when and by which command it was undone; empty: it was not."""


async def file_changes(client: Client, plan: str, step_id: str | None = None, *, diffs: bool = True) -> ChangesReport:
    """The files that each tool call of the plan, or of one step, created, changed and deleted, oldest call first.

    `diffs`: include unified diffs. Raises NoWorker, and Refused (UNKNOWN_STEP).
    """
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, diffs=diffs)
    return await _answer(client, plan, request, f"files-{plan_id(plan)}-{uuid.uuid4().hex[:8]}")


async def changes_of(client: Client, plan: str, relatives: Sequence[Relative]) -> ChangesReport:
    """As `file_changes`, without diffs; `relatives`: the plan's set, which was read before."""
    request = ChangesRequest(plan_id=plan_id(plan), diffs=False)
    return await _answer(client, plan, request, f"files-{plan_id(plan)}-{uuid.uuid4().hex[:8]}", relatives)


async def undo(
    client: Client,
    plan: str,
    step_id: str | None = None,
    *,
    dry_run: bool = False,
    partly: bool = False,
) -> ChangesReport:
    """Undo the file changes of an ended plan, or of one of its steps: a loop, an item `a[x]`, `a[*].b`, `child/step`.

    If a file cannot be restored, for example because someone else has changed it since, it is listed in `refused` and
    nothing is undone; with `partly`, the other files are restored. `dry_run` only reports what would be done, also
    while the plan is running. Of a plan that was resumed, the changes of its earlier runs are undone as well. Raises
    NoWorker, and Refused (NOT_ENDED, UNKNOWN_STEP, ALREADY_RESUMED). Another undo of the plan is waited for.
    """
    await _not_resumed(client, plan)
    return await _undone(client, plan, step_id, dry_run=dry_run, partly=partly)


async def _undone(client: Client, plan: str, step_id: str | None, *, dry_run: bool, partly: bool) -> ChangesReport:
    """As `undo`, of a plan of which it is known that it was not resumed."""
    if not dry_run:
        await _ended(client, plan)
    request = ChangesRequest(plan_id=plan_id(plan), step_id=step_id, undo=True, dry_run=dry_run, partly=partly)
    of_its_own = f"files-{plan_id(plan)}-{uuid.uuid4().hex[:8]}"  # what only looks keeps nobody waiting
    return await _answer(client, plan, request, of_its_own if dry_run else undo_workflow(plan))


async def compensations(client: Client, plan: str, step_id: str | None = None) -> list[UndoCall]:
    """The calls that would undo the steps of a plan, or of one, that say how and were not undone yet, in this order.

    Raises Refused (UNKNOWN_STEP).
    """
    return await _compensations_at(client, await _places(client, plan, step_id))


_Place = tuple[str, str, str | None]


async def _places(client: Client, plan: str, step_id: str | None) -> list[_Place]:
    """Where the step is that a path means, or the steps: what is before its id, its plan, and its id there.

    The plan that a step ran last, if it was resumed. None where no step above ran a plan.
    """
    *above, last = parts(step_id or "")
    if not above:
        return [("", plan, step_id), *await _left_before(client, plan, step_id)]
    found = dict[str, str]()
    for relative in await family(client, plan):
        *names, rest = parts(relative.prefix)
        if not rest and len(names) == len(above) and all(map(matches, above, names)):
            found[relative.prefix] = relative.id
    return [(prefix, name, last) for prefix, name in found.items()]


async def _left_before(client: Client, plan: str, step_id: str | None) -> list[_Place]:
    """Steps of earlier runs that are still to be undone: their undo failed, and a later run has not taken them over,
    but done them again. Of what they did first, that run knows nothing."""
    runs = [await _run_of(client, plan)]
    while (run := runs[-1]) and (earlier := recorded_id(run.resumes)) and len(runs) < MAX_RUNS:
        try:
            runs.append(await _run_of(client, earlier))
        except PlanError as error:
            if error.code not in GONE:
                raise
            break
    last, left = runs[0], dict[tuple[str, datetime | None], str]()
    for run in filter(None, reversed(runs[1:])):
        name = run.plan.id or ""
        names = [each async for each, _ in undo_plans(client, name)]
        undone = await _undone_run(client, names[-1]) if names else run
        for step, became in outcomes(undone) if undone is not None else ():
            key = step, run.steps[step].began if step in run.steps else None
            if became.status == "completed":
                left.pop(key, None)
            else:
                left[key] = name
    kept = {(name, state.began) for name, state in last.steps.items()} if last is not None else set()
    return [
        ("", of, name)
        for (name, began), of in left.items()
        if (name, began) not in kept and (step_id is None or covers(step_id, name))
    ]


async def _compensations_at(client: Client, places: Sequence[_Place]) -> list[UndoCall]:
    found = list[UndoCall]()
    for prefix, plan, step in places:
        found += [_below(prefix, prefix, each) for each in await _compensations(client, plan, step)]
    return found


async def _compensations(client: Client, plan: str, step_id: str | None = None) -> list[UndoCall]:
    names = [name async for name, _ in undo_plans(client, plan)]
    run = await _undone_run(client, names[-1] if names else plan)
    found = list[UndoCall]()
    for call in preview(run, step_id) if run is not None else ():
        child = undone_child(run.outline.step(call.step_id), run.steps[call.step_id]) if run else None
        if child is None:
            found.append(call)
            continue
        inner = await _compensations(client, child)
        found += [_below(f"{call.step_id}/", f"{call.undo_id}/", each) for each in inner]
    return found


def _below(prefix: str, undo_prefix: str, call: UndoCall) -> UndoCall:
    ids = {"step_id": prefix + call.step_id, "undo_id": undo_prefix + call.undo_id}
    return call.model_copy(update=ids)


async def compensate(
    client: Client, plan: str, step_id: str | None = None, *, yes: bool = False, waivers: bool = True
) -> Started | None:
    """Start the plan that undoes an ended one, or only one of its steps; None if nothing is left to undo.

    Returns at once; `wait` for its end. `yes`: no undo awaits approval. `waivers` as for `resume`. One that is under
    way is returned as it is. Raises Refused: NOT_ENDED, UNKNOWN_STEP, ALREADY_RESUMED (undo the later run, which has
    taken over the steps).
    """
    await _not_resumed(client, plan)
    return (await _compensating(client, plan, step_id, yes=yes, waivers=waivers))[0]


async def _compensating(
    client: Client, plan: str, step_id: str | None, *, yes: bool, waivers: bool
) -> tuple[Started | None, bool]:
    """As `compensate`, and whether the plan was under way before: it may undo other steps."""
    name, description = plan_id(plan), await _ended(client, plan)
    while True:
        earlier = [each async for each in undo_plans(client, plan)]
        if earlier and earlier[-1][1].status is WorkflowExecutionStatus.RUNNING:
            last, running = earlier[-1]
            return Started(plan_id=last, workflow_id=running.id, run_id=running.run_id or ""), True
        run = await _undone_run(client, earlier[-1][0] if earlier else plan)
        if run is None or not preview(run, step_id):
            return None, False
        new_id = undo_plan_id(name, len(earlier) + 1)
        new = undoing(run, new_id, datetime.now(UTC), step_id=step_id, yes=yes)
        with suppress(PlanExists):  # another undo was faster: it is under way, or has already ended
            return await start_run(client, new if waivers else unwaived(new), description.task_queue), False


async def _not_resumed(client: Client, plan: str) -> None:
    """Raises Refused (ALREADY_RESUMED) with the run to undo: the last of those that resumed the plan."""
    last = ""
    while later := (await links(client, last or plan)).resumed_by:
        last = later[-1]
    if last:
        text = f"plan '{plan_id(plan)}' was resumed as '{last}', which has taken over its steps: plan undo {last}"
        raise Refused(text, "ALREADY_RESUMED")


async def would_undo(client: Client, plan: str, step: str | None, *, partly: bool = False) -> Undone:
    """What `undo_whole` would do; also of a plan that is running. Raises as `undo`, and ALREADY_RESUMED as it does."""
    await _not_resumed(client, plan)
    calls = await _compensations_at(client, await _places(client, plan, step))
    report = await _undone(client, plan, step, dry_run=True, partly=partly)
    nothing = not (calls or report.restored or report.refused)
    return Undone(report, calls, before=await _before(client, plan) if nothing else "")


async def _before(client: Client, plan: str) -> str:
    """When and by which command a plan was undone, as a sentence; empty if it was not."""
    found = list[tuple[Undo, str]]()
    async for name in undone_with(client, plan_id(plan)):
        if (mark := await last_undo(client, name)) is not None:
            found.append((mark, name))
    if not found:
        return ""
    last, name = max(found, key=lambda each: each[0].at)
    command = " ".join(["plan undo", line(name), *map(quoted, filter(None, last.step.split(", ")))])
    return f"`{command}` undid it, {line(last.model_copy(update={'step': ''}).sentence())}"


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

    `yes`: no undo awaits approval. `waivers`: as for `compensate`, as which and as `undo` it raises.
    """
    await _ended(client, plan)
    await _not_resumed(client, plan)
    places, undo_plan = await _places(client, plan, step), ""
    calls = await _compensations_at(client, places)
    # Looked at first: an undo that finds nothing would stand in front of the record of the one that has undone it all.
    trial = await _undone(client, plan, step, dry_run=True, partly=partly)
    if not (calls or trial.restored or trial.refused):
        return Undone(trial.model_copy(update={"dry_run": False}), calls, before=await _before(client, plan))
    if calls and trial.refused and not partly:
        return Undone(trial, calls)
    for _, place, inner in places if calls else ():
        was_running = True
        while was_running:  # another undo may have been about other steps
            started, was_running = await _compensating(client, place, inner, yes=yes, waivers=waivers)
            if started is None:
                break
            undo_plan = started.plan_id
            if not (await to_its_end(started)).is_completed and not partly:
                return Undone(ChangesReport(dry_run=False), calls, is_whole=False, undo_plan=undo_plan)
    return Undone(await undo(client, plan, step, partly=partly), calls, undo_plan=undo_plan)


async def _ended(client: Client, plan: str) -> WorkflowExecutionDescription:
    """The description of an ended plan. Raises Refused (NOT_ENDED)."""
    description = await describe(client, plan)
    if description.status is WorkflowExecutionStatus.RUNNING:
        name = plan_id(plan)
        raise Refused(
            f"plan '{name}' is still running; wait until it ends, or cancel it with `plan cancel {name}`", "NOT_ENDED"
        )
    return description


async def _run_of(client: Client, plan: str) -> Run | None:
    """The Run of a plan; None for an agent, whose calls have no undo."""
    state = await ask(client, plan, "state")
    return None if "order" in state else read_run(state)


async def _undone_run(client: Client, plan: str) -> Run | None:
    """The run that is to be undone, with the undos that tools have; None: it is an agent's."""
    run = await _run_of(client, plan)
    return None if run is None else with_undos(run)


def preview(run: Run, step_id: str | None = None) -> list[UndoCall]:
    """What would undo the plan, in this order, with values filled in as far as they are known."""
    names = left_to_undo(run, step_id)
    steps = {name: state for name, state in run.steps.items() if not state.closes}
    ended = Closing(phase="rollback", ends=PlanStatus.COMPLETED.value, order=names, begun=len(names))
    states = {undo_of(name): StepState(closes=UNDO) for name in names}
    opened = {name: each for name, each in run.opened.items() if name in steps}
    copy = run.model_copy(update={"steps": steps | states, "closing": ended, "opened": opened})
    found = []
    for name in names:
        call = upcoming(copy, copy.outline.step(undo_of(name))).call
        found.append(UndoCall(step_id=name, undo_id=undo_of(name), tool=call.tool, args=call.args))
    return found


async def _answer(
    client: Client,
    plan: str,
    request: ChangesRequest,
    workflow_id: str,
    relatives: Sequence[Relative] | None = None,
) -> ChangesReport:
    # 1. Whose changes they are, and who has the files. A step is known by its place as the plan above names it.
    relatives = await family(client, plan) if relatives is None else relatives
    default = (await describe(client, plan)).task_queue
    tools, queues = dict[str, str](), dict[str | None, None]()
    for each in relatives:
        if each.run is None:
            continue
        queues[each.run.home_queue or default] = None
        for path, step in (found for one in shown_steps(each.run) for found in walk_step(one)):
            tools[template_of(each.prefix + path)] = step.tool
            queues[step.queue] = None
    if request.step_id is not None and template_of(request.step_id) not in tools:
        raise await no_such_step(client, plan, request.step_id)
    named = {each.id: each.prefix for each in relatives}
    request = request.model_copy(update={"queues": list(filter(None, queues)), "plans": named})
    # 2. Their workers answer.
    start = partial(
        client.start_workflow,
        "ChangesWorkflow",
        request.model_dump(mode="json"),
        result_type=dict,
        id=workflow_id,
        task_queue=default,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        execution_timeout=CEILING,
        rpc_timeout=RPC_TIMEOUT,
        memo={STEP: request.step_id[:MAX_STEP]} if request.undo and request.step_id else None,
        static_summary=f"{'undo' if request.undo else 'files'} of plan {request.plan_id}"[:200],
    )
    try:
        handle, result = await _first_or_next(client, start, request)
    except WorkflowFailureError as error:
        raise _failure(error, plan) from error
    except RPCError as error:
        raise translated(error, plan) from error
    # 3. What has answered goes. One that undid something stays for its audit record; one that failed, for whoever looks
    # for the cause.
    if not request.undo or request.dry_run:
        await forget(client, handle)
    # 4. The effect log does not record the tool of a call.
    report = ChangesReport.model_validate(result)
    calls = [
        call.model_copy(update={"tool": call.tool or tools.get(template_of(call.step_id), "")}) for call in report.calls
    ]
    return report.model_copy(update={"calls": calls})


async def _first_or_next(
    client: Client, start: Callable[[], Awaitable[WorkflowHandle[Any, Any]]], request: ChangesRequest
) -> tuple[WorkflowHandle[Any, Any], dict[str, Any]]:
    """The workflow with its report. If another one undoes the plan, it is waited for: its report is the answer if it
    was asked for the same, and else what it has left is undone.

    Raises WorkflowFailureError and RPCError of the own one.
    """
    while True:
        try:
            handle = await start()
        except WorkflowAlreadyStartedError as error:
            other = client.get_workflow_handle(error.workflow_id, run_id=error.run_id, result_type=dict)
        else:
            return handle, await handle.result()
        with suppress(WorkflowFailureError, ValidationError):  # its client learns why; it may have undone a part
            found: dict[str, Any] = await other.result()
            report = ChangesReport.model_validate(found)
            step = (await memo_of(await other.describe(rpc_timeout=RPC_TIMEOUT))).get(STEP)
            is_same = (step or "") == (request.step_id or "")[:MAX_STEP] and not report.dry_run
            if is_same and not (request.partly and report.refused):
                return other, found


def _failure(error: WorkflowFailureError, plan: str) -> PlanError:
    cause = error.cause.cause if isinstance(error.cause, ActivityError) else error.cause
    if isinstance(cause, ApplicationError):
        return PlanError(cause.message, cause.type or "UNDO_FAILED")
    if isinstance(cause, TimeoutError):
        text = f"no worker polls the task queues of plan '{plan_id(plan)}', so its files cannot be accessed"
        return NoWorker(f"{text}; start one: plan up")
    return PlanError(str(cause), "UNDO_FAILED")
