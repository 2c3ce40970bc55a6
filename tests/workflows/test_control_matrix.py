"""Verbs that control a plan, over all that may be below it: agents, child plans, theirs, items of both kinds of loops.

`tests.workflows.test_matrix` has the table of verbs and kinds, with the tests by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from plansurvive.client import runs
from plansurvive.client.listing import list_plans
from plansurvive.client.runs import Choice
from plansurvive.client.verbs import resume
from plansurvive.client.verbs.pending import Pending
from plansurvive.features.cache.commands import why_of
from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import PlanError
from plansurvive.plans.views.models.card import command
from tests.kit.driving import Plans, Started, count, refusals, step
from tests.kit.waiting import until
from tests.workflows.agents import Serving, serving
from tests.workflows.whole_plan import CALLS, NAMES, QUESTION, STEPS, at_work, started, story

pytestmark = pytest.mark.crosses_runs
RUNNING = WorkflowExecutionStatus.RUNNING


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


async def below(client: Client, plan: Started) -> dict[str, WorkflowExecutionStatus | None]:
    """The status of every workflow that the plan has started, directly or not, by its id."""
    root = plan.id.removeprefix("plan-")
    query = f"(WorkflowId STARTS_WITH 'plan-{root}' OR WorkflowId STARTS_WITH 'agent-{root}')"
    query += " AND ExecutionStatus != 'ContinuedAsNew'"
    return {each.id: each.status async for each in client.list_workflows(query) if each.id != plan.id}


def asked(view: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What is asked in a plan and below it, by its path: the ids of the workflow and of its step."""
    found = dict[str, tuple[str, str]]()
    for each in view["steps"]:
        for at in (each, *each.get("instances", ())):
            for item in (at.get("child") or {}).get("pending", ()):
                found[f"{at['id']}/{item['path']}"] = (item["planId"], item["stepId"])
            if asks := at.get("agentAsks"):
                found |= {f"{at['id']}/{name}": (asks["agentId"], name) for name in asks["stepIds"]}
    return found


async def until_all_asked(plan: Started, *paths: str) -> dict[str, Pending]:
    """What is asked, once that is all of it.

    The plan's own view says when. What is below is queried then, not each time: a query of an uncached workflow replays
    it, and takes the place in the worker of one that has work to do.
    """

    async def look() -> dict[str, Pending] | None:
        try:
            named = asked(await plan.view())
            if not set(paths) <= named.keys():
                return None
            items = {(each.plan_id, each.step_id): each async for each in runs.pending(plan.client, plan=plan.id)}
            return {path: items[at] for path, at in named.items()}
        except (KeyError, PlanError, RPCError):
            return None  # it was decided in between, or a child has just begun

    found: dict[str, Pending] = await until(look, f"{paths} are asked")
    return found


async def decide_all(plan: Started, *, but: str = "") -> None:
    """Approve what all agents ask by its path, with the digest of what is shown, and answer the question."""
    for path, item in (await until_all_asked(plan, *CALLS, QUESTION)).items():
        if path == QUESTION:
            await runs.answer(plan.client, plan.id, path, "one", by="ann", digest=item.digest)
        elif path != but:
            await runs.approve(plan.client, plan.id, Choice(step_id=path, by="ann", digest=item.digest))


