"""Reads what the policy was asked from the histories of plans and agents, as long as the server keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import translated
from plansurvive.features.express.model import SEGMENT, SegmentEnd
from plansurvive.features.policy.judging import Asker, Judged
from plansurvive.features.policy.model import JudgedCall, Ruling
from plansurvive.features.policy.reporting import Call, PolicyReport, Seen, judged_of, outcome_of, report
from plansurvive.features.policy.resolving import command_of
from plansurvive.features.policy.rule import Policy
from plansurvive.plans.activity_io import JUDGE_CALL
from plansurvive.plans.model import ToolSpec

KINDS = "'PlanWorkflow', 'AgentWorkflow'"
ENDS = frozenset([
    "workflow_execution_completed_event_attributes",
    "workflow_execution_failed_event_attributes",
    "workflow_execution_canceled_event_attributes",
    "workflow_execution_terminated_event_attributes",
    "workflow_execution_timed_out_event_attributes",
])  # fmt: skip
MOST = 2_000
"""Workflows that are read."""


@dataclass
class _Made:
    """The calls of one step with the same arguments: it asks first, and is made again once somebody has decided."""

    tool: str
    args: Mapping[str, Any]
    said: JudgedCall | None
    approved: bool
    unknown: frozenset[str]
    time: datetime
    ruling: Ruling = field(default_factory=Ruling)
    code: str = ""
    by: list[str] = field(default_factory=list)
    in_segment: bool = False
    """It was made in a segment, of which history has no arguments."""


async def calls_since(
    client: Client, queue: str, since: datetime, tools: Mapping[str, ToolSpec]
) -> tuple[list[Call], int, bool]:
    """The calls of plans and agents started since then, how many of these there are, and whether there are more.

    Raises RPCError.
    """
    quoted = queue.replace("\\", "\\\\").replace("'", "\\'")
    query = f"WorkflowType IN ({KINDS}) AND TaskQueue = '{quoted}' AND StartTime > '{since.isoformat()}'"
    found, ids = list[Call](), set[str]()
    count = 0
    async for each in client.list_workflows(query):
        if count == MOST:
            return sorted(found, key=lambda call: call[0].time), len(ids), True
        count += 1
        ids.add(each.id)
        try:
            found += await _of_run(client, each.id, each.run_id or "", tools)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # else deleted since it was listed
                raise
    return sorted(found, key=lambda call: call[0].time), len(ids), False


async def reported(
    client: Client, queue: str, since: datetime, tools: Mapping[str, ToolSpec], other: Policy | None = None
) -> PolicyReport:
    """The report on plans and agents that were started since then. Raises NotConnected."""
    try:
        calls, plans, more = await calls_since(client, queue, since, tools)
    except RPCError as error:
        raise translated(error, "the plans") from error
    return report(calls, since, plans, other).model_copy(update={"more": more})


async def _of_run(client: Client, workflow_id: str, run_id: str, tools: Mapping[str, ToolSpec]) -> list[Call]:
    reader = _Reader(client)
    async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
        await reader.read(event)
    return [call for step, made in reader.made.items() for call in reader.seen(plan_id(workflow_id), step, made, tools)]


class _Reader:
    """Reads one history."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._calls: dict[int, tuple[str, _Made]] = {}
        self._segments = set[int]()
        self.made: dict[str, list[_Made]] = {}
        self._decided: dict[str, dict[bool, list[str]]] = {}
        self._late = set[str]()
        self._timers: dict[str, str] = {}
        self._ended = False

    async def read(self, event: HistoryEvent) -> None:
        """Take over what an event says."""
        name = event.WhichOneof("attributes") or ""
        found: Any = getattr(event, name) if name else None
        match name:
            case "activity_task_scheduled_event_attributes":
                await self._call(event, found)
            case "activity_task_completed_event_attributes" if found.scheduled_event_id in self._segments:
                self._in_segment(await self._only(found.result), event.event_time.ToDatetime(tzinfo=UTC))
            case "activity_task_completed_event_attributes":
                await self._ended_call(found, await self._only(found.result), "")
            case "activity_task_failed_event_attributes":
                info = _application(found.failure)
                await self._ended_call(found, await self._only(info.details), info.type)
            case "workflow_execution_signaled_event_attributes":
                self._message(found.signal_name, await self._only(found.input))
            case "workflow_execution_update_accepted_event_attributes":
                request = found.accepted_request.input
                self._message(request.name, await self._only(request.args))
            case "timer_started_event_attributes" if event.user_metadata.HasField("summary"):
                self._timers[found.timer_id] = str((await self._decoded([event.user_metadata.summary]))[0])
            case "timer_fired_event_attributes":
                what, _, step = self._timers.pop(found.timer_id, "").partition(" of ")
                if what.startswith("approval"):
                    self._late.add(step)
            case _ if name in ENDS:
                self._ended = True

    def seen(self, plan: str, step: str, made: list[_Made], tools: Mapping[str, ToolSpec]) -> list[Call]:
        """What came of the calls of a step."""
        decided, found = self._decided.get(step, {}), list[Call]()
        for number, each in enumerate(made):
            is_last = number == len(made) - 1
            by = each.by or (decided.get(True, []) if each.approved else decided.get(False, []) if is_last else [])
            outcome = outcome_of(
                each.ruling.decide, each.code, judged=bool(each.ruling.judged),
                denied=is_last and False in decided, approved=each.approved and (bool(each.by) or True in decided),
                overridden=any(vote.override for vote in (each.said.decided if each.said else ())),
                unanswered=step in self._late, ended=self._ended,
            )  # fmt: skip
            seen = Seen(plan=plan, step=step, tool=each.tool, outcome=outcome, rules=each.ruling.rules,
                        hash=each.ruling.hash, by=by, time=each.time)  # fmt: skip
            found.append((seen, None if each.in_segment else _judged(each, tools)))
        return found

    async def _call(self, event: HistoryEvent, found: Any) -> None:
        sent, tool = await self._only(found.input), found.activity_type.name
        if tool == SEGMENT:
            self._segments.add(event.event_id)
        if tool == JUDGE_CALL and isinstance(sent, dict):
            tool, sent = str(sent.get("tool")), sent.get("call")
        if not (isinstance(sent, dict) and isinstance(sent.get("args"), dict) and isinstance(sent.get("stepId"), str)):
            return
        step, parts = sent["stepId"], sent.get("parts")
        said = parts.get(JudgedCall.feature) if isinstance(parts, dict) else None
        deferred = frozenset(str(each[0]) for each in sent.get("deferred") or () if each)
        known = _said(said)
        by = [each.by for each in known.decided] if known else []
        made = _Made(tool, sent["args"], known, bool(sent.get("approved")), deferred,
                     event.event_time.ToDatetime(tzinfo=UTC), by=by)  # fmt: skip
        earlier = self.made.setdefault(step, [])
        if earlier and earlier[-1].code == "APPROVAL_REQUIRED" and earlier[-1].args == made.args:
            earlier.pop()  # it asked first, and is made now
        earlier.append(made)
        self._calls[event.event_id] = (step, made)

    async def _ended_call(self, found: Any, said: Any, code: str) -> None:
        call = self._calls.pop(found.scheduled_event_id, None)
        if call is None:
            return
        made = call[1]
        made.code, made.ruling = code, _ruling(said.get("parts") if isinstance(said, dict) else None)

    def _in_segment(self, said: Any, time: datetime) -> None:
        """The calls that a segment has made; what it has left is made by an activity of its own."""
        try:
            calls = SegmentEnd.model_validate(said).calls
        except ValidationError:  # completed by hand, or unreadable here
            return
        for call in calls:
            if call.left:
                continue
            made = _Made(call.tool, {}, JudgedCall(), False, frozenset(), call.began or time, in_segment=True)
            parts: Any = call.returned.parts if call.returned is not None else None
            if call.failed is not None:
                parts, made.code = call.failed.details.get("parts"), call.failed.attempt.code or ""
            made.ruling = _ruling(parts)
            self.made.setdefault(call.step_id, []).append(made)

    def _message(self, name: str, sent: Any) -> None:
        if name not in ("approve", "deny", "decide") or not isinstance(sent, dict):
            return
        approved = sent.get("approved") is True if name == "decide" else name == "approve"
        by = sent.get("by")
        self._decided.setdefault(str(sent.get("stepId")), {}).setdefault(approved, []).append(
            by[:200] if isinstance(by, str) else ""
        )

    async def _only(self, payloads: Payloads) -> Any:
        found = await self._decoded(list(payloads.payloads))
        return found[0] if found else None

    async def _decoded(self, payloads: list[Payload]) -> list[Any]:
        """The values; None for what cannot be read here."""
        try:
            return list(await self._client.data_converter.decode(payloads)) if payloads else []
        except Exception:  # decoding alone: whatever a parser, a codec or a storage raises
            return [None]


def _ruling(parts: Any) -> Ruling:
    """What the policy said of a call, by what it has returned or left."""
    said = parts.get(Ruling.feature) if isinstance(parts, dict) else None
    try:
        return Ruling.model_validate(said) if said else Ruling()
    except ValidationError:  # completed by hand
        return Ruling()


def _said(said: Any) -> JudgedCall | None:
    try:
        return JudgedCall.model_validate(said) if said else None
    except ValidationError:
        return None


def _application(failure: Any) -> Any:
    """The innermost failure of an application, which has the code and the details."""
    while not failure.application_failure_info.type and failure.HasField("cause"):
        failure = failure.cause
    return failure.application_failure_info


def _judged(made: _Made, tools: Mapping[str, ToolSpec]) -> Judged:
    command = command_of(tools[made.tool]) if made.tool in tools else ""
    return judged_of(made.tool, made.args, command, made.unknown, Asker.of(made.said))
