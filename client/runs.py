"""The client API: one typed function per verb. Everything the command line does, a script does with these.

    started = await runs.start(client, {"steps": [...]}, options=Options(workspace="/data"))
    await runs.approve(client, started.plan_id, Choice(step_id="remove", by="ann"))
    summary = await runs.wait(client, started.plan_id)

A plan is named by its plan id or its workflow id. Errors are PlanErrors: PlanNotFound, PlanExists, PlanClosed,
BadPlanId, Refused, InvalidPlan, NotConnected, NoWorker. A view is what the plan
itself answers (query `plan`); its `to_json` is what `plan show --json` prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from client import decisions, end_records
from client.decisions import Choice
from client.errors import NoWorker, PlanClosed
from client.history_feed import changes
from client.ids import plan_id, workflow_id
from client.listing import Listed, list_plans
from client.pending import Pending, pending
from client.resume import Links, interrupt, links, rerun, resume
from client.rpc import LOST, RPC_TIMEOUT, about, ask, ask_view, describe, patiently, translated
from client.start import Started, start
from client.summary import ended_otherwise, of_failure
from plans.file_stamps import Stamp
from plans.run import ENDED, Decision, PlanStatus, Run
from plans.views import views
from plans.views.models import BriefView, EventView, PlanView
from plans.views.queries import BRIEF
from plans.views.summary import Summary

__all__ = [
    "BriefView", "Choice", "Decision", "EventView", "Links", "Listed", "Pending", "PlanView", "Started", "Summary",
    "approve", "begin", "brief", "cancel", "changes", "decide", "deny", "events", "files_changed", "interrupt",
    "links", "list_plans", "pause", "pending", "rerun", "resume", "show", "show_patiently", "stamps", "start",
    "summary", "text", "unpause", "wait", "watch",
]  # fmt: skip

RETRY_SECONDS = 1.0
AT_ONCE = 1_000
"""Events asked for at once."""


async def show(client: Client, plan: str) -> PlanView:
    """The plan with the status and result of every step."""
    return await ask_view(client, plan, PlanView, "plan")


async def show_patiently(client: Client, plan: str, say: Callable[[str], None]) -> PlanView:
    """The same; waits for server and worker, which `say` is told."""
    return await patiently(client, plan, say, lambda: show(client, plan))


async def brief(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> BriefView:
    """The same in short, for those who follow a plan of any size; waits for server and worker, which `say` is told."""
    return await patiently(client, plan, say, lambda: ask_view(client, plan, BriefView, "plan", BRIEF))


async def events(client: Client, plan: str, since: int = 0, limit: int = AT_ONCE) -> list[EventView]:
    """What happened after event number `since`, at most `limit` events."""
    found = await ask(client, plan, "events", {"since": since, "limit": limit})
    return [EventView.read(each) for each in found]


async def text(client: Client, plan: str, limit: int | None = None) -> str:
    """The plan as text; with a limit at most so many steps, those that move."""
    return str(await ask(client, plan, "text", *([{"limit": limit}] if limit else [])))


async def summary(client: Client, plan: str) -> Summary:
    """Where the plan stands, or how it ended."""
    return await ask_view(client, plan, Summary, "summary")


async def watch(
    client: Client, plan: str, since: int = 0, say: Callable[[str], None] = lambda _: None
) -> AsyncIterator[EventView]:
    """What happened after event number `since`, and what happens, until the plan has ended.

    Whoever comes late gets everything; nothing is missed while server or worker are away, which `say` is told.
    """
    ended = await _ended(client, plan)
    if ended is not None:
        for past in views.events(ended, since):
            yield EventView.read(past)
        return
    async for _ in changes(client, plan, say):
        more = True
        while more:
            found = await _events(client, plan, since, say)
            for event in found:
                since = event.seq
                yield event
            more = len(found) == AT_ONCE


async def wait(client: Client, plan: str) -> Summary:
    """The summary, when the plan has ended; it says how. Raises InvalidPlan when the plan was refused by the worker."""
    await describe(client, plan)
    handle = client.get_workflow_handle(workflow_id(plan))
    while True:
        try:
            return Summary.read(await handle.result())
        except WorkflowFailureError as error:
            return of_failure(error, plan) or await _asked(client, plan, error.cause)
        except RPCError as error:
            if error.status not in LOST:
                raise translated(error, plan) from error
            await asyncio.sleep(RETRY_SECONDS)


async def approve(client: Client, plan: str, choice: Choice) -> str:
    """Let a step start; returns the plan's sentence about it. Raises Refused, PlanClosed.

    NoWorker: no worker serves the plan, and the decision counts as soon as one does.
    """
    return await decisions.send_decision(client, plan, "approve", choice)


async def deny(client: Client, plan: str, choice: Choice) -> str:
    """Do not let a step start; otherwise as `approve`."""
    return await decisions.send_decision(client, plan, "deny", choice)


async def decide(client: Client, plan: str, choice: Choice, *, approved: bool) -> Decision:
    """Approve or deny, with the decision as the plan recorded it. Raises Refused, PlanClosed.

    NoWorker: no worker serves the plan, and nothing was decided.
    """
    return await decisions.decide(client, plan, choice, approved)


async def pause(client: Client, plan: str, by: str = "") -> str:
    """No further step starts until `unpause`; what runs may end. Returns and raises as `approve`."""
    return await decisions.control(client, plan, "pause", by)


async def unpause(client: Client, plan: str, by: str = "") -> str:
    """Steps may start again. Returns and raises as `approve`."""
    return await decisions.control(client, plan, "unpause", by)


async def begin(client: Client, plan: str, by: str = "") -> str:
    """The review is over: the plan starts. Returns and raises as `approve`."""
    return await decisions.control(client, plan, "begin", by)


async def files_changed(client: Client, plan: str, paths: Sequence[str], by: str = "") -> None:
    """Somebody has changed these files or directories: the plan edits none of them before it has read it again."""
    with about(plan):
        handle = client.get_workflow_handle(workflow_id(plan))
        await handle.signal("files_changed", {"paths": list(paths), "by": by}, rpc_timeout=RPC_TIMEOUT)


async def stamps(client: Client, plan: str, paths: Sequence[str] | None = None) -> dict[str, Stamp]:
    """The files that the plan knows, as it last saw them; of these paths only, when they are given."""
    found = await ask(client, plan, "stamps", {"paths": None if paths is None else list(paths)})
    return {path: Stamp.model_validate(stamp) for path, stamp in found.items()}


async def cancel(client: Client, plan: str) -> None:
    """End the plan: running steps are told and clean up. Raises PlanClosed when it has ended already."""
    description = await describe(client, plan)
    if description.status is not WorkflowExecutionStatus.RUNNING:
        name = plan_id(plan)
        raise PlanClosed(f"plan '{name}' has ended; there is nothing to cancel. `plan summary {name}` shows it")
    with about(plan):
        await client.get_workflow_handle(workflow_id(plan)).cancel(rpc_timeout=RPC_TIMEOUT)


async def _events(client: Client, plan: str, since: int, say: Callable[[str], None]) -> list[EventView]:
    return await patiently(client, plan, say, lambda: events(client, plan, since))


async def _ended(client: Client, plan: str) -> Run | None:
    """The Run of a plan that has ended and left it; None also when the server is away for now."""
    try:
        return await end_records.kept(client, plan)
    except RPCError as error:
        if error.status in LOST:
            return None
        raise translated(error, plan) from error


async def _asked(client: Client, plan: str, cause: BaseException | None) -> Summary:
    """The summary of a plan that was cancelled, asked for; a short one of our own when nobody answers."""
    try:
        found = await summary(client, plan)
    except NoWorker:
        return ended_otherwise(plan, cause)
    if found.status in ENDED:
        return found
    return found.model_copy(update={"status": PlanStatus.CANCELLED})  # cancelled before it could do anything