@pytest.mark.on_server("lists")
async def test_a_pause_reaches_all_that_works_for_the_plan_and_so_does_its_end(serve: Serving) -> None:
    async with serve(story()) as agents:
        plan = await started(agents)
        await until(lambda: at_work(agents.plans) == set(NAMES), "all agents work")
        others = list(await until(lambda: _all_below(plan), "all are listed"))
        await runs.pause(plan.client, plan.id, by="ann")
        for name in others:
            found = await Started(plan.client, name).until(lambda view: view["status"] == "paused", f"{name} is paused")
            assert any(each["text"] == "paused with its plan by ann" for each in found["log"]), found["log"]
        agents.plans.go()
        for name in (each for each in others if each.startswith("agent-")):
            await Started(plan.client, name).until_status("call_1", "completed")
        assert len(agents.llm.play.seen) == len(NAMES), "what ran has finished, and no further request was sent"
        alone = f"agent-{plan.id.removeprefix('plan-')}-ag"
        await runs.pause(plan.client, alone, by="bob")
        await runs.unpause(plan.client, plan.id, by="ann")
        await until_all_asked(plan, *CALLS[1:], QUESTION)
        view = await Started(plan.client, alone).view()
        assert view["status"] == "paused", "somebody paused it by itself"
        await plan.until_logged("agent", f"{alone} is paused: plan unpause {alone}")
        await runs.unpause(plan.client, alone, by="bob")
        await decide_all(plan)
        view = await plan.ended()
        assert (view["status"], refusals(view)) == ("completed", [])
        for name in others:
            assert refusals(await Started(plan.client, name).view()) == []


async def _all_below(plan: Started) -> dict[str, Any] | None:
    found = await below(plan.client, plan)
    return found if len(found) == 8 else None


@pytest.mark.on_server("lists")
async def test_a_cancelled_plan_leaves_nothing_running(serve: Serving) -> None:
    async with serve(story()) as agents:
        plan = await started(agents)
        await until(lambda: at_work(agents.plans) == set(NAMES), "all agents work")
        await until(lambda: _all_below(plan), "all are listed")
        await runs.cancel(plan.client, plan.id)
        assert (await plan.ended())["status"] == "cancelled"

        async def none_runs() -> bool:
            return RUNNING not in (await below(plan.client, plan)).values()

        await until(none_runs, "all have ended")
        assert set((await below(plan.client, plan)).values()) <= {
            WorkflowExecutionStatus.CANCELED, WorkflowExecutionStatus.COMPLETED
        }  # fmt: skip


async def test_an_interrupted_plan_asks_the_same_again_when_it_is_resumed_and_repeats_no_call(serve: Serving) -> None:
    async with serve(story()) as agents:
        agents.plans.go()
        plan = await started(agents)
        await until_all_asked(plan, *CALLS, QUESTION)
        await runs.interrupt(plan.client, plan.id, by="ann")
        assert (await plan.ended())["status"] == "cancelled"
        assert [each async for each in runs.pending(plan.client, plan=plan.id)] == []
        links = await resume.resume(plan.client, plan.id)
        with pytest.raises(PlanError):
            await resume.resume(plan.client, plan.id)
        again = Started(plan.client, links.workflow_id)
        await decide_all(again)
        assert (await again.ended())["status"] == "completed"
        assert sorted(line[1] for line in agents.plans.ledger if line[0] == "start") == sorted(NAMES)


async def test_a_rerun_repeats_what_is_below_the_step_and_nothing_else(serve: Serving) -> None:
    async with serve(story()) as agents:
        agents.plans.go()
        plan = await started(agents)
        await decide_all(plan)
        assert (await plan.ended())["status"] == "completed"
        for name in ("sub", "each", "many", "ag"):
            before = len(agents.llm.play.seen)
            links = await resume.rerun(plan.client, plan.id, only=name)
            view = await Started(plan.client, links.workflow_id).until(
                lambda view: view["status"] == "completed" or view["steps"][1].get("child", {}).get("pending"), "done"
            )
            if name == "sub":
                again = Started(plan.client, links.workflow_id)
                await runs.answer(plan.client, again.id, QUESTION, "two", by="ann")
                view = await again.ended()
            assert view["status"] == "completed"
            assert len(agents.llm.play.seen) - before == (2 if name == "sub" else 1), "by their last answer, at once"


