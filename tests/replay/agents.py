"""The agents whose histories are kept, and what their model says."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from plansurvive.client.verbs import resume
from tests.kit.driving import CEILING, Plans, Started
from tests.workflows.agents import call, says

CHOOSES = says({"tool_calls": [call("plan_actions", reason="two objectives")]})
SPLITS = says({"tasks": ["Do one", "Do two"]})
SIMPLE = [
    says({"tool_calls": [call("list_directory", path="."), call("write_file", path="a.txt", content="a")]}),
    says({"answer": "It is written.", "confidence": "high"}),
]
COMPLEX = [
    CHOOSES,
    SPLITS,
    says({"tool_calls": [call("run_command", command="true")], "task_completed": "one is done"}),
    says({"final_answer": "too early"}),
    says({"tool_calls": [call("run_command", command="false")]}),
    says({"tool_calls": [call("write_file", path="two.txt", content="2")], "task_completed": "two is done"}),
    says({"final_answer": "Both are done."}),
]
STEADY = [
    CHOOSES,
    SPLITS,
    says({"tool_calls": [call("work", name="one")], "task_completed": "one is done"}),
    says({"tool_calls": [call("work", name="two", seconds=1.0)], "task_completed": "two is done"}),
    says({"final_answer": "Both are done."}),
]
JUDGED = [
    says({"tool_calls": [call("no_such_tool")]}),
    says({"tool_calls": [call("list_directory", path=".")]}),
    says({"answer": "three", "confidence": "low"}),
    says({"answer": '{"n": 3}', "confidence": "high"}),
]
PENDING = [
    says({"tool_calls": [call("read_file", path="a.txt"), call("sign", text="it"), call("work", name="after")]}),
    says({"answer": "It is signed.", "confidence": "high"}),
]
LOOKS = [says({"tool_calls": [call("list_directory", path=".")]}, times=0)]
STEP = {"id": "agent", "tool": "agent", "args": {"objective": "Do one and two."}}


async def start(plans: Plans, order: dict[str, Any] | None = None, **options: Any) -> Started:
    """Start an agent by itself."""
    name = f"agent-{uuid.uuid4().hex[:12]}"
    given = {"workspace": str(plans.workspace), **options}
    await plans.client.start_workflow(
        "AgentWorkflow",
        {"order": {"request": "Do one and two.", **(order or {})}, "options": given},
        id=name,
        task_queue=plans.queue,
        execution_timeout=CEILING,
    )
    return Started(plans.client, name)


def run(**options: Any) -> Callable[[Plans], Awaitable[Started]]:
    """An agent that needs nobody."""

    async def scenario(plans: Plans) -> Started:
        started = await start(plans, **options)
        await started.ended()
        return started

    return scenario


async def judged(plans: Plans) -> Started:
    """An agent whose answers come back parsed: one call is rejected, and one final answer, which has a schema."""
    started = await start(plans, {"outputSchema": {"type": "object", "required": ["n"]}})
    await started.ended()
    return started


async def approved(plans: Plans) -> Started:
    """An agent with a task list; one command is approved, one denied."""
    started = await start(plans)
    await started.until(lambda view: view["pending"], "the first command asks")
    await started.approve("call_1", by="ann")
    await started.until(lambda view: view["pending"] and view["pending"][0]["stepId"] == "call_2", "the second asks")
    await started.deny("call_2", by="ann")
    await started.ended()
    return started


async def stopped(plans: Plans, started: Started) -> Started:
    """What was started, interrupted while the second task is done."""
    await started.until(lambda _: any(line[:2] == ["start", "two"] for line in plans.ledger), "the second task")
    await started.signal("interrupt", {"by": "ann"})
    await started.ended()
    return started


async def resumed(plans: Plans, earlier: Started) -> Started:
    """The run that goes on from an interrupted one, ended."""
    later = await resume.resume(plans.client, earlier.id, "ann")
    started = Started(plans.client, later.workflow_id)
    await started.ended()
    return started


async def interrupted(plans: Plans) -> Started:
    """An agent that is interrupted while a tool runs."""
    return await stopped(plans, await start(plans))


async def gone_on(plans: Plans) -> Started:
    """An agent that goes on from that one."""
    return await resumed(plans, await interrupted(plans))


async def pending_resumed(plans: Plans) -> Started:
    """An agent that goes on from one that was interrupted while a call awaited approval, its session just cleared."""
    (plans.workspace / "a.txt").write_text("a")
    (plans.workspace / "agents.md").write_text("Sign twice.")
    earlier = await start(plans)
    await earlier.until(lambda view: view["pending"], "a call asks")
    await earlier.signal("clear_session", {"by": "ann"})
    await earlier.signal("interrupt", {"by": "ann"})
    await earlier.ended()
    later = await resume.resume(plans.client, earlier.id, "ann")
    started = Started(plans.client, later.workflow_id)
    await started.until(lambda view: view["pending"], "the call asks again")
    await started.handle.execute_update("control", {"action": "clear_session", "by": "ann"})
    await started.approve("call_2", by="ann", args={"text": "that"})
    await started.ended()
    return started


async def delegated(plans: Plans) -> Started:
    """A plan with an agent as a step."""
    started = await plans.start([STEP])
    await started.ended()
    return started


async def delegated_again(plans: Plans) -> Started:
    """A resumed plan, whose step's agent goes on."""
    return await resumed(plans, await stopped(plans, await plans.start([STEP])))


