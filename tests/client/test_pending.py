"""What people are asked for in all plans, also when the worker of some of them has gone."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.errors import NoWorker
from plansurvive.client.ids import workflow_id
from plansurvive.client.listing import list_plans
from plansurvive.client.rpc import ask
from plansurvive.client.verbs import pending
from plansurvive.features.workflow_types import PlanWorkflow
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import terminated
from tests.kit.waiting import until

GATED = {"title": "Gated", "steps": [{"id": "gate", "tool": "sleep", "args": {"seconds": 0}, "requiresApproval": True}]}


@pytest.mark.slow
async def test_plans_whose_worker_has_gone_keep_nobody_from_seeing_the_others(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    from plansurvive.activities.tools.registry import load_tools

    tools = load_tools(())
    gone = settings.model_copy(update={"task_queue": f"{queue}-gone"})
    names = [f"gone-{number}-{queue}" for number in range(pending.NAMED + 2)]
    options = Options(workspace=str(settings.workspace))
    async with build(temporal_client, gone, tools, indexed=True):
        for name in names:
            await runs.start(temporal_client, GATED, options=options, plan_id=name, queue=gone.task_queue)
        await until(lambda: _all_ask(temporal_client, names), "they all ask")
    # The server still shows who has listened just now, and its process lives on: it counts as a worker.
    async with build(temporal_client, settings, tools, indexed=True):
        await runs.start(temporal_client, GATED, options=options, plan_id=f"here-{queue}", queue=queue)
        await until(lambda: _is_listed(temporal_client, f"here-{queue}"), "it asks")
        found, told = await until(lambda: _found(temporal_client, [f"here-{queue}"]), "the other one is found")
        assert not set(names) & found
        (sentence,) = [each for each in told if each.startswith("No worker answers for these plans: ")]
        assert sentence.endswith(f" and 2 more. Start one: plan worker --queue {gone.task_queue}")
        with_error = await _refused(temporal_client, names[0])
        assert "did not answer within 1 s" in with_error.message
        assert gone.task_queue in with_error.message
    for name in [*names, f"here-{queue}"]:
        await terminated(temporal_client, f"plan-{name}")


@workflow.defn(name="AgentWorkflow", sandboxed=False)
class Broken:
    """One whose workflow task fails on every attempt."""

    @workflow.run
    async def run(self, *_: Any) -> None:
        """Fail the task, again and again."""
        raise RuntimeError("broken")


@pytest.mark.slow
async def test_a_plan_that_nobody_gets_on_with_is_named_and_the_others_of_its_queue_are_asked(
    temporal_client: Client, settings: Settings, queue: str
) -> None:
    from plansurvive.activities.tools.registry import load_tools

    names = [f"well-{number}-{queue}" for number in range(pending.AT_ONCE + 1)]
    options = Options(workspace=str(settings.workspace))
    async with build(temporal_client, settings, load_tools(()), indexed=True, workflows=[PlanWorkflow, Broken]):
        for name in names:
            await runs.start(temporal_client, GATED, options=options, plan_id=name, queue=queue)
        await until(lambda: _all_ask(temporal_client, names), "they all ask")
        await temporal_client.start_workflow("AgentWorkflow", id=f"agent-{queue}", task_queue=queue)
        await until(lambda: _is_listed(temporal_client, f"agent-{queue}", waits=False), "the index knows it")
        _, told = await until(lambda: _found(temporal_client, names), "the others are found")
        (reason,) = [sentence for sentence in told if queue in sentence]
        assert (
            f"plan 'agent-{queue}' did not answer within 4 s: its workflow task failed or took too long, and is at"
            in reason
        )
        for name in names:
            await terminated(temporal_client, workflow_id(name))
        await until(lambda: _is_named(temporal_client, f"agent-{queue}"), "it is named also when it is the only one")
    await terminated(temporal_client, f"agent-{queue}")


async def _is_named(client: Client, plan: str) -> bool:
    """Whether it is told of a plan that its worker gets stuck on, and not that there is none."""
    told: list[str] = []
    assert not [each async for each in runs.pending(client, told.append, patience=1.0) if each.plan_id == plan]
    return any(sentence.startswith(f"plan '{plan}' did not answer") for sentence in told)


async def _found(client: Client, names: list[str]) -> tuple[set[str], list[str]] | None:
    """Who is asked for, and what is told about the others; none before these are found."""
    told: list[str] = []
    found = {each.plan_id async for each in runs.pending(client, told.append, patience=4.0)}
    return (found, told) if found >= set(names) else None


async def _all_ask(client: Client, names: list[str]) -> bool:
    asking = {each.plan_id async for each in runs.pending(client)}
    return asking >= set(names)


async def _is_listed(client: Client, plan: str, *, waits: bool = True) -> bool:
    """Whether the server's index, a little later than the plan, knows it, and says that it waits for a person."""
    found = [each async for each in list_plans(client, agents=True) if each.plan_id == plan]
    return any(each.waiting or not waits for each in found)


async def _refused(client: Client, plan: str) -> NoWorker:
    """What is said when the plan is asked once more."""
    with pytest.raises(NoWorker) as caught:
        await ask(client, plan, "plan", patience=1.0)
    return caught.value


@pytest.mark.parametrize(
    ("asker", "title", "says"),
    [
        ('plan p ("T"), started by ann', "T", "started by ann"),
        ("plan p, started by ann, for step 's' of plan q", "", "started by ann, for step 's' of plan q"),
        ('agent p ("T"), started by ann', "T", "started by ann"),
        ('plan p ("T")', "T", 'asked by plan p ("T")'),
        ('plan p ("T, started by bob"), started by ann', "T", 'asked by plan p ("T, started by bob"), started by ann'),
        (f'plan p ("{"T" * 81}"), started by ann', "T" * 81, f'asked by plan p ("{"T" * 81}"), started by ann'),
        ("", "T", ""),
    ],
)
def test_below_the_name_of_its_plan_a_decision_says_who_asks_without_it(asker: str, title: str, says: str) -> None:
    card = pending.Pending(plan_id="p", title=title, step_id="s", tool="note", kind="approval", asker=asker)
    assert card.asked_by == says