@pytest.mark.on_server("lists")
async def test_all_that_is_asked_below_a_plan_is_shown_listed_and_decided_there(serve: Serving) -> None:
    async with serve(story()) as agents:
        agents.plans.go()
        plan = await started(agents)
        await until_all_asked(plan, *CALLS, QUESTION)
        root = plan.id.removeprefix("plan-")
        # 1. It is said in the plan's own log, which `plan run` and `plan watch` print, with the command that decides.
        for path in (CALLS[1], CALLS[2], CALLS[4]):
            await plan.until_logged("child", command(root, path, "approval"))
        await plan.until_logged("child", command(root, QUESTION, "answer"))
        # 2. `plan show` and the next commands name it.
        text = await runs.text(plan.client, plan.id, detailed=True)
        assert all(command(root, path, "approval") in text for path in (CALLS[1], CALLS[2])), text
        asks = {each.step_id: each.kind for each in (await runs.summary(plan.client, plan.id)).asks}
        assert asks == dict.fromkeys(CALLS, "approval") | {QUESTION: "answer"}
        # 3. The server's index finds the plan by it, so that `plan list --awaiting` has it.
        for path in (*CALLS, QUESTION):
            query = f"WorkflowId = '{plan.id}' AND PlanPending = '{path}'"
            await until(partial(count, plan.client, query), query)
        assert root in [each.plan_id async for each in list_plans(plan.client, running=True, awaiting=True)]
        # 4. It is decided by its path: with a digest, with another one, with a denial.
        with pytest.raises(PlanError, match="another call"):
            await runs.approve(plan.client, plan.id, Choice(step_id=CALLS[2], by="ann", digest="0" * 64))
        await runs.deny(plan.client, plan.id, Choice(step_id=CALLS[4], by="ann", comment="keep it"))
        await plan.until(lambda view: CALLS[4] not in asked(view), "the denied call asks no more")
        for path in CALLS[:4]:
            item = await runs.call(plan.client, plan.id, path)
            assert item is not None
            await runs.approve(plan.client, plan.id, Choice(step_id=path, by="ann").naming(item))
        await runs.answer(plan.client, plan.id, QUESTION, "one", by="ann")
        view = await plan.ended()
        assert view["status"] == "completed", "an agent learns of a denial and goes on"
        assert [name for name in NAMES if (agents.plans.workspace / f"{name}.txt").exists()] == ["x"]
        with pytest.raises(PlanError, match="no plan, and no agent"):
            await runs.approve(plan.client, plan.id, Choice(step_id="each/call_1", by="ann"))


@pytest.mark.slow
@pytest.mark.on_server("lists")
async def test_a_budget_is_shared_by_all_below_and_extended_once_for_all(serve: Serving) -> None:
    async with serve(story()) as agents:
        agents.plans.go()
        plan = await started(agents, budget={"calls": 5, "ask": True})
        view = await plan.until(lambda view: view["pending"], "the budget is used up")
        assert refusals(view) == []
        assert [each["kind"] for each in view["pending"]] == ["budget"], "one question, in the plan that has the budget"
        await until(lambda: len(agents.llm.play.seen) >= 5, "those that were granted are sent")
        grown = [await Started(plan.client, name).view() for name in await below(plan.client, plan)]
        assert [each for view in grown for each in refusals(view)] == []
        assert len(agents.llm.play.seen) == 5, "no child plan sends one that was not granted, and no grant is lost"
        await runs.interrupt(plan.client, plan.id, by="ann")
        await plan.ended()
        changes = [Replacement(step_id="budget", path="calls", value=20)]
        links = await resume.resume(plan.client, plan.id, changes=changes)
        again = Started(plan.client, links.workflow_id)
        await decide_all(again)
        view = await again.ended()
        sent = len(agents.llm.play.seen)
        assert (view["status"], view["tokens"]["calls"]) == ("completed", sent), "those of the run before count as well"
        assert sent in range(15, 18), "three of each agent, and those that were under way when the plan was interrupted"


async def test_why_says_of_each_step_why_its_tool_was_called(serve: Serving) -> None:
    async with serve(story()) as agents:
        agents.plans.go()
        plan = await started(agents)
        await decide_all(plan)
        view = await plan.ended()
        for name in ("ag", "sub", "each[a].ag"):
            assert (await why_of(plan.client, plan.id, name)).step_id == name
        child = step(view, "sub")["child"]["planId"]
        assert (await why_of(plan.client, child, "ag")).step_id == "ag"
        assert {each["id"] for each in STEPS} == {each["id"] for each in view["steps"]}
