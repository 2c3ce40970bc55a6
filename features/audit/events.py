"""Turns the events of a workflow's history into the entries of its audit record.

Every message and every call is an event; workflow tasks and running timers are not acts of anybody. The last event of a
run that continues as new is left out, as is the start of the next one: the record is of the plan, not of its runs. A
run that a reset made begins with a copy of the events before; its entries begin with the reset.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import ContinueAsNewInitiator, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from plansurvive.features.audit.entries import Act, Want, digest_of, short
from plansurvive.features.audit.messages import hexadecimal, keys_of, of_message, of_start
from plansurvive.features.audit.outcomes import DECIDES, Sent
from plansurvive.features.audit.signals import RECORDED, Signals, between_workflows
from plansurvive.features.express.model import SEGMENT, CallEnd, SegmentEnd
from plansurvive.features.policy.model import JudgedCall, Ruling, Spoken
from plansurvive.features.signing.model import NONCE, nonce_after
from plansurvive.plans.activity_io import JUDGE_CALL
from plansurvive.plans.execution.deciding.reasons import ASKED_BY_TOOL
from plansurvive.plans.signature import PAGE

MARKER, LOCAL = "marker_recorded_event_attributes", "core_local_activity"
"""What history has of a local activity, and the name that the SDK gives it."""
CONTINUED = "workflow_execution_continued_as_new_event_attributes"
RESET = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
REPEATS: Mapping[int, str] = {
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY: "retry",
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE: "cron",
}
"""Why the server has started a run with the argument of the one before."""
SCHEDULED_BY = "TemporalScheduledById"
ENDS = {
    "workflow_execution_completed_event_attributes": "completed",
    "workflow_execution_failed_event_attributes": "failed",
    "workflow_execution_canceled_event_attributes": "cancelled",
    "workflow_execution_timed_out_event_attributes": "timed out",
    "workflow_execution_terminated_event_attributes": "terminated",
}
CALLS = {
    "activity_task_completed_event_attributes": "completed",
    "activity_task_failed_event_attributes": "failed",
    "activity_task_timed_out_event_attributes": "timed out",
    "activity_task_canceled_event_attributes": "cancelled",
}
JSON = b"json/plain"
CHECK = "check_plan"
"""The local activity that gives a plan its facts."""
ASKED = "asked first"
"""Outcome of a call whose tool found that a person has to approve it: nothing was done, and nothing has failed."""
CHILDREN = {
    "start_child_workflow_execution_failed_event_attributes": "not started",
    "child_workflow_execution_completed_event_attributes": "completed",
    "child_workflow_execution_failed_event_attributes": "failed",
    "child_workflow_execution_canceled_event_attributes": "cancelled",
    "child_workflow_execution_timed_out_event_attributes": "timed out",
    "child_workflow_execution_terminated_event_attributes": "terminated",
}


class Reader:
    """Reads the events of one workflow, all runs of it in order."""

    def __init__(self, client: Client, workflow_id: str) -> None:
        self._client, self.workflow_id = client, workflow_id
        self._nonce = self._previous = ""
        self.signals, self._count = Signals(), 0
        self._calls: dict[int, dict[str, Any]] = {}
        self._attempts: dict[int, tuple[int, str]] = {}
        self._updates: dict[str, dict[str, Any]] = {}
        self._timers: dict[str, str] = {}
        self._run, self._is_copy = "", False
        self.before = set[str]()
        """Runs that those that were read go on from."""
        self._sent: dict[str, dict[int, Sent]] = {}
        """By run and event, the signals: a reset copies them to another run, where they have the same numbers."""
        self._readers: Mapping[str, Callable[[HistoryEvent, Any], Awaitable[dict[str, Any] | None]]] = {
            "workflow_execution_started_event_attributes": self._started,
            "workflow_execution_signaled_event_attributes": self._signalled,
            "workflow_execution_update_accepted_event_attributes": self._accepted,
            "workflow_execution_update_completed_event_attributes": self._answered,
            "workflow_execution_cancel_requested_event_attributes": self._cancel,
            "activity_task_scheduled_event_attributes": self._call,
            "activity_task_started_event_attributes": self._attempt,
            "start_child_workflow_execution_initiated_event_attributes": self._child,
            "timer_started_event_attributes": self._timer,
            "timer_fired_event_attributes": self._time_over,
            "workflow_properties_modified_event_attributes": self._noted,
        }

    async def acts(self, event: HistoryEvent) -> list[Act]:
        """The entries that an event makes: one or none; others say what became of signals."""
        time = event.event_time.ToDatetime(tzinfo=UTC)
        found = [*await self._of_signals(event, time), *await self._inside(event, time)]
        if (fields := await self._fields(event)) is not None:
            found.append(Act(time=time, **{key: each for key, each in fields.items() if each}))
        if self._is_copy:
            found = self._copied(event, time)
        self._count += len(found)
        return found

    def _copied(self, event: HistoryEvent, time: datetime) -> list[Act]:
        """An event before the reset that made this run: the record has it already, unless it is the reset itself."""
        found = event.workflow_task_failed_event_attributes
        if found.cause != RESET or found.new_run_id != self._run:
            return []
        self._is_copy = False
        self.before.add(found.base_run_id)
        own, base = self._sent[self._run], self._sent.get(found.base_run_id, {})
        self.signals.sent = [base.get(number, each._replace(entry=0)) for number, each in own.items()]
        self._sent[self._run] = {number: base.get(number, each) for number, each in own.items()}
        return [
            Act(time=time, action="reset", client=short(found.identity), outcome=f"to event {event.event_id}",
                text=short(found.failure.message))
        ]  # fmt: skip

    async def _of_signals(self, event: HistoryEvent, time: datetime) -> list[Act]:
        """What an event says of the signals before it, or of the keys with which those after it are signed."""
        name = event.WhichOneof("attributes") or ""
        if name in ENDS:
            return self.signals.at_end(time)
        if name == CONTINUED:
            return self.signals.at_continue(await self._only(getattr(event, name).input), time)
        found = getattr(event, MARKER) if name == MARKER else None
        if found is None or found.marker_name != LOCAL or "result" not in found.details:
            return []
        about = await self._only(found.details["data"])
        kind = about.get("activity_type") if isinstance(about, dict) else None
        if kind == CHECK:
            keys = keys_of(await self._only(found.details["result"]))
            return [Act(time=time, action="keys known", keys=keys)] if keys else []
        if kind != RECORDED:
            return []
        return self.signals.at_record(await self._only(found.details["result"]), time)

    async def _inside(self, event: HistoryEvent, time: datetime) -> list[Act]:
        """The calls of steps that an activity has made in their place, as activities of their own would be."""
        if event.WhichOneof("attributes") != "activity_task_completed_event_attributes":
            return []
        found = event.activity_task_completed_event_attributes
        if self._calls.get(found.scheduled_event_id, {}).get("tool") != SEGMENT:
            return []
        worker, acts = self._attempts.get(found.scheduled_event_id, (0, ""))[1], list[Act]()
        for call in _calls_of(await self._only(found.result)):
            about: dict[str, Any] = {"tool": short(call.tool), "step_id": call.step_id[:1_000], "args": call.args}
            acts.append(Act(time=min(call.began or time, time), action="step started", **about))
            code = short(call.failed.attempt.code) if call.failed is not None else ""
            outcome = "failed" if call.failed is not None else "completed"
            end = about | {"outcome": outcome, "code": code, "attempt": 1, "client": worker}
            end |= _ruled(call.returned.parts.get(Ruling.feature)) if call.returned is not None else {}
            acts.append(Act(time=min(call.ended or time, time), action="step ended", **end))
        return acts

    async def _fields(self, event: HistoryEvent) -> dict[str, Any] | None:
        name = event.WhichOneof("attributes") or ""
        read = self._readers.get(name)
        attributes = getattr(event, name) if name else None
        if name in ENDS:
            return self._end(name, attributes)
        if name in CALLS:
            return await self._call_ended(name, attributes)
        if name in CHILDREN:
            return self._child_ended(name, attributes)
        return await read(event, attributes) if read is not None else None

    def of_next_run(self, run_id: str) -> None:
        """The next events are of this run of the workflow: their numbers begin again."""
        self._calls, self._attempts, self._timers, self._updates = {}, {}, {}, {}
        self._run, self._sent[run_id] = run_id, {}
        self.signals.of_next_run()

    async def _started(self, event: HistoryEvent, found: Any) -> dict[str, Any] | None:
        del event
        self._is_copy = found.original_execution_run_id != self._run
        self.before |= {found.first_execution_run_id, found.continued_execution_run_id} - {"", self._run}
        if NONCE in found.memo.fields:
            self._renew(*await self._decoded([found.memo.fields[NONCE]]))
        if found.continued_execution_run_id and found.initiator not in REPEATS:
            return None
        [schedule] = await self._decoded([found.search_attributes.indexed_fields[SCHEDULED_BY]]) if (
            SCHEDULED_BY in found.search_attributes.indexed_fields
        ) else [""]  # fmt: skip
        parent = found.parent_workflow_execution.workflow_id
        fields = of_start(await self._only(found.input), self.workflow_id, short(schedule, 1_000))
        fields["linked"] = parent[:1_000] or fields["linked"]
        fields["outcome"] = REPEATS.get(found.initiator, fields["outcome"])
        return {"action": "started", "client": short(found.identity), "tool": short(found.workflow_type.name)} | fields

    async def _signalled(self, event: HistoryEvent, found: Any) -> dict[str, Any] | None:
        if found.signal_name in between_workflows():
            return None
        fields = of_message(found.signal_name, await self._only(found.input), self._nonce, self._previous)
        sent = Sent(self._count + 1, fields["action"], fields.get("step_id", ""))
        self.signals.sent.append(sent)
        self._sent[self._run][event.event_id] = sent
        return fields | {"client": short(found.identity), "outcome": "sent"}

    async def _accepted(self, event: HistoryEvent, found: Any) -> dict[str, Any]:
        del event
        request = found.accepted_request
        fields = of_message(request.input.name, await self._only(request.input.args), self._nonce, self._previous)
        fields |= {"client": short(request.meta.identity), "outcome": "accepted"}
        self._updates[found.protocol_instance_id] = fields
        if fields["action"] in DECIDES:
            self.signals.decided(fields.get("step_id", ""))
        return fields

    async def _answered(self, event: HistoryEvent, found: Any) -> dict[str, Any] | None:
        """What an update came to, where acceptance does not say it: it failed, or made another version."""
        del event
        sent = self._updates.pop(found.meta.update_id, {})
        about = {"action": f"{sent.get('action', 'message')} ended", "step_id": sent.get("step_id", "")}
        if found.outcome.HasField("failure"):
            return about | {"outcome": "refused", "code": code_of(found.outcome.failure)}
        answer = await self._only(found.outcome.success)
        version = answer.get("version") if isinstance(answer, dict) else None
        if not isinstance(version, int) or sent.get("action") not in ("edit", "regenerate"):
            return None
        return about | {"outcome": "done", "version": version}

    async def _cancel(self, event: HistoryEvent, found: Any) -> dict[str, Any]:
        del event
        parent = found.external_workflow_execution.workflow_id
        return {"action": "cancel", "client": short(found.identity), "outcome": "accepted", "linked": parent[:1_000]}

    async def _call(self, event: HistoryEvent, found: Any) -> dict[str, Any] | None:
        sent = await self._only(found.input)
        if found.activity_type.name == JUDGE_CALL and isinstance(sent, dict) and isinstance(sent.get("call"), dict):
            about = sent["call"]
            call = {"tool": short(sent.get("tool")), "step_id": short(about.get("stepId"), 1_000),
                    "args": digest_of(about.get("args")), **_told(about.get("parts"))}  # fmt: skip
            self._calls[event.event_id] = {**call, "of": JUDGE_CALL}
            return None
        call = {"tool": short(found.activity_type.name), "step_id": found.activity_id[:1_000]}
        if isinstance(sent, dict) and isinstance(sent.get("stepId"), str) and "args" in sent:
            call |= {"step_id": sent["stepId"][:1_000], "args": digest_of(sent["args"])}
            call["of"] = "step"
        self._calls[event.event_id] = call
        told = _told(sent.get("parts") if isinstance(sent, dict) else None)
        return {"action": f"{call.get('of', 'activity')} started", **_without_of(call), **told}

    async def _noted(self, event: HistoryEvent, found: Any) -> None:
        """What the messages from here on are signed for."""
        del event
        if NONCE in found.upserted_memo.fields:
            self._renew(*await self._decoded([found.upserted_memo.fields[NONCE]]))

    def _renew(self, nonce: Any) -> None:
        """A run that has honoured many messages takes the next nonce; after a reset, no earlier one counts."""
        known, self._nonce = self._nonce, short(nonce)
        if self._nonce != known:
            self._previous = known if known and self._nonce == nonce_after(known) else ""

    async def _attempt(self, event: HistoryEvent, found: Any) -> None:
        del event
        self._attempts[found.scheduled_event_id] = (found.attempt, short(found.identity))

    async def _call_ended(self, name: str, found: Any) -> dict[str, Any]:
        call = self._calls.pop(found.scheduled_event_id, {})
        attempt, worker = self._attempts.pop(found.scheduled_event_id, (0, ""))
        code = code_of(found.failure) if hasattr(found, "failure") else ""
        outcome, code = (ASKED, "") if code == ASKED_BY_TOOL else (CALLS[name], code)
        action = "judged" if call.get("of") == JUDGE_CALL else f"{call.get('of', 'activity')} ended"
        return {
            "action": action, **_without_of(call), "outcome": outcome, "attempt": attempt, "client": worker,
            "code": code, **(await self._ruling(found) if "of" in call else {}),
        }  # fmt: skip

    async def _ruling(self, found: Any) -> dict[str, Any]:
        """What the policy said of a call that has ended; empty if nothing."""
        details = _details(found.failure) if hasattr(found, "failure") else getattr(found, "result", Payloads())
        if all(b'"decide"' not in each.data and each.metadata.get("encoding") == JSON for each in details.payloads):
            return {}  # most results are large and say nothing of it
        said = await self._only(details)
        parts = said.get("parts") if isinstance(said, dict) else None
        return _ruled(parts.get(Ruling.feature)) if isinstance(parts, dict) else {}

    async def _child(self, event: HistoryEvent, found: Any) -> dict[str, Any]:
        del event
        sent = await self._only(found.input)
        start = of_start(sent, found.workflow_id, "")
        return {"action": "child started", "tool": short(found.workflow_type.name), "linked": found.workflow_id[:1_000],
                "message": start["message"], "version": start["version"]}  # fmt: skip

    def _child_ended(self, name: str, found: Any) -> dict[str, Any]:
        child = found.workflow_execution.workflow_id if hasattr(found, "workflow_execution") else found.workflow_id
        code = code_of(found.failure) if hasattr(found, "failure") else ""
        return {"action": "child ended", "linked": child[:1_000], "outcome": CHILDREN[name], "code": code}

    async def _timer(self, event: HistoryEvent, found: Any) -> None:
        [what] = await self._decoded([event.user_metadata.summary]) if event.user_metadata.HasField("summary") else [""]
        self._timers[found.timer_id] = short(what)

    async def _time_over(self, event: HistoryEvent, found: Any) -> dict[str, Any] | None:
        """The time of an approval, a question or a plan is over: nobody decided."""
        del event
        what, _, step = self._timers.pop(found.timer_id, "").partition(" of ")
        return {"action": "time over", "tool": what, "step_id": step} if step else None

    def _end(self, name: str, found: Any) -> dict[str, Any]:
        code = code_of(found.failure) if hasattr(found, "failure") else ""
        who = short(found.identity) if hasattr(found, "identity") else ""
        return {"action": "ended", "outcome": ENDS[name], "code": code, "client": who}

    async def _only(self, payloads: Payloads) -> Any:
        found = await self._decoded(list(payloads.payloads))
        return found[0] if len(found) == 1 else found

    async def _decoded(self, payloads: list[Payload]) -> list[Any]:
        """The values; of what cannot be read here, the digest of its bytes."""
        try:
            return list(await self._client.data_converter.decode(payloads))
        except Exception:  # decoding alone: whatever a parser, a codec or a storage raises
            return [digest_of(each.data.hex()) for each in payloads]


def _calls_of(end: Any) -> list[CallEnd]:
    """The calls that a segment has made; what it has left is made by an activity of its own."""
    try:
        return [call for call in SegmentEnd.model_validate(end).calls if not call.left]
    except ValidationError:  # completed by hand, or unreadable here
        return []


def code_of(failure: Failure) -> str:
    """The error code in a failure, the outermost that has one."""
    while failure.message or failure.HasField("cause") or failure.HasField("application_failure_info"):
        if failure.application_failure_info.type:
            return short(failure.application_failure_info.type)
        if not failure.HasField("cause"):
            return ""
        failure = failure.cause
    return ""


def _details(failure: Failure) -> Payloads:
    """The details of the innermost error of an application."""
    while not failure.application_failure_info.type and failure.HasField("cause"):
        failure = failure.cause
    return failure.application_failure_info.details


def _ruled(said: Any) -> dict[str, Any]:
    """What an entry says of the policy's word about a call."""
    try:
        ruling = Ruling.model_validate(said or {})
    except ValidationError:  # completed by hand
        return {}
    return {
        "decide": ruling.decide, "rules": [short(each) for each in ruling.rules], "policy": hexadecimal(ruling.hash),
        "judges": [each.rule for each in ruling.judged if each.decide == "allow"],
    }  # fmt: skip


def _told(parts: Any) -> dict[str, Any]:
    """What a plan told of a call when it sent it: who had decided, whom it wants to, and who its authors are."""
    said = parts.get(JudgedCall.feature) if isinstance(parts, dict) else None
    try:
        found = JudgedCall.model_validate(said or {})
        wants = [
            Want(by=each.by, count=each.count, not_author=each.not_author, expires=each.expires) for each in found.wants
        ]
    except ValidationError:
        return {}
    return {
        "consents": [each.by for each in found.decided],
        "wants": wants[:10],
        "must": found.must,
        "authors": [short(_author(each)) for each in found.authors],
    }


def _author(spoken: Spoken) -> str:
    """Who a person is by their own key, or by a login that a page has vouched for; else the name, after `?`."""
    if spoken.signed.startswith(PAGE):
        return spoken.by if spoken.verified and spoken.key else f"?{spoken.by}"
    return spoken.signed if spoken.key else f"?{spoken.by}"


def _without_of(call: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in call.items() if name != "of"}
