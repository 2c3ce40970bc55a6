"""Continue-as-new: no result, decision or timer is lost.

Every other test here also runs with a history of ten events; these look at the change itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.kit.driving import WAITS, Plans, refusals, statuses, step, terminated, work
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.oldest_server

CHAIN = [work("s0"), *(work(f"s{number}", f"s{number - 1}") for number in range(1, 15))]


@pytest.mark.modes("plain")
@pytest.mark.parametrize("limit", [10, 20, 30])
async def test_a_plan_longer_than_its_history_goes_on_in_new_runs(plans: Plans, limit: int) -> None:
    plan = await plans.start(CHAIN, {"historyLimit": limit})
    view = await plan.ended()
    histories = await plan.histories()
    assert view["status"] == "completed"
    assert len(histories) > 2
    assert all(len(history.events) <= limit + 10 for history in histories)
    assert [line[:2] for line in plans.ledger] == [[what, f"s{n}"] for n in range(15) for what in ("start", "end")]
    assert await plan.handle.query("events", {"since": 0}) == sorted(
        await plan.handle.query("events", {"since": 0}), key=lambda event: event["seq"]
    )


@pytest.mark.modes("short")
async def test_messages_sent_while_the_runs_change_are_all_counted(plans: Plans) -> None:
    gates = [work(f"g{number}", *([f"g{number - 1}"] if number else []), requiresApproval=True) for number in range(12)]
    plan = await plans.start(gates)

    async def send(number: int) -> None:
        await plan.signal("approve", {"stepId": "nowhere", "by": str(number)})
        await plan.approve(f"g{number}", by=f"person{number}")

    await asyncio.gather(*(send(number) for number in range(11)))
    await send(11)  # the last gate is opened by the very last message: none comes when the plan has ended
    view = await plan.ended()
    assert view["status"] == "completed"
    assert len(refusals(view)) == 12
    approved = [entry["text"] for entry in view["log"] if entry["kind"] == "approved"]
    assert sorted(approved) == sorted(f"step 'g{number}' approved by person{number}" for number in range(12))
    assert len(await plan.histories()) > 2


@pytest.mark.modes("short")
async def test_updates_sent_while_the_runs_change_are_all_answered(plans: Plans) -> None:
    gates = [work(f"g{number}", requiresApproval=True) for number in range(6)]
    plan = await plans.start([work("first", seconds=0.2), *gates])
    messages = [{"stepId": f"g{number}", "approved": True} for number in range(6)]
    await plan.until_asked("g5")
    answers = await asyncio.gather(*(plan.handle.execute_update("decide", message) for message in messages))
    assert all(answer["approved"] for answer in answers)
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.modes("short")
async def test_timers_go_on_where_they_were(plans: Plans) -> None:
    rule = {"timeout": 2.5, "onTimeout": "approve"}
    steps: list[dict[str, Any]] = [
        {"id": "nap", "tool": "sleep", "args": {"seconds": 2.5}},
        work("gate", requiresApproval=True, approval=rule),
        *CHAIN,
    ]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert view["status"] == "completed"
    assert _seconds(step(view, "nap")) >= 2.4
    assert any("no decision within" in entry["text"] for entry in view["log"])
    wanted = EventType.EVENT_TYPE_TIMER_STARTED
    runs = [
        [_length(event) for event in history.events if event.event_type == wanted] for history in await plan.histories()
    ]
    assert sum(bool(lengths) for lengths in runs) > 1
    assert all(length < 2.5 for lengths in runs[1:] for length in lengths), "a timer began anew"


@pytest.mark.modes("short")
async def test_a_pause_and_a_review_outlive_the_run_they_began_in(plans: Plans) -> None:
    plan = await plans.start([work("a", args=WAITS), *(work(f"b{number}", "a") for number in range(3))])
    await plan.until_status("a", "running")
    await plan.signal("pause")
    await plan.until_logged("paused")
    plans.go()
    await plan.until_status("a", "completed")
    for number in range(12):
        await plan.signal("nonsense", number)
    view = await plan.until(lambda view: len(refusals(view)) == 12, "12 refusals")
    assert view["status"] == "paused"
    assert len(await plan.histories()) > 1
    await plan.signal("unpause")
    assert set(statuses(await plan.ended()).values()) == {"completed"}


@pytest.mark.modes("plain")
async def test_a_plan_in_review_that_gets_many_messages_does_not_outgrow_its_history(plans: Plans) -> None:
    plan = await plans.start([work("a")], {"review": True, "historyLimit": 20})
    await plan.until(lambda view: view["status"] == "review", "review")
    for number in range(30):
        await plan.signal("nonsense", number)
    await plan.until(lambda view: len(refusals(view)) == 30, "30 refusals")
    await plan.signal("begin")
    assert (await plan.ended())["status"] == "completed"
    assert len(await plan.histories()) > 1


@pytest.mark.modes("plain")
async def test_a_cancellation_that_comes_with_the_signal_that_fills_the_history_is_not_lost(
    idle: Plans, make_worker: MakeWorker
) -> None:
    async with make_worker():
        plan = await idle.start([work("a", requiresApproval=True)], {"historyLimit": 20})
        await plan.until_asked("a")
    for number in range(30):
        await plan.signal("nonsense", number)
    await plan.handle.cancel()  # one workflow task brings all of them
    async with make_worker():
        view = await plan.ended()
    assert view["status"] == "cancelled"
    assert len(refusals(view)) == 30


def _length(event: HistoryEvent) -> float:
    """Duration of a started timer in seconds."""
    return float(event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds())


def _seconds(view: dict[str, Any]) -> float:
    return float(view["result"]["duration"]) / 1_000


@workflow.defn(name="PlanWorkflow", sandboxed=False)
class Continued:
    """Continues as new at once, as a plan does, where workers of ours have yet to come."""

    @workflow.run
    async def run(self, queue: str, argument: dict[str, Any]) -> None:
        workflow.continue_as_new(args=[argument], task_queue=queue)


@pytest.mark.modes("plain")
async def test_an_update_that_the_first_task_of_a_continued_run_brings_is_validated(
    idle: Plans, make_worker: MakeWorker, temporal_client: Client, queue: str
) -> None:
    """The SDK asks the validators before it calls `run`."""
    async with make_worker():
        plan = await idle.start([work("gate", requiresApproval=True)])
        await plan.until_asked("gate")
        state = await plan.handle.query("state")
        await terminated(temporal_client, plan.id)
    elsewhere = f"{queue}-before"
    async with Worker(temporal_client, task_queue=elsewhere, workflows=[Continued]):
        await temporal_client.start_workflow(
            "PlanWorkflow", args=[queue, {"run": state}], id=plan.id, task_queue=elsewhere
        )

        async def has_continued() -> bool:
            return len(await plan.histories()) == 2

        await until(has_continued, "it waits for a worker")
    changed = {"op": "set", "stepId": "gate", "path": "description"}
    edits = [{**changed, "value": "valid"}, {**changed, "stepId": "nowhere", "value": "no such step"}]
    sent = [asyncio.create_task(plan.handle.execute_update("edit", {"edits": [each]})) for each in edits]
    async with make_worker():
        valid, refused = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(valid, dict)
        assert valid["version"] == 2
        assert isinstance(refused, WorkflowUpdateFailedError)
        assert isinstance(refused.cause, ApplicationError)
        assert refused.cause.type == "UNKNOWN_STEP"
        # Only the valid one is in the history, and right after the first task.
        kinds = [EventType.Name(event.event_type) for event in (await plan.histories())[1].events]
        accepted = "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
        assert kinds.count(accepted) == 1
        assert kinds.index(accepted) == kinds.index("EVENT_TYPE_WORKFLOW_TASK_COMPLETED") + 1
        await plan.approve("gate")
        assert (await plan.ended())["status"] == "completed"
