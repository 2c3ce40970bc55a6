"""Schedules on a real server: who starts when, what is shown, and how overlaps and failures are treated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleIntervalSpec, ScheduleSpec

from plansurvive.apps.schedules.control import (
    backfill_schedule,
    delete_schedule,
    matching_times,
    pause_schedule,
    resume_schedule,
    trigger_schedule,
)
from plansurvive.apps.schedules.create import Changes, Rules, create_schedule, update_schedule
from plansurvive.apps.schedules.server import ScheduleExists, ScheduleNotFound
from plansurvive.apps.schedules.spec import BadSchedule, Timing
from plansurvive.apps.schedules.views import list_schedules, show_schedule
from plansurvive.client import runs
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.run import PlanStatus
from tests.apps.schedules.driving import FAILS, GATE, LOOK, Schedules
from tests.nightly import only_nightly

REPORT = {"id": "report", "tool": "write_file", "args": {"path": "report.md", "content": "{{inputs.who}}: {{look}}"}}
BERLIN = "Europe/Berlin"


async def test_a_schedule_runs_its_plan_and_its_runs_are_found_by_its_name(schedules: Schedules) -> None:
    inputs = {"who": {"type": "string", "default": "ann"}}
    name = await schedules.create(LOOK, REPORT, title="Report", id="mine", inputs=inputs, owns=["report.md"])
    first = await schedules.trigger(name)
    await schedules.until_statuses(name, "completed")
    second = await schedules.trigger(name)  # writes over the file of the first, and asks nobody
    found = await schedules.until_statuses(name, "completed", "completed")
    assert [each.plan_id for each in found] == [first, second]
    assert {(each.schedule, each.title, each.task_id, each.steps) for each in found} == {(name, "Report", "mine", 2)}
    assert (schedules.workspace / "report.md").read_text().startswith("ann: ")
    assert (await runs.show(schedules.client, second)).status is PlanStatus.COMPLETED
    assert (await runs.summary(schedules.client, f"plan-{first}")).plan_id == first
    view = await show_schedule(schedules.client, name)
    assert [each.plan_id for each in view.runs] == [second, first]
    assert (view.started, view.skipped, view.overlap, view.catchup) == (2, 0, "skip", "1 day")
    assert (view.by, view.workspace, view.plan["title"]) == ("ann", str(schedules.workspace), "Report")
    assert view.when == ["at 00:00 on day 1 of the month in January"]


async def test_a_run_that_needs_a_person_is_pending_and_can_be_rerun_like_any_other_plan(schedules: Schedules) -> None:
    name = await schedules.create(GATE)
    plan = await schedules.trigger(name)
    [waiting] = [each async for each in runs.pending(schedules.client, plan=plan)]
    assert (waiting.plan_id, waiting.step_id) == (plan, "gate")
    await schedules.approve(plan)
    await schedules.until_statuses(name, "completed")
    again = await runs.rerun(schedules.client, plan, start_at="gate", by="ann")
    assert again.plan_id == f"{plan}-r2"
    await runs.approve(schedules.client, again.plan_id, runs.Choice(step_id="gate", by="ann"))
    assert (await runs.wait(schedules.client, again.plan_id)).status is PlanStatus.COMPLETED


@pytest.mark.parametrize(
    ("cron", "start", "end", "local"),
    [
        ("0 7 * * *", "2027-03-26", "2027-03-30", ["26T07+01", "27T07+01", "28T07+02", "29T07+02"]),
        ("0 7 * * *", "2027-10-29", "2027-11-02", ["29T07+02", "30T07+02", "31T07+01", "01T07+01"]),
        # There is no 02:30 on the last Sunday of March; in October there are two, and the second counts.
        ("30 2 * * *", "2027-03-27", "2027-03-30", ["27T02+01", "29T02+02"]),
        ("30 2 * * *", "2027-10-30", "2027-11-02", ["30T02+02", "31T02+01", "01T02+01"]),
    ],
)
async def test_the_server_keeps_local_time_over_a_change_of_the_clocks(
    schedules: Schedules, cron: str, start: str, end: str, local: list[str]
) -> None:
    timing = Timing(cron=[cron], timezone=BERLIN)
    name = await schedules.create(LOOK, timing=timing, rules=Rules(paused=True))
    begin, until = (datetime.fromisoformat(f"{day}T00:00+00:00") for day in (start, end))
    found = await matching_times(schedules.client, name, begin, until)
    offsets = {time: time.hour for time in found}
    hour = int(cron.split()[1])
    assert [f"{time.day:02}T{hour:02}+{hour - offsets[time]:02}" for time in found] == local


@pytest.mark.slow
async def test_a_backfill_of_a_schedule_with_jitter_starts_no_run_twice_either(schedules: Schedules) -> None:
    timing = Timing(every=["1h"], jitter="10m")
    name = await schedules.create(LOOK, timing=timing, rules=Rules(paused=True))
    whole = ("2026-10-24T00:00", "2026-10-24T06:30")
    first = await backfill_schedule(schedules.client, name, whole[0], "2026-10-24T03:30", "allow")
    await schedules.until_statuses(name, *["completed"] * len(first))
    rest = await backfill_schedule(schedules.client, name, *whole, "allow")
    await schedules.until_statuses(name, *["completed"] * (len(first) + len(rest)))
    assert len(first) + len(rest) == len({each.plan_id for each in await schedules.runs(name)}) in (6, 7)


async def test_an_interval_does_not_heed_a_change_of_the_clocks(schedules: Schedules) -> None:
    timing = Timing(every=["12h"], timezone=BERLIN)
    name = await schedules.create(LOOK, timing=timing, rules=Rules(paused=True))
    day = datetime(2027, 3, 28, tzinfo=UTC)
    found = await matching_times(schedules.client, name, day, day + timedelta(days=1))
    assert {(time.hour, time.minute) for time in found} == {(0, 0), (12, 0)}


async def test_skip_leaves_out_the_run_that_is_due_while_one_is_in_progress(schedules: Schedules) -> None:
    name = await schedules.create(GATE, rules=Rules(overlap="skip"))
    first = await schedules.trigger(name)
    await schedules.until_statuses(name, "waits")
    left_out = await trigger_schedule(schedules.client, name)
    assert (left_out.plan_id, left_out.skipped) == (None, True)
    await schedules.approve(first)
    await schedules.until_statuses(name, "completed")
    assert (await show_schedule(schedules.client, name)).skipped == 1


@pytest.mark.slow
async def test_buffer_starts_each_run_when_the_one_before_it_has_ended(schedules: Schedules) -> None:
    timing = Timing(every=["1h"])
    name = await schedules.create(GATE, timing=timing, rules=Rules(overlap="buffer", paused=True))
    now = datetime.now(UTC).replace(minute=30)
    times = await backfill_schedule(
        schedules.client, name, (now - timedelta(hours=4)).isoformat(), (now - timedelta(hours=1)).isoformat()
    )
    assert len(times) == 3
    for number in range(3):
        found = await schedules.until_statuses(name, *["completed"] * number, "waits")
        assert found[-1].plan_id.endswith(f"{times[number]:%Y-%m-%dT%H:%M:%SZ}")
        await schedules.approve(found[-1].plan_id)
    await schedules.until_statuses(name, *["completed"] * 3)


@pytest.mark.slow
async def test_cancel_ends_the_run_in_progress_and_does_not_pause(schedules: Schedules) -> None:
    name = await schedules.create(GATE, rules=Rules(overlap="cancel", pause_on_failure=True))
    await schedules.trigger(name)
    await schedules.until_statuses(name, "waits")
    await schedules.trigger(name)
    await schedules.until_statuses(name, "cancelled", "waits")
    assert not (await show_schedule(schedules.client, name)).paused


@pytest.mark.slow
async def test_allow_starts_a_run_beside_the_one_in_progress(schedules: Schedules) -> None:
    name = await schedules.create(GATE, rules=Rules(overlap="allow"))
    first, second = await schedules.trigger(name), await schedules.trigger(name)
    await schedules.until_statuses(name, "waits", "waits")
    await schedules.approve(second)
    await schedules.until_statuses(name, "waits", "completed")
    await schedules.approve(first)
    await schedules.until_statuses(name, "completed", "completed")


@pytest.mark.parametrize(
    ("step", "status"),
    [(FAILS, "partial"), only_nightly({**FAILS, "critical": True}, "failed")],
    ids=["partial", "failed"],
)
async def test_a_schedule_that_pauses_on_failure_pauses_when_a_run_does_not_complete(
    schedules: Schedules, step: dict[str, object], status: str
) -> None:
    name = await schedules.create(step, rules=Rules(pause_on_failure=True))
    plan = await schedules.trigger(name)
    view = await schedules.until_shown(name, lambda view: view.paused, "it is paused")
    assert plan in view.note
    assert (view.next_time, view.next_times) == (None, [])
    await schedules.until_statuses(name, status)
    await resume_schedule(schedules.client, name)
    assert not (await show_schedule(schedules.client, name)).paused


async def test_without_that_a_failure_does_not_pause(schedules: Schedules) -> None:
    name = await schedules.create(FAILS)
    await schedules.trigger(name)
    await schedules.until_statuses(name, "partial")
    assert not (await show_schedule(schedules.client, name)).paused


async def test_a_backfill_starts_what_was_due_once_and_no_run_twice(schedules: Schedules) -> None:
    name = await schedules.create(LOOK, timing=Timing(cron=["0 7 * * *"], timezone=BERLIN), rules=Rules(paused=True))
    both = ("2026-10-24T07:00", "2026-10-25T07:00")  # in the time zone of the schedule, both included
    times = await backfill_schedule(schedules.client, name, *both, "allow")
    assert [time.isoformat() for time in times] == ["2026-10-24T05:00:00+00:00", "2026-10-25T06:00:00+00:00"]
    found = await schedules.until_statuses(name, "completed", "completed")
    assert [each.plan_id for each in found] == [f"{name}-2026-10-24T05:00:00Z", f"{name}-2026-10-25T06:00:00Z"]
    more = await backfill_schedule(schedules.client, name, both[0], "2026-10-26T12:00", "allow")
    assert [time.isoformat() for time in more] == ["2026-10-26T06:00:00+00:00"]
    await schedules.until_statuses(name, *["completed"] * 3)
    for bad in (both[::-1], ("2026-10-24", "2999-01-01"), ("soon", "2026-10-24")):
        with pytest.raises(BadSchedule):
            await backfill_schedule(schedules.client, name, *bad)
    assert await backfill_schedule(schedules.client, name, "2026-10-24T08:00", "2026-10-24T09:00") == []


@pytest.mark.slow
async def test_a_schedule_with_a_limit_starts_so_many_runs(schedules: Schedules) -> None:
    name = await schedules.create(LOOK, timing=Timing(every=["1s"]), rules=Rules(limit=2, overlap="allow"))
    await schedules.until_statuses(name, "completed", "completed")
    view = await schedules.until_shown(name, lambda view: view.remaining == 0, "no runs remain")
    assert view.next_times == []


async def test_what_cannot_be_is_refused_with_a_reason(schedules: Schedules, temporal_client: Client) -> None:
    name = await schedules.create(LOOK)
    with pytest.raises(ScheduleExists):
        await create_schedule(temporal_client, name, {"steps": [LOOK]}, Timing(every=["1h"]))
    with pytest.raises(BadSchedule, match="Hour is not in range"):
        await schedules.create(LOOK, timing=Timing(cron=["0 77 * * *"]))
    with pytest.raises(InvalidPlan):
        await schedules.create({"id": "no tool"})
    with pytest.raises(ScheduleNotFound, match=f"did you mean '{name}'"):
        await show_schedule(temporal_client, f"{name}x")


async def test_a_schedule_of_another_program_is_left_alone(schedules: Schedules, temporal_client: Client) -> None:
    action = ScheduleActionStartWorkflow("Other", id="other", task_queue="nobody")
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=300))])
    other = await temporal_client.create_schedule(f"other-{schedules.queue}", Schedule(action, spec))
    try:
        assert other.id not in [each.name async for each in list_schedules(temporal_client)]
        for act in (show_schedule, trigger_schedule, pause_schedule, delete_schedule):
            with pytest.raises(ScheduleNotFound):
                await act(temporal_client, other.id)
    finally:
        await other.delete()


async def test_an_update_changes_when_it_runs_and_leaves_the_plan(schedules: Schedules) -> None:
    name = await schedules.create(LOOK, title="Looks")
    changes = Changes(timing=Timing(every=["6h"]), overlap="buffer", catchup=timedelta(hours=2), note="busy", limit=9)
    await update_schedule(schedules.client, name, changes)
    view = await show_schedule(schedules.client, name)
    assert (view.when, view.overlap, view.catchup) == (["every 6 hours"], "buffer", "2 hours")
    assert (view.note, view.remaining, view.plan["title"]) == ("busy", 9, "Looks")
    plan = await schedules.trigger(name)
    assert (await runs.wait(schedules.client, plan)).status is PlanStatus.COMPLETED
