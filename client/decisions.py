"""Approving, denying, pausing and the like: an update, which the plan itself answers.

Without a worker there is no answer. The message then goes out as a signal, which the server stores: it counts as soon
as a worker serves the plan, and NoWorker says so. Where an update is not possible (a worker of an older version does
not know it, the server takes no more of them), the signal is sent as well, and the plan's log says what became of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from client.edits import update
from client.errors import NoWorker
from client.ids import workflow_id
from client.rpc import PATIENCE, RPC_TIMEOUT, SERVER_REFUSED, about, ask, ask_view
from plans.errors import PlanError, Refused
from plans.execution.approvals import sentence
from plans.log import LogKind
from plans.model import Value
from plans.run import Decision
from plans.views.models import BriefView
from plans.views.queries import BRIEF
from runtime.wait import until

Verb = Literal["approve", "deny"]
Control = Literal["begin", "pause", "unpause"]
METADATA = "__temporal_workflow_metadata"
"""The query by which a worker tells which messages its workflow takes; answered by the SDK (Temporal's UI uses it)."""
_SIGNAL_INSTEAD = frozenset((NoWorker.code, SERVER_REFUSED))
"""Errors of an update after which the signal is sent: its worker has just ended, or the plan has too many updates (the
server takes 10 at a time and 2,000 in a run). A plan that took both refuses the second, which harms nothing."""
_DONE = {
    "approve": LogKind.APPROVED, "deny": LogKind.DENIED,
    "begin": LogKind.BEGUN, "pause": LogKind.PAUSED, "unpause": LogKind.UNPAUSED,
}  # fmt: skip


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


class _Signal(NamedTuple):
    """The same message for who takes no update."""

    name: Verb | Control
    message: dict[str, Any]
    step_id: str | None = None


async def decide(client: Client, plan: str, choice: Choice, approved: bool) -> Decision:
    """Send the decision and get the plan's answer. Raises Refused, PlanClosed, PlanNotFound, NoWorker."""
    return Decision.model_validate(await update(client, plan, "decide", choice.message() | {"approved": approved}))


async def send_decision(client: Client, plan: str, verb: Verb, choice: Choice) -> str:
    """Send the decision, also before there is a worker; returns the plan's sentence about it.

    Raises Refused with the plan's own sentence, PlanClosed, PlanNotFound; NoWorker when the decision is delivered, but
    nobody is there to take it yet.
    """
    message = {name: value for name, value in choice.message().items() if verb == "approve" or name != "args"}
    signal = _Signal(verb, message, choice.step_id)
    answer = await _answer(client, plan, "decide", message | {"approved": verb == "approve"}, signal)
    return answer if isinstance(answer, str) else sentence(choice.step_id, Decision.model_validate(answer))


async def control(client: Client, plan: str, verb: Control, by: str = "") -> str:
    """Begin, pause or unpause a plan; returns and raises as `send_decision`."""
    message = {"by": by} if by else {}
    answer = await _answer(client, plan, "control", {"action": verb, **message}, _Signal(verb, message))
    return answer if isinstance(answer, str) else str(answer["text"])


async def _answer(
    client: Client, plan: str, name: str, message: dict[str, Any], signal: _Signal
) -> dict[str, Any] | str:
    """The answer to an update; a sentence where the plan took the signal instead."""
    known = await _updates(client, plan)
    if known is None:
        await _send(client, plan, signal)
        raise NoWorker(f"delivered, and counts as soon as a worker serves plan '{plan}'; start one: plan worker")
    if name in known:
        try:
            return await update(client, plan, name, message, patience=PATIENCE)
        except PlanError as error:
            if error.code not in _SIGNAL_INSTEAD:
                raise
    return await _signalled(client, plan, signal)


async def _updates(client: Client, plan: str) -> Collection[str] | None:
    """The updates that the plan's worker knows; None when no worker answers."""
    try:
        metadata: WorkflowMetadata = await ask(client, plan, METADATA)
    except NoWorker:
        return None
    return {each.name for each in metadata.definition.update_definitions}


async def _send(client: Client, plan: str, signal: _Signal) -> None:
    with about(plan):
        handle = client.get_workflow_handle(workflow_id(plan))
        await handle.signal(signal.name, signal.message, rpc_timeout=RPC_TIMEOUT)


async def _signalled(client: Client, plan: str, signal: _Signal) -> str:
    """Send the signal, and return the plan's sentence about it. Raises Refused with its sentence."""
    before = (await ask_view(client, plan, BriefView, "plan", BRIEF)).seq
    await _send(client, plan, signal)

    async def look() -> str | None:
        for entry in (await ask_view(client, plan, BriefView, "plan", BRIEF)).log:
            if entry.seq <= before or entry.step_id not in (None, signal.step_id):
                continue
            if entry.kind == _DONE[signal.name]:
                return entry.text
            if entry.kind == LogKind.REFUSED and entry.subject in (None, signal.name):
                raise Refused(entry.text, entry.code or "REFUSED")  # an older worker gives no code
        return None

    try:
        return str(await until(look, PATIENCE, every=0.1))
    except TimeoutError:
        text = f"{signal.name} was delivered, but the plan has not recorded it after {PATIENCE:.0f} s"
        raise PlanError(f"{text}; see `plan show {plan}`", "UNCONFIRMED") from None