async def split(plans: Plans) -> Started:
    """A plan made of an agent's task list, begun after review."""
    options = {"workspace": str(plans.workspace), "review": True, "split": {"maxCalls": 5}}
    started = await plans.start_with({"request": "Do one and two.", "plan": {}, "options": options})
    await started.until(lambda view: view["status"] == "review", "review")
    await started.signal("begin", {})
    await started.ended()
    return started


async def budgeted(plans: Plans) -> Started:
    """Two agents under one budget: a person extends it once, then refuses."""
    started = await plans.start([STEP, STEP | {"id": "beside"}], budget={"calls": 3})
    for decide in (started.approve, started.deny):
        question = (await started.until(lambda view: view["pending"], "a person is asked"))["pending"][0]
        await decide(question["stepId"], digest=question["digest"])
        await started.until(_asks_no_longer(question["digest"]), "it is answered")
    await started.ended()
    return started


def _asks_no_longer(digest: str) -> Callable[[dict[str, Any]], bool]:
    return lambda view: not view["pending"] or view["pending"][0]["digest"] != digest


async def budgeted_agent(plans: Plans) -> Started:
    """One of these agents."""
    return agent_of(await budgeted(plans))


async def budget_set(plans: Plans) -> Started:
    """A plan that gets a budget while its agent works."""
    started = await plans.start([STEP])
    await started.until(lambda _: any(line[:2] == ["start", "two"] for line in plans.ledger), "the second task")
    change = {"op": "set", "path": "budget", "value": {"calls": 4, "ask": False}}
    await started.handle.execute_update("edit", {"edits": [change]})
    await started.ended()
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan cancelled while its agent works: it waits for the agent's last report."""
    started = await plans.start([STEP])
    await started.until(lambda _: any(line[:2] == ["start", "two"] for line in plans.ledger), "the second task")
    await started.handle.cancel()
    await started.ended()
    return started


async def cancelled_agent(plans: Plans) -> Started:
    """That agent."""
    return agent_of(await cancelled(plans))


async def reporting_agent(plans: Plans) -> Started:
    """The agent of a step, which reports its calls."""
    return agent_of(await delegated(plans))


def agent_of(plan: Started) -> Started:
    """The agent of the step `agent`."""
    return Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-agent")


AGENTS: dict[str, Callable[[Plans], Awaitable[Started]]] = {
    "agent-simple": run(),
    "agent-complex": approved,
    "agent-interrupted": interrupted,
    "agent-resumed": gone_on,
    "agent-continued": run(historyLimit=12),
    "agent-step": delegated,
    "agent-step-resumed": delegated_again,
    "agent-split": split,
    "agent-judged": judged,
    "agent-pending-resumed": pending_resumed,
    "agent-reports": reporting_agent,
    "agent-step-budget": budgeted,
    "agent-budget": budgeted_agent,
    "agent-step-budget-set": budget_set,
    "agent-step-cancelled": cancelled,
    "agent-cancelled": cancelled_agent,
}
_DONE = says({"answer": "done", "confidence": "high"}, times=0)
TALKS: dict[str, list[dict[str, Any]]] = dict.fromkeys(AGENTS, STEADY) | {
    "agent-simple": SIMPLE,
    "agent-complex": COMPLEX,
    "agent-split": [SPLITS, _DONE],
    "agent-judged": JUDGED,
    "agent-pending-resumed": PENDING,
    "agent-step-budget": LOOKS,
    "agent-budget": LOOKS,
}
"""What the model of each says."""
