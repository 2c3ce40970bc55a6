"""What there is to see of schedules: all of them, and one with its rules, its next times and its runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleDescription

from plansurvive.apps.schedules.server import KIND, ScheduleNotFound, all_of_us, described, memo_of, request_of
from plansurvive.apps.schedules.spec import OVERLAPS
from plansurvive.apps.schedules.words import span, words
from plansurvive.client.listing import Listed, list_plans
from plansurvive.features.signing import schedule_book
from plansurvive.features.signing.model import SCHEDULE, SCHEDULE_DAYS, is_by, signed_bytes
from plansurvive.plans.model import Value
from plansurvive.plans.signature import signature_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import public_key

SOON = timedelta(days=30)
"""How long before its end an expiry is worth a warning."""
RENEW = "`plan schedule update NAME` signs it again"


class ScheduleSignature(Value):
    """The signature that the runs of a schedule are started with."""

    made: datetime | None = Field(default=None, description="When it was signed; null: it is not signed.")
    expires: datetime | None = Field(default=None, description="Until when it counts.")
    since: datetime | None = Field(
        default=None, description="Its generation: signatures made before the last update or deletion do not count."
    )
    problem: str = Field(default="", description="Why its runs ask for approvals all the same.")

    def text(self, now: datetime) -> str:
        """What people read of it; with what to do if it does not count, or not for long."""
        if self.problem:
            return f"does not count: {self.problem}; {RENEW}"
        until = f"counts until {self.expires:%Y-%m-%d}" if self.expires else ""
        return f"{until}, soon; {RENEW}" if self.is_soon(now) else until

    def is_soon(self, now: datetime) -> bool:
        """Whether it expires soon, or counts no more."""
        return bool(self.problem) or self.expires is None or self.expires - now < SOON


def judged(settings: Settings, workflow_id: str, request: Mapping[str, Any], now: datetime) -> ScheduleSignature | None:
    """What there is to say of the signature of a schedule that starts this workflow id; None if none is asked for."""
    if settings.decisions != "signed":
        return None
    found, since = signature_of(request), schedule_book.since(settings.state_dir, workflow_id)
    generation = datetime.fromtimestamp(since / 1_000, UTC) if since else None
    if found is None:
        return ScheduleSignature(since=generation, problem="it is not signed")
    made = datetime.fromtimestamp(found.time / 1_000, UTC)
    expires, problem = made + timedelta(days=SCHEDULE_DAYS), ""
    content = signed_bytes(SCHEDULE, workflow_id, "", request, found.id, found.time)
    if not is_by(public_key(settings), found, content):
        problem = "it is not by the key of this state directory"
    elif found.time < since:
        problem = "the schedule was changed or deleted after it was signed"
    elif expires < now:
        problem = f"it expired on {expires:%Y-%m-%d}"
    return ScheduleSignature(made=made, expires=expires, since=generation, problem=problem)


NEXT = 5
"""Next times that are shown."""
RECENT = 10
"""Runs that are shown."""
_OVERLAP = {policy: name for name, policy in OVERLAPS.items()}


class ListedSchedule(Value):
    """One schedule of a list."""

    name: str
    title: str = ""
    when: list[str] = Field(description="Its rules, in words.")
    timezone: str
    paused: bool
    note: str = Field(description="Why it is paused, or a remark.")
    next_time: datetime | None = Field(description="None: never, or it is paused.")
    last_time: datetime | None = Field(description="When it last started a run.")
    signature: ScheduleSignature | None = Field(
        default=None, description="Where decisions are signed: how long its signature counts."
    )


class ScheduleView(ListedSchedule):
    """One schedule, whole."""

    jitter: str = ""
    start: datetime | None = None
    end: datetime | None = None
    overlap: str
    catchup: str
    pause_on_failure: bool
    remaining: int | None = Field(description="Runs that it may still start; None: any number.")
    next_times: list[datetime]
    runs: list[Listed] = Field(description="Its last runs, newest first.")
    started: int = Field(description="Runs started so far.")
    missed: int = Field(description="Runs missed by more than the catch-up window.")
    skipped: int = Field(description="Runs skipped because one was in progress.")
    workspace: str | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    approve_all: bool = Field(default=False, description="Created with `--yes`: no step asks.")
    by: str = Field(default="", description="Who created it.")
    source: str = Field(default="", description="Where its plan is from.")
    queue: str = ""
    created_at: datetime
    updated_at: datetime | None = None
    plan: dict[str, Any] = Field(default_factory=dict, description="The plan that it carries.")


async def list_schedules(client: Client, settings: Settings | None = None) -> AsyncIterator[ListedSchedule]:
    """The schedules of plans. Raises NotConnected.

    `settings`: whose key their signatures are judged by, where decisions are signed; that asks for each of them.
    """
    now = datetime.now(UTC)
    async for each in all_of_us(client):
        if each.schedule is None or each.info is None:
            continue
        memo = await memo_of(client, each.raw_entry.memo)
        times = each.info.next_action_times
        signature = None
        if settings is not None and settings.decisions == "signed":
            with suppress(ScheduleNotFound):  # deleted since it was listed
                signature = await _signature(client, (await described(client, each.id))[1], settings, now)
        yield ListedSchedule(
            name=each.id,
            title=str(memo.get("title", "")),
            when=words(each.schedule.spec),
            timezone=each.schedule.spec.time_zone_name or "UTC",
            paused=each.schedule.state.paused,
            note=each.schedule.state.note or "",
            next_time=times[0] if times and not each.schedule.state.paused else None,
            last_time=max((run.started_at for run in each.info.recent_actions), default=None),
            signature=signature,
        )


async def show_schedule(client: Client, name: str, settings: Settings | None = None) -> ScheduleView:
    """A schedule with its rules, its next times and its last runs. Needs no worker. Raises ScheduleNotFound.

    `settings`: as for `list_schedules`.
    """
    _, found = await described(client, name)
    runs = [each async for each in list_plans(client, schedule=name, limit=RECENT)]
    memo = await memo_of(client, found.raw_description.memo)
    texts = {name: str(memo.get(name, "")) for name in ("title", "by", "source")}
    carried = await _carried(client, found)
    signature = await _signature(client, found, settings, datetime.now(UTC)) if settings else None
    return ScheduleView.model_validate(
        {**_rules(found), **_facts(found), **carried, **texts, "name": name, "runs": runs, "signature": signature}
    )


async def _signature(
    client: Client, found: ScheduleDescription, settings: Settings, now: datetime
) -> ScheduleSignature | None:
    action = found.schedule.action
    if not isinstance(action, ScheduleActionStartWorkflow) or action.workflow != KIND:
        return None
    return judged(settings, action.id, await request_of(client, action), now)


def _rules(found: ScheduleDescription) -> dict[str, Any]:
    spec, policy, state = found.schedule.spec, found.schedule.policy, found.schedule.state
    return {
        "when": words(spec),
        "timezone": spec.time_zone_name or "UTC",
        "jitter": span(spec.jitter) if spec.jitter else "",
        "start": spec.start_at,
        "end": spec.end_at,
        "overlap": _OVERLAP.get(policy.overlap, policy.overlap.name.lower()),
        "catchup": span(policy.catchup_window) if policy.catchup_window else "1 year",
        "pause_on_failure": policy.pause_on_failure,
        "paused": state.paused,
        "note": state.note or "",
        "remaining": state.remaining_actions if state.limited_actions else None,
    }


def _facts(found: ScheduleDescription) -> dict[str, Any]:
    info, state = found.info, found.schedule.state
    over = state.paused or (state.limited_actions and not state.remaining_actions)
    times = [] if over else list(info.next_action_times)[:NEXT]
    return {
        "next_times": times,
        "next_time": times[0] if times else None,
        "last_time": max((run.started_at for run in info.recent_actions), default=None),
        "started": info.num_actions,
        "missed": info.num_actions_missed_catchup_window,
        "skipped": info.num_actions_skipped_overlap,
        "created_at": info.created_at,
        "updated_at": info.last_updated_at,
    }


async def _carried(client: Client, found: ScheduleDescription) -> dict[str, Any]:
    """What each run is started with, as far as it can be read."""
    action = found.schedule.action
    if not isinstance(action, ScheduleActionStartWorkflow):
        return {}
    request = await request_of(client, action)
    plan, options = request.get("plan"), request.get("options")
    given = options if isinstance(options, dict) else {}
    return {
        "plan": plan if isinstance(plan, dict) else {},
        "workspace": given.get("workspace"),
        "inputs": given.get("inputs", {}),
        "approve_all": given.get("approveAll", False),
        "queue": action.task_queue,
    }
