"""Quotas and what people do to plans: each verb, for a plan that has a place and for one that waits for it.

`MATRIX` names the test of each cell, or says why it means nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.schedules.control import delete_schedule
from plansurvive.client import runs
from plansurvive.client.verbs import resume
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.schedules.driving import Schedules
from tests.features.quotas import test_quotas
from tests.features.quotas.test_quotas import holding, places, waiting
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import WAITS, Plans, Started, statuses, work
from tests.kit.waiting import until
from tests.workflows.agents import call, says


class Means(str):
    """Why a cell means nothing."""


HAS, WAITS_FOR_ONE = "has a place", "waits for one"


async def in_line(plans: Plans, quotas: str) -> tuple[list[str], list[str]]:
    """Who runs and who waits, of the label that all plans here have."""
    row = await places(plans, f"{quotas}=acme")
    return row["running"], row["waiting"]


async def until_line(plans: Plans, quotas: str, running: list[str], waits: list[str]) -> None:
    """Until these run and these wait, in this order, and no other."""

    async def look() -> bool:
        return await in_line(plans, quotas) == (running, waits)

    await until(look, f"{running} run and {waits} wait")


def began(plans: Plans) -> list[str]:
    return [line[1] for line in plans.ledger if line[0] == "start"]


async def test_a_paused_plan_keeps_its_place(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await plans.start([work("first", args=WAITS), work("last", "first")], labels=labels)
    await first.until_status("first", "running")
    await runs.pause(plans.client, first.id)
    second = await waiting(plans, labels)
    plans.go()
    await first.until_status("first", "completed")
    assert await in_line(plans, quotas) == ([first.id], [second.id])
    await runs.unpause(plans.client, first.id)
    assert (await second.ended())["status"] == "completed"
    assert began(plans) == ["first", "last", "second"]


async def test_a_plan_that_is_paused_while_it_waits_gets_its_place_and_starts_nothing(
    plans: Plans, quotas: str
) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    await runs.pause(plans.client, second.id)
    plans.go()
    await first.ended()
    await until_line(plans, quotas, [second.id], [])
    view = await second.until(lambda view: "has its turn" in view["notices"]["quotas"]["text"], "it has its turn")
    assert (view["status"], statuses(view)) == ("paused", {"second": "ready"})
    await runs.unpause(plans.client, second.id)
    assert (await second.ended())["status"] == "completed"


async def test_a_cancelled_plan_gives_its_place_to_the_next(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    await runs.cancel(plans.client, first.id)
    assert (await first.ended())["status"] == "cancelled"
    assert (await second.ended())["status"] == "completed"


async def test_a_plan_that_is_terminated_while_it_waits_is_passed_over(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    third = await waiting(plans, labels, work("third"))
    await second.handle.terminate()
    plans.go()
    assert (await third.ended())["status"] == "completed"
    await first.ended()
    assert began(plans) == ["first", "third"]


async def to_its_start(plan: Started) -> None:
    """Reset a plan to its first workflow task: it has asked for nothing yet."""
    events = (await plan.handle.fetch_history()).events
    first = next(e.event_id for e in events if e.HasField("workflow_task_completed_event_attributes"))
    await plan.client.workflow_service.reset_workflow_execution(ResetWorkflowExecutionRequest(
        namespace=plan.client.namespace, workflow_execution=WorkflowExecution(workflow_id=plan.id),
        workflow_task_finish_event_id=first, request_id=f"reset of {plan.id}",
    ))  # fmt: skip


async def test_a_plan_that_is_reset_does_not_wait_for_the_place_that_it_has(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    await to_its_start(first)
    await first.until_status("first", "running")
    assert await in_line(plans, quotas) == ([first.id], [second.id])
    plans.go()
    assert (await first.ended())["status"] == "completed"
    assert (await second.ended())["status"] == "completed"


async def test_a_plan_that_is_reset_while_it_waits_keeps_its_turn_and_is_in_the_line_once(
    plans: Plans, quotas: str
) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    third = await waiting(plans, labels, work("third"))
    await to_its_start(second)
    await second.until(lambda view: view.get("notices", {}).get("quotas", {}).get("holds"), "it waits again")
    await second.until(lambda view: statuses(view) == {"second": "ready"}, "it has begun")
    await until_line(plans, quotas, [first.id], [second.id, third.id])
    plans.go()
    for plan in (first, second, third):
        assert (await plan.ended())["status"] == "completed"
    assert began(plans) == ["first", "second", "third"]


async def test_a_resumed_plan_asks_for_a_place_again_behind_those_that_wait(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await plans.start([work("first", args=WAITS), work("last", "first")], labels=labels)
    await first.until_status("first", "running")
    second = await waiting(plans, labels, work("second", requiresApproval=True))
    await runs.interrupt(plans.client, first.id)
    plans.go()
    assert (await first.ended())["status"] == "cancelled"
    await second.until_asked("second")
    again = Started(plans.client, (await resume.resume(plans.client, first.id)).workflow_id)
    await until_line(plans, quotas, [second.id], [again.id])
    assert statuses(await again.view())["last"] == "ready"
    await second.approve("second")
    assert (await again.ended())["status"] == "completed"
    assert began(plans) == ["first", "second", "last"]


async def test_a_plan_that_was_interrupted_while_it_waited_left_the_line_and_can_be_resumed(
    plans: Plans, quotas: str
) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    second = await waiting(plans, labels)
    await runs.interrupt(plans.client, second.id)
    assert (await second.ended())["status"] == "cancelled"
    await until_line(plans, quotas, [first.id], [])
    again = Started(plans.client, (await resume.resume(plans.client, second.id)).workflow_id)
    await until_line(plans, quotas, [first.id], [again.id])
    plans.go()
    assert (await again.ended())["status"] == "completed"
    assert began(plans) == ["first", "second"]


async def test_a_rerun_asks_for_a_place_of_its_own(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    done = await plans.start([work("done")], labels=labels)
    assert (await done.ended())["status"] == "completed"
    first = await holding(plans, labels)
    again = Started(plans.client, (await resume.rerun(plans.client, done.id, only="done")).workflow_id)
    await until_line(plans, quotas, [first.id], [again.id])
    plans.go()
    assert (await again.ended())["status"] == "completed"
    assert began(plans) == ["done", "first", "done"]


async def test_child_plans_of_items_run_in_the_place_of_their_parent_and_wait_with_it(
    plans: Plans, quotas: str
) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    (plans.workspace / "child.yaml").write_text(
        f"labels: {{{quotas}: acme}}\nsteps:\n  - {{id: inner, tool: work, args: {{name: inner}}}}\n"
    )
    step = {"id": "each", "tool": "plan", "args": {"file": "child.yaml"}, "forEach": {"items": [1, 2, 3]}}
    second = await waiting(plans, labels, step)
    assert began(plans) == ["first"]
    plans.go()
    assert (await second.ended())["status"] == "completed"
    await first.ended()
    assert began(plans) == ["first", "inner", "inner", "inner"]


async def test_an_agent_works_in_the_place_of_its_plan_and_waits_with_it(
    idle: Plans, settings: Settings, temporal_client: Client, quotas: str
) -> None:
    labels = {quotas: "acme"}
    story = [says({"tool_calls": [call("work", name="called")]}), says({"answer": "done"}, times=0)]
    with ScriptedLlm(Script.of(story)) as llm:
        talking = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, talking, load_tools([LEDGER_TOOLS]), indexed=True):
            first = await holding(idle, labels)
            second = await waiting(idle, labels, {"id": "ag", "tool": "agent", "args": {"objective": "Work."}})
            assert not llm.play.seen, "no request is sent while it waits"
            idle.go()
            assert (await second.ended())["status"] == "completed"
            await first.ended()
    assert began(idle) == ["first", "called"]


async def test_a_run_of_a_schedule_waits_as_any_plan(plans: Plans, quotas: str) -> None:
    labels = {quotas: "acme"}
    first = await holding(plans, labels)
    made = Schedules(plans.client, plans.queue, plans.workspace)
    name = await made.create(work("scheduled"), labels=labels)
    run = Started(plans.client, f"plan-{await made.trigger(name)}")
    await until_line(plans, quotas, [first.id], [run.id])
    plans.go()
    assert (await run.ended())["status"] == "completed"
    await delete_schedule(plans.client, name)
    assert began(plans) == ["first", "scheduled"]


MATRIX: dict[str, dict[str, Any]] = {
    "pause": {
        HAS: test_a_paused_plan_keeps_its_place,
        WAITS_FOR_ONE: test_a_plan_that_is_paused_while_it_waits_gets_its_place_and_starts_nothing,
    },
    "cancel": {
        HAS: test_a_cancelled_plan_gives_its_place_to_the_next,
        WAITS_FOR_ONE: test_quotas.test_a_plan_that_waits_can_be_cancelled_and_runs_nothing,
    },
    "terminate": {
        HAS: test_quotas.test_a_plan_that_is_terminated_frees_its_place,
        WAITS_FOR_ONE: test_a_plan_that_is_terminated_while_it_waits_is_passed_over,
    },
    "reset": {
        HAS: test_a_plan_that_is_reset_does_not_wait_for_the_place_that_it_has,
        WAITS_FOR_ONE: test_a_plan_that_is_reset_while_it_waits_keeps_its_turn_and_is_in_the_line_once,
    },
    "resume": {
        HAS: test_a_resumed_plan_asks_for_a_place_again_behind_those_that_wait,
        WAITS_FOR_ONE: test_a_plan_that_was_interrupted_while_it_waited_left_the_line_and_can_be_resumed,
    },
    "rerun": {
        HAS: test_a_rerun_asks_for_a_place_of_its_own,
        WAITS_FOR_ONE: Means("only a plan that has ended is run again"),
    },
    "child": dict.fromkeys(
        (HAS, WAITS_FOR_ONE), test_child_plans_of_items_run_in_the_place_of_their_parent_and_wait_with_it
    ),
    "agent": dict.fromkeys((HAS, WAITS_FOR_ONE), test_an_agent_works_in_the_place_of_its_plan_and_waits_with_it),
    "agent alone": dict.fromkeys((HAS, WAITS_FOR_ONE), Means("it has no labels")),
    "schedule": dict.fromkeys((HAS, WAITS_FOR_ONE), test_a_run_of_a_schedule_waits_as_any_plan),
    "continue-as-new": dict.fromkeys(
        (HAS, WAITS_FOR_ONE), test_quotas.test_continue_as_new_keeps_the_place_and_the_turn
    ),
}


@pytest.mark.parametrize("verb", MATRIX)
def test_every_cell_has_a_test_or_means_nothing(verb: str) -> None:
    assert set(MATRIX[verb]) == {HAS, WAITS_FOR_ONE}
    assert all(isinstance(cell, Means) or callable(cell) for cell in MATRIX[verb].values())
