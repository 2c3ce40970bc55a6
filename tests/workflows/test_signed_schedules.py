"""PLANS_DECISIONS=signed and schedules: the owner signs a schedule once; nobody else's plan runs with its waivers.

The forger speaks plain Temporal and may copy what the server holds. Each attack has its control: the owner's runs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, ScheduleActionStartWorkflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from plansurvive.apps.schedules.control import delete_schedule, trigger_schedule
from plansurvive.apps.schedules.create import Changes, create_schedule, update_schedule
from plansurvive.apps.schedules.server import ScheduleNotFound
from plansurvive.apps.schedules.spec import Timing
from plansurvive.apps.schedules.views import ListedSchedule, ScheduleSignature, judged, list_schedules, show_schedule
from plansurvive.features.signing.model import SCHEDULE_DAYS
from plansurvive.features.signing.signer import Signer
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import plan as command
from tests.kit.driving import Plans, Started
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.modes("plain"), pytest.mark.on_server("schedules"), pytest.mark.uses("signing")]
WAIVED = {"id": "gate", "tool": "delete_file", "args": {"path": "kept"}, "requiresApproval": False}
YEARLY = Timing(cron=["0 0 1 1 *"])
SCHEDULED_BY = SearchAttributeKey.for_keyword("TemporalScheduledById")


@pytest_asyncio.fixture
async def owner(
    temporal_client: Client, settings: Settings, idle: Plans, make_worker: MakeWorker
) -> AsyncIterator[Client]:
    """A client of the key's owner, while a worker runs that asks for signatures."""
    config = temporal_client.config()
    config["interceptors"] = [Signer(settings)]
    (idle.workspace / "kept").write_text("kept")
    async with make_worker(decisions="signed"):
        yield Client(**config)
        for name in ("mine", "forged"):
            try:
                await delete_schedule(temporal_client, f"{name}-{idle.queue}")
            except ScheduleNotFound:
                continue


async def schedule(client: Client, plans: Plans, name: str) -> str:
    """A schedule of a plan that waives the approval of its step."""
    options = Options(workspace=str(plans.workspace))
    made = f"{name}-{plans.queue}"
    await create_schedule(client, made, {"steps": [WAIVED]}, YEARLY, options=options, queue=plans.queue)
    return made


async def triggered(client: Client, name: str) -> Started:
    found = await trigger_schedule(client, name)
    assert found.plan_id, found.why
    return Started(client, f"plan-{found.plan_id}")


async def request_of(client: Client, name: str) -> Any:
    """What the server starts the runs of a schedule with, signature and all."""
    action = (await client.get_schedule_handle(name).describe()).schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    [found] = await client.data_converter.decode(list(action.args))
    return found


async def forged(plans: Plans, request: Any, name: str, by: str) -> Started:
    """A plan started by hand as if a schedule had."""
    found = TypedSearchAttributes([SearchAttributePair(SCHEDULED_BY, by)]) if by else TypedSearchAttributes.empty
    await plans.client.start_workflow(
        "PlanWorkflow",
        request,
        id=name,
        task_queue=plans.queue,
        search_attributes=found,
        execution_timeout=plans.ceiling,
    )
    return Started(plans.client, name)


async def asks(plan: Started, idle: Plans) -> None:
    view = await plan.until_asked("gate")
    assert view["unsigned"] is True
    assert (idle.workspace / "kept").exists()
    await plan.handle.terminate()


async def test_the_runs_of_the_owners_schedule_keep_their_waivers(owner: Client, idle: Plans) -> None:
    plan = await triggered(owner, await schedule(owner, idle, "mine"))
    assert (await plan.ended())["status"] == "completed"
    assert not (idle.workspace / "kept").exists()


async def test_the_runs_of_another_ones_schedule_ask(owner: Client, idle: Plans) -> None:
    await asks(await triggered(idle.client, await schedule(idle.client, idle, "forged")), idle)


async def test_what_the_owner_signed_for_a_schedule_is_good_for_no_other_start(owner: Client, idle: Plans) -> None:
    name = await schedule(owner, idle, "mine")
    request, now = await request_of(owner, name), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    await asks(await forged(idle, request, f"plan-other-{idle.queue}", ""), idle)
    await asks(await forged(idle, request, f"plan-other-{idle.queue}-{now}", f"other-{idle.queue}"), idle)
    await asks(await forged(idle, request, f"plan-{name}x", name), idle)
    changed = {**request, "plan": {"steps": [{**WAIVED, "args": {"path": "kept2"}}]}}
    plan = await forged(idle, changed, f"plan-{name}-{now}", name)
    assert (await plan.until_asked("gate"))["unsigned"] is True
    await plan.handle.terminate()


