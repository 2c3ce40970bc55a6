"""What a client does with plans: a typed async function per verb, which the command line and the web page call as well.

`client.runs` is the same with the functions of features, for scripts; nothing in `client` and no feature imports it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.client import decisions, end_records
from plansurvive.client.children import naming
from plansurvive.client.children.naming import located
from plansurvive.client.children.pausing import release_below
from plansurvive.client.decisions import Choice, authored
from plansurvive.client.errors import PlanClosed
from plansurvive.client.history_feed import changes
from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.listing import Listed, list_plans
from plansurvive.client.live.feed import with_live
from plansurvive.client.live.in_flight import in_flight
from plansurvive.client.live.steps import by_step
from plansurvive.client.rpc import (
    LOST,
    RPC_TIMEOUT,
    about,
    ask,
    ask_view,
    describe,
    has_ended,
    patiently,
    plan_file,
    translated,
)
from plansurvive.client.updates import update
from plansurvive.client.verbs.calls import call
from plansurvive.client.verbs.many import decide_all
from plansurvive.client.verbs.pending import Pending, pending
from plansurvive.client.verbs.resume import Links, interrupt, links, rerun, resume
from plansurvive.client.verbs.start import Started, start
from plansurvive.client.verbs.summary import wait
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.approvals import sentence
from plansurvive.plans.execution.messages import Via
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.run import ENDED, Decision, PlanStatus, Run
from plansurvive.plans.views.models import BriefView, InnerStep, InsidePage, PlanView
from plansurvive.plans.views.models.live import LiveView
from plansurvive.plans.views.progress import events as progress
from plansurvive.plans.views.progress.events import EventView
from plansurvive.plans.views.queries import BRIEF
from plansurvive.plans.views.steps.denied import will_not_run
from plansurvive.plans.views.summary import Summary
from plansurvive.runtime.feature import sends_to_each

__all__ = [
    "BriefView", "Choice", "Decision", "EventView", "InsidePage", "Links", "Listed", "LiveView", "Pending",
    "PlanView", "Started", "Summary", "all_inside", "answer", "approve", "begin", "brief", "call", "cancel",
    "changes", "clear_session", "decide", "decide_all", "deny", "drafted", "event", "events", "files_changed",
    "inside", "interrupt", "links", "list_plans", "live", "pause", "pending", "plan_file", "rerun", "resume", "show",
    "show_patiently", "stamps", "start", "summary", "text", "unpause", "wait", "watch",
]  # fmt: skip

DENIED_SECONDS = 3.0
"""How long a denial waits to learn what will not run because of it."""
AT_ONCE = 1_000
"""Events fetched per query."""


async def show(client: Client, plan: str) -> PlanView:
    """The whole plan: its status, and the status and result of every step."""
    return await ask_view(client, plan, PlanView, "plan")


async def show_patiently(client: Client, plan: str, say: Callable[[str], None]) -> PlanView:
    """As `show`, but waits for server and worker, calling `say` once, unless the plan has ended (NoWorker)."""
    return await patiently(client, plan, say, lambda: show(client, plan))


async def drafted(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> PlanView:
    """Wait until a plan is no draft: workers have checked it, or the LLM has written it or has given up.

    Returns its view; `problems` says what is wrong with it. Server and worker may be unavailable meanwhile; `say` is
    called then. Raises InvalidPlan if the worker rejected it.
    """
    async for _ in changes(client, plan, say):
        try:
            view = await show_patiently(client, plan, say)
        except PlanError as error:
            # A plan that was refused at its start answers no queries: its result raises the reason.
            if error.code != "QUERY_FAILED" or not await has_ended(client, plan):
                raise
            break
        if view.status in ENDED and view.problems:
            break  # refused: its result raises the reason
        if view.status is not PlanStatus.DRAFT:
            return view
    await wait(client, plan)
    return await show_patiently(client, plan, say)


async def brief(client: Client, plan: str, say: Callable[[str], None] = lambda _: None) -> BriefView:
    """An abridged view, for following a plan with any number of steps. Waits as `show_patiently` does."""
    return await patiently(client, plan, say, lambda: ask_view(client, plan, BriefView, "plan", BRIEF))


async def events(client: Client, plan: str, since: int = 0, limit: int = AT_ONCE) -> list[EventView]:
    """At most `limit` events with a sequence number above `since`, oldest first."""
    found = await ask(client, plan, "events", {"since": since, "limit": limit})
    return [EventView.read(each) for each in found]


async def text(client: Client, plan: str, limit: int | None = None, *, detailed: bool = False) -> str:
    """The plan as text, one line per step. `limit`: list at most this many steps, the active ones first.

    `detailed`: with ids, values and decisions, as `plan show` prints it.
    """
    wanted = ({"limit": limit} if limit else {}) | ({"detailed": True} if detailed else {})
    return str(await ask(client, plan, "text", *([wanted] if wanted else [])))


async def summary(client: Client, plan: str) -> Summary:
    """Status, steps by status, duration, files written and tokens: so far, or in total once the plan has ended."""
    return await ask_view(client, plan, Summary, "summary")


async def live(client: Client, plan: str) -> dict[str, LiveView]:
    """Attempts and progress of the steps that run at this moment, by step id; of LLM requests, under "".

    Steps of which nothing is known but that they run are left out. Needs no worker, and no answer from the plan.
    """
    return {name: each for name, each in by_step(await in_flight(client, plan)).items() if not each.is_plain}


async def watch(
    client: Client, plan: str, since: int = 0, say: Callable[[str], None] = lambda _: None, *, live: bool = False
) -> AsyncIterator[EventView]:
    """All events with a sequence number above `since`, past and future, until the plan has ended.

    Nothing is missed or repeated while server or worker are away: the generator calls `say` and continues when they
    are back. `live`: with events about running steps in between, each with the number of the one before: attempts
    that failed and progress (`client.live.feed`); they are not stored.
    """
    ended = await _ended(client, plan)
    if ended is not None:
        for past in progress.events(ended, since):
            yield EventView.read(past)
        return
    events = _stored(client, plan, since, say)
    async for each in with_live(client, plan, events, since) if live else events:
        yield each


async def approve(client: Client, plan: str, choice: Choice) -> str:
    """Approve a step, now or before it awaits approval. Returns the plan's sentence about the decision.

    A step of a child plan is named by its path, `deploy/upload`, or in the child itself.

    `choice.digest` (of `pending` or `call`) says what was decided on; without it, an approval is refused once an edit
    has changed the step. Raises Refused if the plan rejects the decision (its `code` says why), PlanClosed if the plan
    has ended. NoWorker: no worker has taken the decision yet; its message says what becomes of it.
    """
    plan, choice = await _located(client, plan, choice)
    return sentence(choice.step_id, await decisions.decide(client, plan, choice, approved=True))


async def deny(client: Client, plan: str, choice: Choice) -> str:
    """Deny a step: it is skipped and its dependents are blocked. Returns and raises as `approve`.

    The sentence also names the steps that will not run because of it.
    """
    plan, choice = await _located(client, plan, choice)
    said = sentence(choice.step_id, await decisions.decide(client, plan, choice, approved=False))
    with suppress(PlanError, RPCError):  # the denial counts, whether or not its consequences can be read now
        view = await ask_view(client, plan, PlanView, "plan", patience=DENIED_SECONDS)
        return said + will_not_run(view.steps, choice.step_id)
    return said


async def decide(client: Client, plan: str, choice: Choice, *, approved: bool) -> Decision:
    """Approve or deny a step; returns the decision as the plan recorded it. Raises as `approve`."""
    plan, choice = await _located(client, plan, choice)
    return await decisions.decide(client, plan, choice, approved=approved)


async def pause(client: Client, plan: str, by: str = "", *, via: Via = "", verified: bool = False) -> str:
    """Start no further steps until `unpause`; running steps continue. Returns and raises as `approve`."""
    return await decisions.control(client, plan, "pause", by, via, verified)


async def unpause(client: Client, plan: str, by: str = "", *, via: Via = "", verified: bool = False) -> str:
    """Start steps again after `pause`. Returns and raises as `approve`."""
    said = await decisions.control(client, plan, "unpause", by, via, verified)
    if sends_to_each(client):
        await release_below(client, plan, by, via, verified=verified)
    return said


async def begin(
    client: Client, plan: str, by: str = "", *, via: Via = "", verified: bool = False, version: int | None = None
) -> str:
    """Begin a plan that is in review. Returns and raises as `approve`.

    `version`: of the plan that was reviewed; the plan refuses (STALE_VERSION) if it has another one now.
    """
    return await decisions.control(client, plan, "begin", by, via, verified, version)


async def clear_session(client: Client, plan: str, by: str = "", *, via: Via = "", verified: bool = False) -> str:
    """Make a running plan or agent forget the files as it last saw them, and the agents.md it was shown.

    Later edits are of untracked files, and the agents.md come in again with the next reads; an agent's model gets them
    with its next request, and those of before no more. Repeating it is harmless. Returns and raises as `approve`.
    """
    return await decisions.control(client, plan, "clear_session", by, via, verified)


async def files_changed(client: Client, plan: str, paths: Sequence[str], by: str = "") -> None:
    """Report files or directories that someone else changed; the plan must reread them before it edits them.

    `paths` are relative to the plan's workspace. `client.watchers.file_watcher` reports them automatically. Sent as a
    signal: it needs no worker. Raises PlanClosed.
    """
    with about(plan):
        handle = client.get_workflow_handle(workflow_id(plan))
        await handle.signal("files_changed", {"paths": list(paths), "by": by}, rpc_timeout=RPC_TIMEOUT)


async def stamps(client: Client, plan: str, paths: Sequence[str] | None = None) -> dict[str, Stamp]:
    """File stamps by path: the files the plan has read or written, as it last saw them. `paths`: only these."""
    found = await ask(client, plan, "stamps", {"paths": None if paths is None else list(paths)})
    return {path: Stamp.model_validate(stamp) for path, stamp in found.items()}


async def cancel(client: Client, plan: str, *, once: bool = False) -> None:
    """Request cancellation: running steps clean up, nothing else starts. Returns at once; `wait` for the end.

    A plan that rolls back or has a `finally` does that first; cancelled once more, it ends without. `once`: a plan that
    is being cancelled already is left to do so. Raises PlanClosed if the plan has already ended.
    """
    description = await describe(client, plan)
    if description.status is not WorkflowExecutionStatus.RUNNING:
        name = plan_id(plan)
        raise PlanClosed(f"plan '{name}' has already ended and cannot be cancelled; see: plan summary {name}")
    handle = client.get_workflow_handle(workflow_id(plan))
    with about(plan):
        if description.raw_description.workflow_extended_info.cancel_requested:  # Temporal delivers only one
            if once:
                return
            await handle.signal("abandon", {}, rpc_timeout=RPC_TIMEOUT)
        else:
            await handle.cancel(rpc_timeout=RPC_TIMEOUT)


async def _stored(client: Client, plan: str, since: int, say: Callable[[str], None]) -> AsyncIterator[EventView]:
    """The events that the plan derives from its state, until it has ended."""
    async for _ in changes(client, plan, say):
        more = True
        while more:
            found = await patiently(client, plan, say, partial(events, client, plan, since))
            for each in found:
                since = each.seq
                yield each
            more = len(found) == AT_ONCE


async def _located(client: Client, plan: str, choice: Choice) -> tuple[str, Choice]:
    """The plan to decide in, and the decision as it names the step: `deploy/upload` is a step of a child plan."""
    plan, step_id = await located(client, plan, choice.step_id)
    return plan, choice.model_copy(update={"step_id": step_id})


async def _ended(client: Client, plan: str) -> Run | None:
    """The Run of an ended plan, from its end record; None if it has none, or if the server is unavailable."""
    try:
        return await end_records.run_of_ended(client, plan)
    except RPCError as error:
        if error.status in LOST:
            return None
        raise translated(error, plan) from error


async def answer(
    client: Client, plan: str, step_id: str, value: Any, *, by: str = "", digest: str | None = None,
    via: Via = "", verified: bool = False,
) -> str:  # fmt: skip
    """Answer the question of a step, now or before it asks. Returns the plan's sentence about the answer.

    A step of a child plan is named by its path, `deploy/upload`, or in the child itself.

    `value`: any JSON value that the question asks for; `digest` (`Pending.digest`): refuse if the question is another
    one; `via` and `verified`: as in `Choice`. Raises Refused with the reason (INVALID_ANSWER: the question stays;
    ALREADY_DECIDED, STALE_DIGEST, ...), PlanClosed, and NoWorker as `client.updates.update`.
    """
    plan, step_id = await located(client, plan, step_id)
    message: dict[str, Any] = {"stepId": step_id, "value": value}
    message |= authored(by, via, verified=verified) | ({"digest": digest} if digest else {})
    return str((await update(client, plan, "answer", message))["text"])


async def event(
    client: Client, plan: str, name: str, data: Any = None, *, by: str = "", via: Via = "", verified: bool = False
) -> str:
    """Tell a plan that something has happened, for the steps that wait for it, now or later, also in its child plans.

    `via` and `verified`: as in `Choice`. Returns the plan's sentence: which steps receive it, or that it is kept.
    Raises Refused, PlanClosed; NoWorker as `answer`.
    """
    message = {"name": name, **({"data": data} if data is not None else {}), **authored(by, via, verified=verified)}
    return str((await update(client, plan, "event", message))["text"])


PAGE = 500
"""Steps of one query."""


async def inside(
    client: Client, plan: str, step_id: str, *, since: int = 0, limit: int = 200, direct: bool = False,
    unfinished: bool = False,
) -> InsidePage:  # fmt: skip
    """The steps inside a block or loop, or those that fit a pattern such as `resize[*].thumb`, with their values.

    `since`: the number to begin with (`InsidePage.next`); `direct`: only the items, not the steps inside them;
    `unfinished`: without those that are completed or skipped (`InsidePage.done`). Raises PlanError UNKNOWN_STEP if the
    plan has no such step, or it has not started.
    """
    return await naming.inside(client, plan, step_id, since=since, limit=limit, direct=direct, unfinished=unfinished)


async def all_inside(client: Client, plan: str, step_id: str) -> AsyncIterator[InnerStep]:
    """Every step inside a block or loop. Raises as `inside`."""
    since: int | None = 0
    while since is not None:
        page = await inside(client, plan, step_id, since=since, limit=PAGE)
        for step in page.steps:
            yield step
        since = page.next
