"""The client API on a real server: one function per verb, what it returns, what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.errors import BadPlanId, NoWorker, PlanClosed, PlanExists, PlanNotFound
from plansurvive.client.runs import Choice, EventView, Started
from plansurvive.client.updates import update
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import terminated
from tests.kit.waiting import until

Start = Callable[..., Any]
WRITE = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
REMOVE = {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]}
NAP = {"id": "nap", "tool": "sleep", "args": {"seconds": 3600}}


@pytest.fixture
async def start(temporal_client: Client, queue: str, workspace: Path) -> AsyncIterator[Start]:
    """Start a plan of these steps in the test's own queue and workspace; terminated at the end if it still runs."""
    begun: list[Started] = []

    async def start_plan(*steps: Any, title: str = "A test", plan_id: str | None = None, **options: Any) -> Started:
        given = Options(workspace=str(workspace), **options)
        plan = {"title": title, "steps": list(steps)}
        begun.append(await runs.start(temporal_client, plan, options=given, plan_id=plan_id, queue=queue))
        return begun[-1]

    yield start_plan
    for started in begun:
        await terminated(temporal_client, started.workflow_id)


async def asked(client: Client, plan: str, step_id: str) -> None:
    """Until the step waits for a person."""

    async def waits() -> bool:
        return step_id in [item.step_id for item in (await runs.show(client, plan)).pending]

    await until(waits, f"{step_id} asks")


async def test_a_plan_is_started_approved_and_waited_for(
    temporal_client: Client, worker: Worker, start: Start, workspace: Path
) -> None:
    started = await start(WRITE, REMOVE, title="Clean up")
    assert started.plan_id.startswith("clean-up-")
    assert started.workflow_id == f"plan-{started.plan_id}"
    await asked(temporal_client, started.plan_id, "remove")
    sentence = await runs.approve(temporal_client, started.plan_id, Choice(step_id="remove", by="ann", comment="fine"))
    assert sentence == "step 'remove' approved by ann: fine"
    summary = await runs.wait(temporal_client, started.workflow_id)
    assert summary.is_completed
    assert summary.counts == {"total": 2, "completed": 2}
    assert not (workspace / "a.txt").exists()