async def test_an_update_of_when_it_runs_keeps_the_signature(owner: Client, idle: Plans) -> None:
    name = await schedule(owner, idle, "mine")
    await update_schedule(owner, name, Changes(timing=Timing(every=["300d"])))
    plan = await triggered(owner, name)
    await until(lambda: not (idle.workspace / "kept").exists(), "the file is deleted")
    assert (await plan.ended())["status"] == "completed"


def due(delta: timedelta = timedelta()) -> str:
    return f"{datetime.now(UTC) + delta:%Y-%m-%dT%H:%M:%SZ}"


async def test_a_copy_of_a_schedules_start_counts_for_no_time_when_it_was_not_due_and_for_none_twice(
    owner: Client, idle: Plans
) -> None:
    name = await schedule(owner, idle, "mine")
    request = await request_of(owner, name)
    for time in ("2031-01-01T00:00:00Z", "2031-13-01T00:00:00Z", due(timedelta(days=-2)), due(timedelta(hours=1))):
        for by in (name, ""):  # anybody may set the search attribute, so it proves nothing
            await asks(await forged(idle, request, f"plan-{name}-{time}", by), idle)
    plan = await triggered(owner, name)
    assert (await plan.ended())["status"] == "completed"
    (idle.workspace / "kept").write_text("kept")
    await asks(await forged(idle, request, plan.id, name), idle)


@pytest.mark.parametrize("how", ["deleted", "changed"])
async def test_a_copy_of_a_schedules_start_counts_no_more_when_the_schedule_was_deleted_or_changed(
    owner: Client, idle: Plans, how: str
) -> None:
    name = await schedule(owner, idle, "mine")
    request = await request_of(owner, name)
    if how == "deleted":
        await delete_schedule(owner, name)
    else:
        await update_schedule(owner, name, Changes(note="another"))
    # Not of this second: the owner's run below may have its id.
    await asks(await forged(idle, request, f"plan-{name}-{due(timedelta(seconds=-30))}", name), idle)
    # Control: the owner's own schedule, made again or changed, counts.
    if how == "deleted":
        await schedule(owner, idle, "mine")
    plan = await triggered(owner, name)
    assert (await plan.ended())["status"] == "completed"


async def test_people_see_how_long_the_signature_of_a_schedule_counts(
    owner: Client, idle: Plans, settings: Settings, temporal_client: Client
) -> None:
    """In the list and in the schedule itself: not signed, of an older generation, about to expire, expired."""
    mine = settings.with_flags(decisions="signed")

    async def seen(name: str) -> ScheduleSignature:
        async def listed() -> ListedSchedule | None:
            found = {each.name: each async for each in list_schedules(temporal_client, mine)}
            return found.get(name)

        row = await until(listed, "the server lists it")
        shown = await show_schedule(temporal_client, name, mine)
        assert shown.signature is not None
        assert row.signature == shown.signature
        return shown.signature

    name, now = await schedule(owner, idle, "mine"), datetime.now(UTC)
    good = await seen(name)
    assert good.made is not None
    assert good.expires == good.made + timedelta(days=SCHEDULE_DAYS)
    assert (good.problem, good.since) == ("", None)
    assert good.text(now) == f"counts until {good.expires:%Y-%m-%d}"
    assert good.text(good.expires - timedelta(days=5)).endswith("soon; `plan schedule update NAME` signs it again")

    request = await request_of(owner, name)
    expired = judged(mine, f"plan-{name}", request, good.expires + timedelta(days=1))
    assert expired is not None
    assert expired.problem.startswith("it expired on")
    other = judged(mine, f"plan-{name}x", request, now)
    assert other is not None
    assert other.problem == "it is not by the key of this state directory"
    assert judged(settings, f"plan-{name}", request, now) is None
    await update_schedule(owner, name, Changes(note="another"))
    renewed = await seen(name)
    assert (renewed.problem, renewed.since is not None) == ("", True)
    # The copy of the older generation
    old = judged(mine, f"plan-{name}", request, now)
    assert old is not None
    assert "changed or deleted after it was signed" in old.problem
    unsigned = await seen(await schedule(idle.client, idle, "forged"))
    assert unsigned.problem == "it is not signed"

    environ = {
        "HOME": str(settings.state_dir), "PLANS_STATE_DIR": str(settings.state_dir), "PLANS_DECISIONS": "signed",
        "TEMPORAL_ADDRESS": temporal_client.service_client.config.target_host, "PATH": os.environ["PATH"],
    }  # fmt: skip
    table, doctor = await command(environ, "schedule", "list"), await command(environ, "doctor")
    assert "SIGNATURE" in table.out
    assert "does not count" in table.out
    assert "signature  counts until" in (await command(environ, "schedule", "show", name)).out
    rows = [row for row in doctor.out.replace("\n ", " ").splitlines() if "schedules" in row]
    assert any(f"'forged-{idle.queue}': its signature does not count" in " ".join(row.split()) for row in rows), doctor
    assert not any(name in row for row in rows)
