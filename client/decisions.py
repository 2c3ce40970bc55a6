"""Sends decisions and controls (approve, deny, begin, pause, clear_session, ...) to a plan, as updates that it answers.

An update needs a worker. Without one, the message is sent as a signal, which the server stores until a worker handles
it, and NoWorker says so. The signal is also the fallback where the update is not possible (an older worker does not
know it, or the server's limit of updates is reached); the outcome is then read from the plan's log.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client

from client.edits import update
from client.errors import NoWorker
from client.ids import plan_id, workflow_id
from client.rpc import PATIENCE, RPC_TIMEOUT, SERVER_REFUSED, about, ask, ask_view
from plans.errors import PlanError, Refused
from plans.execution.approvals import sentence
from plans.execution.messages import Via, check_size
from plans.log import LogKind
from plans.model import Value
from plans.run import Decision
from plans.views.models import BriefView, PendingView
from plans.views.queries import BRIEF
from runtime.wait import until

Verb = Literal["approve", "deny"]
Control = Literal["begin", "pause", "unpause", "clear_session"]
Word = Literal["answer", "event"]
"""Messages for steps that ask or wait."""
METADATA = "__temporal_workflow_metadata"
"""Built-in query of the SDK that lists the workflow's message handlers; Temporal's UI uses it too."""
_SIGNAL_INSTEAD = frozenset((NoWorker.code, SERVER_REFUSED))
"""Errors of an update after which the signal is sent: the worker has just stopped, or the plan has too many updates
(the server allows 10 in flight and 2,000 per run). If the plan gets both, it refuses the second, which is harmless."""
_DONE = {
    "approve": LogKind.APPROVED, "deny": LogKind.DENIED,
    "begin": LogKind.BEGUN, "pause": LogKind.PAUSED, "unpause": LogKind.UNPAUSED, "clear_session": LogKind.CLEARED,
    "answer": LogKind.ANSWERED,
}  # fmt: skip


class Choice(Value):
    """A person's decision about one step, for `approve`, `deny` and `decide`."""

    step_id: str
    by: str = ""
    """Who decides; recorded in the plan."""
    comment: str = ""
    """Recorded in the plan."""
    args: dict[str, Any] | None = None
    """Arguments to run the step with instead of its own; approvals only."""
    version: int | None = None
    """The plan version that was decided on (`Pending.version`); the decision is refused if the plan has another one."""
    digest: str | None = None
    """The call that was decided on (`Pending.digest`, `CallView.digest`); the decision is refused if it is another."""
    remember: bool = False
    """Also approve further calls of this tool, in this run: with the same network access, queue and workspace."""
    via: Via = ""
    """Where the person decides; empty: by command or program."""
    verified: bool = False
    """Whether a login has verified `by`. Recorded only where decisions are signed: others could claim it."""

    def naming(self, item: PendingView) -> Choice:
        """The choice about exactly what `item` shows; by version where an older worker sends no digest."""
        return self.model_copy(update={"digest": item.digest} if item.digest else {"version": item.version})

    def message(self) -> dict[str, Any]:
        """The JSON message that the plan expects, without what an older worker would not understand for nothing."""
        unused = {name for name in ("remember", "via", "verified") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude_none=True, exclude=unused)


class Signal(NamedTuple):
    """The signal to send where the update is not possible. `step_id`: the step it is about, if any."""

    name: Verb | Control | Word
    message: dict[str, Any]
    step_id: str | None = None


async def decide(client: Client, plan: str, choice: Choice, approved: bool) -> Decision:
    """Send the decision as an update, without a fallback. Raises Refused, PlanClosed, PlanNotFound, NoWorker."""
    return Decision.model_validate(await update(client, plan, "decide", choice.message() | {"approved": approved}))


async def send_decision(client: Client, plan: str, verb: Verb, choice: Choice) -> str:
    """Send the decision, even before there is a worker; returns the plan's sentence about it.

    Raises Refused with the plan's sentence, PlanClosed, PlanNotFound; NoWorker if the decision was delivered but no
    worker has handled it yet; PlanError (UNCONFIRMED) if a signal was not recorded in time.
    """
    message = {name: value for name, value in choice.message().items() if verb == "approve" or name != "args"}
    signal = Signal(verb, message, choice.step_id)
    answer = await delivered(client, plan, "decide", message | {"approved": verb == "approve"}, signal)
    return answer if isinstance(answer, str) else sentence(choice.step_id, Decision.model_validate(answer))


async def control(
    client: Client, plan: str, verb: Control, by: str = "", via: Via = "", verified: bool = False,
    version: int | None = None,
) -> str:  # fmt: skip
    """Begin, pause or unpause a plan, or clear its session; returns and raises as `send_decision`.

    `version`: of the plan that was reviewed, to begin no other.
    """
    message = authored(by, via, verified=verified) | ({} if version is None else {"version": version})
    answer = await delivered(client, plan, "control", {"action": verb, **message}, Signal(verb, message))
    return answer if isinstance(answer, str) else str(answer["text"])


def authored(by: str, via: Via, *, verified: bool) -> dict[str, Any]:
    """The part of a message that says who speaks; without what an older worker would not understand for nothing."""
    return {name: each for name, each in (("by", by), ("via", via), ("verified", verified)) if each}


async def delivered(
    client: Client, plan: str, name: str, message: dict[str, Any], signal: Signal
) -> dict[str, Any] | str:
    """The result of the update, or the sentence from the plan's log if the signal was sent instead."""
    known = await _updates(client, plan)
    if known is None:
        await _send(client, plan, signal)
        text = f"{signal.name} was delivered and takes effect as soon as a worker serves plan '{plan_id(plan)}'"
        raise NoWorker(f"{text}; start one: plan worker")
    if name in known:
        try:
            return await update(client, plan, name, message, patience=PATIENCE)
        except PlanError as error:
            if error.code not in _SIGNAL_INSTEAD:
                raise
    if signal.name == "event":  # one that no step waits for leaves nothing to see in the log
        await _send(client, plan, signal)
        return "the event was delivered"
    return await _signalled(client, plan, signal)


async def _updates(client: Client, plan: str) -> Collection[str] | None:
    """Names of the updates that the plan's worker handles; None if no worker answers."""
    try:
        metadata: WorkflowMetadata = await ask(client, plan, METADATA)
    except NoWorker:
        return None
    return {each.name for each in metadata.definition.update_definitions}


async def _send(client: Client, plan: str, signal: Signal) -> None:
    check_size(signal.message)
    with about(plan):
        handle = client.get_workflow_handle(workflow_id(plan))
        await handle.signal(signal.name, signal.message, rpc_timeout=RPC_TIMEOUT)


async def _signalled(client: Client, plan: str, signal: Signal) -> str:
    """Send the signal and return the plan's sentence about it, read from its log. Raises Refused with its sentence."""
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
        text = f"{signal.name} was delivered, but plan '{plan_id(plan)}' has not recorded it after {PATIENCE:.0f} s"
        raise PlanError(f"{text}; check with: plan show {plan_id(plan)}", "UNCONFIRMED") from None