async def test_a_decision_that_cannot_count_is_refused_in_the_plans_own_words(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = (await start(WRITE, REMOVE, NAP)).plan_id
    await asked(temporal_client, plan, "remove")
    cases = [
        (Choice(step_id="nothing"), "UNKNOWN_STEP"),
        (Choice(step_id="remove", version=7), "STALE_VERSION"),
        (Choice(step_id="remove", args={"pth": "x"}), "INVALID_ARGS"),
        (Choice(step_id="write"), "TOO_LATE"),
        (Choice(step_id="remove", by="x" * 201), "BAD_MESSAGE"),
    ]
    for choice, code in cases:
        for decide in (runs.approve(temporal_client, plan, choice), _update(temporal_client, plan, choice)):
            with pytest.raises(Refused) as refused:
                await decide
            assert refused.value.code == code
    assert (await runs.deny(temporal_client, plan, Choice(step_id="remove"))) == "step 'remove' denied"
    with pytest.raises(Refused) as refused:
        await runs.approve(temporal_client, plan, Choice(step_id="remove"))
    assert refused.value.code == "ALREADY_DECIDED"


async def _update(client: Client, plan: str, choice: Choice) -> None:
    await runs.decide(client, plan, choice, approved=True)


async def test_an_update_returns_the_decision(temporal_client: Client, worker: Worker, start: Start) -> None:
    plan = (await start(WRITE, REMOVE)).plan_id
    decision = await runs.decide(temporal_client, plan, Choice(step_id="remove", by="bob"), approved=False)
    assert (decision.approved, decision.by, decision.source) == (False, "bob", "update")
    summary = await runs.wait(temporal_client, plan)
    assert (summary.status.value, summary.denied[0].reason) == ("partial", "User denied approval")


async def test_watchers_get_everything_early_or_late(temporal_client: Client, worker: Worker, start: Start) -> None:
    plan = (await start(WRITE, REMOVE)).plan_id
    early = asyncio.create_task(_watched(temporal_client, plan))
    await asked(temporal_client, plan, "remove")
    await runs.approve(temporal_client, plan, Choice(step_id="remove"))
    seen = await early
    assert [event.seq for event in seen] == sorted({event.seq for event in seen})
    assert [event.status for event in seen if event.step_id == "remove" and not event.logs][-2:] == [
        "running",
        "completed",
    ]
    late = await _watched(temporal_client, plan)
    assert _untimed(late) == _untimed(seen)
    half = len(seen) // 2
    assert [event async for event in runs.watch(temporal_client, plan, since=seen[half].seq)] == late[half + 1 :]


async def _watched(client: Client, plan: str) -> list[EventView]:
    return [event async for event in runs.watch(client, plan)]


def _untimed(events: list[EventView]) -> list[dict[str, Any]]:
    """Without the time, which in a plan's first moment is not the same again when it is replayed (docs/temporal.md)."""
    return [event.model_dump(exclude={"time"}) for event in events]


async def test_watching_follows_a_plan_into_the_next_run_and_adds_nothing_to_its_history(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    steps = [{**WRITE, "id": f"s{n}", "dependsOn": [f"s{n - 1}"] if n else []} for n in range(12)]
    plan = (await start(*steps, history_limit=20)).plan_id
    seen = await _watched(temporal_client, plan)
    done = [event.step_id for event in seen if event.status == "completed"]
    assert done == [f"s{n}" for n in range(12)]
    before = (await temporal_client.get_workflow_handle(f"plan-{plan}").describe()).history_length
    await _watched(temporal_client, plan)
    assert (await temporal_client.get_workflow_handle(f"plan-{plan}").describe()).history_length == before


@pytest.mark.slow
async def test_a_watcher_waits_for_a_worker_and_is_told_so(
    temporal_client: Client, settings: Settings, start: Start
) -> None:
    from plansurvive.activities.tools.registry import load_tools

    plan = (await start(WRITE)).plan_id
    said: list[str] = []
    watcher = asyncio.create_task(_told(temporal_client, plan, said))
    await until(lambda: said, "the watcher is told")
    assert "plan up" in said[0]
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        seen = await watcher
    assert [event.status for event in seen][-1] == "completed"
    assert len(said) == 1


async def _told(client: Client, plan: str, said: list[str]) -> list[EventView]:
    return [event async for event in runs.watch(client, plan, say=said.append)]


@pytest.mark.slow
async def test_without_a_worker_a_question_is_answered_with_what_to_do(
    temporal_client: Client, start: Start, queue: str
) -> None:
    plan = (await start(WRITE)).plan_id
    with pytest.raises(NoWorker) as said:
        await runs.show(temporal_client, plan)
    assert queue in said.value.message
    with pytest.raises(NoWorker) as said:
        await runs.approve(temporal_client, plan, Choice(step_id="write"))
    assert queue in said.value.message
    assert "was sent and takes effect when a worker serves the plan, unless the Temporal server" in said.value.message


@pytest.mark.slow
async def test_what_was_sent_without_a_worker_counts_when_one_comes(
    temporal_client: Client, settings: Settings, start: Start
) -> None:
    plan = (await start(WRITE, REMOVE, NAP)).plan_id
    choice = Choice(step_id="remove", by="ann")
    for early in (runs.approve(temporal_client, plan, choice), runs.pause(temporal_client, plan, by="ann")):
        with pytest.raises(NoWorker, match="was sent and takes effect when a worker serves the plan"):
            await early
    async with build(temporal_client, settings, load_tools(()), indexed=True):

        async def log() -> Any:
            return [entry.text for entry in (await runs.show(temporal_client, plan)).log] or None

        assert "step 'remove' approved by ann" in await until(log, "the approval is logged")


@pytest.mark.slow
async def test_a_decision_does_not_wait_for_a_worker_that_has_stopped_but_is_still_listed(
    temporal_client: Client, settings: Settings, start: Start
) -> None:
    plan = (await start(WRITE, REMOVE)).plan_id
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        await asked(temporal_client, plan, "remove")
    choice = Choice(step_id="remove").message() | {"approved": True}
    with pytest.raises(NoWorker, match=r"although a worker polls queue.* The message was sent"):
        # The server answers each request after 20 s, accepted or not: the time is of them all.
        await asyncio.wait_for(update(temporal_client, plan, "decide", choice, patience=21), 90)


async def test_who_gives_up_sending_a_decision_is_not_made_to_wait(temporal_client: Client, start: Start) -> None:
    plan = (await start(WRITE)).plan_id
    sending = asyncio.create_task(runs.pause(temporal_client, plan))
    await asyncio.wait([sending], timeout=1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@pytest.mark.slow
async def test_more_decisions_at_once_than_the_server_takes_updates_all_count(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    names = [f"gate{number}" for number in range(25)]
    gates = [{"id": name, "tool": "sleep", "args": {"seconds": 0.01}, "requiresApproval": True} for name in names]
    plan = (await start(*gates)).plan_id
    await asked(temporal_client, plan, names[-1])
    choices = [Choice(step_id=name, by="ann") for name in names]
    said = await asyncio.gather(*(runs.approve(temporal_client, plan, choice) for choice in choices))
    assert said == [f"step '{name}' approved by ann" for name in names]
    assert (await runs.wait(temporal_client, plan)).is_completed


async def test_pausing_and_going_on(temporal_client: Client, worker: Worker, start: Start) -> None:
    plan = (await start(WRITE, REMOVE)).plan_id
    await asked(temporal_client, plan, "remove")
    assert await runs.pause(temporal_client, plan, by="ann") == "paused by ann"
    assert (await runs.summary(temporal_client, plan)).status.value == "paused"
    for refused, code in ((runs.pause, "NOT_RUNNING"), (runs.begin, "NOT_IN_REVIEW")):
        with pytest.raises(Refused) as error:
            await refused(temporal_client, plan)
        assert error.value.code == code
    await runs.approve(temporal_client, plan, Choice(step_id="remove"))
    assert (await runs.summary(temporal_client, plan)).counts["completed"] == 1
    assert await runs.unpause(temporal_client, plan, by="ann") == "unpaused by ann"
    log = (await runs.show(temporal_client, plan)).log
    assert [entry.kind for entry in log] == ["paused", "approved", "unpaused"]
    assert (await runs.wait(temporal_client, plan)).is_completed


async def test_a_plan_in_review_begins_when_told(temporal_client: Client, worker: Worker, start: Start) -> None:
    plan = (await start(WRITE, review=True)).plan_id

    async def in_review() -> bool:
        return (await runs.summary(temporal_client, plan)).status.value == "review"

    await until(in_review, "the plan is in review")
    assert await runs.begin(temporal_client, plan, by="ann") == "review ended by ann"
    assert (await runs.wait(temporal_client, plan)).is_completed


async def test_waiting_never_raises_for_how_a_plan_ended(temporal_client: Client, worker: Worker, start: Start) -> None:
    missing = {"id": "miss", "tool": "read_file", "args": {"path": "nope"}}
    partial = await runs.wait(temporal_client, (await start(WRITE, missing)).plan_id)
    assert (partial.status.value, partial.failed[0].code) == ("partial", "NOT_FOUND")
    failed = await runs.wait(temporal_client, (await start(WRITE, {**missing, "critical": True})).plan_id)
    assert (failed.status.value, failed.failed[0].step_id) == ("failed", "miss")
    napping = (await start(NAP)).plan_id
    await runs.cancel(temporal_client, napping)
    assert (await runs.wait(temporal_client, napping)).status.value == "cancelled"
    ended = (await start(NAP)).plan_id
    await temporal_client.get_workflow_handle(f"plan-{ended}").terminate("enough")
    assert (await runs.wait(temporal_client, ended)).stopped == "terminated from outside"


async def test_a_plan_the_worker_refuses_is_told_with_its_problems(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    started = await start({"id": "a", "tool": "no_such_tool", "args": {}})
    with pytest.raises(InvalidPlan) as refused:
        await runs.wait(temporal_client, started.plan_id)
    assert [problem.code for problem in refused.value.problems] == ["UNKNOWN_TOOL"]


async def test_a_plan_that_is_none_starts_nothing(temporal_client: Client, queue: str) -> None:
    nonsense: list[Any] = [[], {"steps": []}, None]
    for data in nonsense:
        with pytest.raises(InvalidPlan):
            await runs.start(temporal_client, data, queue=queue)


async def test_ids_are_never_used_twice(temporal_client: Client, worker: Worker, start: Start, queue: str) -> None:
    plan = (await start(WRITE, plan_id=f"once-{queue}")).plan_id
    assert plan == f"once-{queue}"
    with pytest.raises(PlanExists):
        await start(WRITE, plan_id=plan)
    await runs.wait(temporal_client, plan)
    with pytest.raises(PlanExists):
        await start(WRITE, plan_id=plan)
    with pytest.raises(BadPlanId):
        await start(WRITE, plan_id="not an id")


async def test_what_is_not_there_or_has_ended_is_told_apart(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    client, choice = temporal_client, Choice(step_id="a")
    absent = [
        runs.show(client, "absent"), runs.wait(client, "absent"), runs.cancel(client, "absent"),
        runs.pause(client, "absent"), runs.approve(client, "absent", choice), _update(client, "absent", choice),
        _watched(client, "absent"),
    ]  # fmt: skip
    for question in absent:
        with pytest.raises(PlanNotFound):
            await question
    plan = (await start(WRITE)).plan_id
    await runs.wait(client, plan)
    ended = [
        runs.cancel(client, plan), runs.pause(client, plan),
        runs.approve(client, plan, choice), _update(client, plan, choice),
    ]  # fmt: skip
    for message in ended:
        with pytest.raises(PlanClosed):
            await message


async def test_plans_are_listed_with_title_and_status_and_what_waits(
    temporal_client: Client, worker: Worker, start: Start
) -> None:
    plan = (await start(WRITE, REMOVE, title="A listed one")).plan_id
    await asked(temporal_client, plan, "remove")

    async def listed() -> Any:
        return [each async for each in runs.list_plans(temporal_client) if each.plan_id == plan and each.waiting]

    found = (await until(listed, "the plan is listed as waiting"))[0]
    assert (found.title, found.status.value, found.steps, found.waiting) == ("A listed one", "running", 2, ["remove"])
    waiting = [each async for each in runs.pending(temporal_client) if each.plan_id == plan]
    assert [(each.step_id, each.tool, each.args) for each in waiting] == [("remove", "delete_file", {"path": "a.txt"})]
