"""Thirty messages at once to one plan: the server holds ten at a time, and nobody is told that it is not connected."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from plansurvive.client import runs
from plansurvive.client.decisions import Choice
from plansurvive.client.errors import NoWorker
from plansurvive.client.rpc import SERVER_REFUSED
from plansurvive.client.updates import is_held, update
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import PlanError
from tests.kit.driving import Plans, Started, statuses, work
from tests.kit.waiting import until
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.modes("plain"), pytest.mark.on_server("limits updates")]
MANY = 30
Send = Callable[[Client, str, int], Awaitable[Any]]
KINDS: dict[str, tuple[Send, set[str]]] = {
    "decide": (lambda client, plan, number: runs.approve(client, plan, Choice(step_id=f"s{number}")), set()),
    "answer": (lambda client, plan, number: runs.answer(client, plan, f"q{number}", "x"), set()),
    "event": (lambda client, plan, number: runs.event(client, plan, f"e{number}"), set()),
    "control": (lambda client, plan, _: runs.clear_session(client, plan), set()),
    "edit": (
        lambda client, plan, number: runs.edit(
            client, plan, [SetField(op="set", step_id=f"s{number}", path="description", value="x")]
        ),
        set(),
    ),
    # One at a time, and there is no LLM here.
    "regenerate": (lambda client, plan, _: runs.regenerate(client, plan, "shorter"), {"BUSY", "LLM_NO_KEY"}),
}
"""What sends each kind of update, and the codes with which a plan may refuse some of them."""


async def asking(plans: Plans, number: int = MANY) -> Started:
    """A plan that awaits as many decisions, answers and events."""
    plan = await plans.start([
        *(work(f"s{index}", requiresApproval=True) for index in range(number)),
        *({"id": f"q{index}", "tool": "ask", "args": {"question": "Which?"}} for index in range(number)),
        *({"id": f"w{index}", "tool": "wait_for", "args": {"event": f"e{index}"}} for index in range(number)),
        work("last", requiresApproval=True),
    ])  # fmt: skip
    await plan.until(lambda view: all("awaiting" in each for each in view["steps"]), "all steps await something")
    return plan


async def outcomes(sent: list[Awaitable[Any]]) -> Counter[str]:
    """What became of the messages, by code."""
    found = await asyncio.gather(*sent, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, PlanError):
            raise each
    return Counter(each.code if isinstance(each, PlanError) else "done" for each in found)


async def test_thirty_updates_of_each_kind_at_once_are_all_answered(plans: Plans) -> None:
    plan = await asking(plans)
    for kind in ("edit", "control", "regenerate", "event", "answer", "decide"):
        send, refused = KINDS[kind]
        found = await outcomes([send(plan.client, plan.id, number) for number in range(MANY)])
        assert found.keys() <= {"done", *refused}, (kind, found)
        assert refused or found["done"] == MANY
    view = await plan.until(lambda view: Counter(statuses(view).values())["completed"] == 3 * MANY, "each took effect")
    assert statuses(view)["last"] == "ready"
    await plan.handle.terminate()


@pytest.mark.parametrize("away", [pytest.param(2, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)])
async def test_updates_that_the_server_refused_or_dropped_are_sent_again_until_a_worker_is_back(
    idle: Plans, make_worker: MakeWorker, away: int
) -> None:
    async with make_worker():
        plan = await asking(idle)
    kinds = [send for kind, (send, _) in KINDS.items() if kind != "regenerate"]
    names = [f"other-{number}" for number in range(10)]
    others = [asyncio.create_task(_of_another_process(plan, name)) for name in names]

    async def are_held() -> bool:
        return all([await is_held(plan.client, plan.id, name) for name in names])

    await until(are_held, "the server holds the updates of the other process")
    sent = [kinds[number % len(kinds)](plan.client, plan.id, number) for number in range(MANY)]
    sending = asyncio.create_task(outcomes(sent))
    await asyncio.sleep(away)  # nothing is to be seen meanwhile: the messages are in the server's memory, or refused
    assert not sending.done()
    async with make_worker():
        assert await sending == {"done": MANY}
        await asyncio.gather(*others, return_exceptions=True)
    await plan.handle.terminate()


async def _of_another_process(plan: Started, update_id: str) -> None:
    await plan.handle.execute_update("control", {"action": "clear_session"}, id=update_id)


@pytest.mark.slow
async def test_who_gives_up_is_told_whether_the_server_has_the_message(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker():
        plan = await asking(idle)

    async def decide(number: int) -> PlanError:
        message = {"stepId": f"s{number}", "approved": True}
        with pytest.raises(PlanError) as caught:
            await update(plan.client, plan.id, "decide", message, patience=8)
        return caught.value

    errors = await asyncio.gather(*map(decide, range(MANY)))
    held = {f"s{number}" for number, error in enumerate(errors) if isinstance(error, NoWorker)}
    assert 0 < len(held) <= 10
    for error in errors:
        if isinstance(error, NoWorker):
            assert "The message was sent and takes effect when a worker serves the plan" in error.message
        else:
            assert (error.code, "was not sent" in error.message) == (SERVER_REFUSED, True), error.message
    async with make_worker():
        assert await runs.approve(plan.client, plan.id, Choice(step_id="last"))
        view = await plan.until_status("last", "completed")
        found = {name for name, status in statuses(view).items() if status == "completed"}
        assert found - {"last"} <= held, "what was not sent takes no effect later"
    await plan.handle.terminate()


@workflow.defn(name="Other")
class _Other:
    """No workflow of ours: its worker fails the workflow tasks of plans."""

    @workflow.run
    async def run(self) -> None:
        """Nothing."""


@pytest.mark.slow
@pytest.mark.sampled
async def test_an_update_is_sent_again_while_a_workflow_task_is_repeated(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker():
        plan = await asking(replace(idle, task_timeout=timedelta(seconds=1)), number=1)

    async def is_repeated() -> bool:
        return (await plan.handle.describe()).raw_description.pending_workflow_task.attempt > 3

    other = UnsandboxedWorkflowRunner()
    async with Worker(plan.client, task_queue=idle.queue, workflows=[_Other], workflow_runner=other):
        await plan.signal("approve", {"stepId": "s0"})
        await until(is_repeated, "the server takes no update of the plan")
        sending = asyncio.create_task(runs.approve(plan.client, plan.id, Choice(step_id="last")))
        await asyncio.wait([sending], timeout=1)
        assert not sending.done()
    async with make_worker():
        assert await sending
    await plan.handle.terminate()
