"""Approving, denying, pausing and the like: a message to the plan, and the certainty that it counted.

A signal gets no answer, so after one the plan's log is read: it says whether the plan took it, or why it was refused.
An update is answered at once; it needs a worker that listens.
"""

from __future__ import annotations

from typing import Any, Literal

from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from client.errors import NoWorker, PlanClosed
from client.ids import workflow_id
from client.rpc import PATIENCE, RPC_TIMEOUT, about, ask_view
from plans.errors import PlanError, Refused
from plans.model import Value
from plans.run import Decision
from plans.views.models import BriefView, EntryView
from plans.views.queries import BRIEF
from runtime.until import until

Verb = Literal["approve", "deny"]
Control = Literal["begin", "pause", "unpause"]
_DONE = {"approve": "approved", "deny": "denied", "begin": "begun", "pause": "paused", "unpause": "unpaused"}


class Choice(Value):
    """What a person decides about a step."""

    step_id: str
    by: str = ""
    comment: str = ""
    args: dict[str, Any] | None = None
    version: int | None = None
    remember: bool = False
    """Approve every other step with this tool as well, in this run."""

    def message(self) -> dict[str, Any]:
        """As the plan reads it."""
        return self.model_dump(mode="json", exclude_none=True, exclude=None if self.remember else {"remember"})


async def by_signal(client: Client, plan: str, verb: Verb, choice: Choice) -> str:
    """Send the decision and see it recorded; returns the plan's sentence about it.

    Raises Refused with the plan's own sentence, PlanClosed, PlanNotFound; NoWorker when the decision is delivered, but
    nobody is there to take it yet.
    """
    message = {name: value for name, value in choice.message().items() if verb == "approve" or name != "args"}
    return await _signalled(client, plan, verb, message, choice.step_id)


async def control(client: Client, plan: str, verb: Control, by: str = "") -> str:
    """Begin, pause or unpause a plan and see it recorded; otherwise as `by_signal`."""
    return await _signalled(client, plan, verb, {"by": by} if by else {}, None)


async def by_update(client: Client, plan: str, choice: Choice, approved: bool) -> Decision:
    """Send the decision and get the plan's answer. Raises Refused, PlanClosed, PlanNotFound, NoWorker."""
    handle = client.get_workflow_handle(workflow_id(plan))
    message = choice.message() | {"approved": approved}
    try:
        with about(plan):
            answer = await handle.execute_update("decide", message, rpc_timeout=RPC_TIMEOUT)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        if not isinstance(cause, ApplicationError):
            raise PlanError(str(cause), "REFUSED") from error
        kind = PlanClosed if cause.type == "PLAN_CLOSED" else Refused
        raise kind(cause.message, cause.type) from error
    except RPCTimeoutOrCancelledError as error:
        raise NoWorker(f"plan '{plan}' did not answer; is there a worker? start one: plan worker") from error
    return Decision.model_validate(answer)


async def _signalled(client: Client, plan: str, verb: str, message: dict[str, Any], step_id: str | None) -> str:
    before = await _number(client, plan)
    with about(plan):
        await client.get_workflow_handle(workflow_id(plan)).signal(verb, message, rpc_timeout=RPC_TIMEOUT)
    if before is None:
        raise NoWorker(f"delivered, and counts as soon as a worker serves plan '{plan}'; start one: plan worker")
    return await _outcome(client, plan, verb, step_id, before)


async def _number(client: Client, plan: str) -> int | None:
    """The number of the newest event; None when nobody can tell."""
    try:
        return (await ask_view(client, plan, BriefView, "plan", BRIEF)).seq
    except NoWorker:
        return None


async def _outcome(client: Client, plan: str, verb: str, step_id: str | None, before: int) -> str:
    async def look() -> str | None:
        log = (await ask_view(client, plan, BriefView, "plan", BRIEF)).log
        fresh = [entry for entry in log if entry.seq > before]
        mine = [entry for entry in fresh if entry.step_id == step_id and entry.kind == _DONE[verb]]
        if mine:
            return mine[-1].text
        refusal = next((entry for entry in fresh if _refuses(entry, verb, step_id)), None)
        if refusal:
            code, _, sentence = refusal.text.removeprefix("REFUSED:").partition(f" {verb}: ")
            raise Refused(sentence, code)
        return None

    try:
        return str(await until(look, PATIENCE, every=0.1))
    except TimeoutError:
        text = f"{verb} was delivered, but the plan has not recorded it after {PATIENCE:.0f} s; see `plan show {plan}`"
        raise PlanError(text, "UNCONFIRMED") from None


def _refuses(entry: EntryView, verb: str, step_id: str | None) -> bool:
    about_step = entry.step_id in (None, step_id)
    return entry.kind == "refused" and about_step and f" {verb}: " in entry.text
