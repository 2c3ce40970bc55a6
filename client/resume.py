"""Interrupting a plan, and going on with an ended one in a new run that keeps what is done.

The second run of plan `x` is plan `x-r2`, and so on. A run names the one it goes on from in its memo and its view
(`resumes`); since an ended run takes nothing any more, the other direction (`resumedBy`) is read off the later runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import Field
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus

from client.errors import PlanExists, PlanNotFound
from client.ids import plan_id, workflow_id
from client.rpc import RPC_TIMEOUT, about, ask, describe
from client.start import Started, start_agent, start_run
from plans.agents.as_plan import TOOL as AGENT_TOOL
from plans.agents.order import agent_of_step
from plans.agents.run import AgentRun
from plans.agents.run import resumed as resumed_agent
from plans.errors import PlanError, Refused
from plans.execution import resume as resumption
from plans.execution.resume import Replacement, base_id, rerun_from, rerun_only, run_id
from plans.model import Value
from plans.run import Run, Status
from runtime.wait import until

MAX_RUNS = 1_000
ENDING_SECONDS = 20.0
GONE = frozenset((PlanNotFound.code, "QUERY_FAILED"))
"""Of an agent that never began or was deleted; of one that cannot say how it was left."""


class Links(Value):
    """The runs before and after one."""

    resumes: str | None = Field(default=None, description="The plan it goes on from.")
    resumed_by: list[str] = Field(default_factory=list, description="The plans that went on from it.")


async def interrupt(client: Client, plan: str, by: str = "") -> None:
    """Stop at the next safe point and keep everything: running steps may end, nothing starts. Raises PlanClosed."""
    with about(plan):
        message = {"by": by} if by else {}
        await client.get_workflow_handle(workflow_id(plan)).signal("interrupt", message, rpc_timeout=RPC_TIMEOUT)


async def resume(client: Client, plan: str, by: str = "") -> Started:
    """Go on with an ended plan in a new run: failed, blocked and never-run steps are done, the others kept.

    Raises Refused when it has not ended, was resumed already, or has nothing left to do.
    """
    later = (await links(client, plan)).resumed_by
    if later:
        raise Refused(f"plan '{plan_id(plan)}' was resumed as '{later[-1]}'; go on with that one", "ALREADY_RESUMED")
    return await _go_on(client, plan, lambda run, new_id, now: resumption.resumed(run, new_id, now, by), by)


async def _agents_left(client: Client, run: Run) -> dict[str, dict[str, Any]]:
    """By step, how the agents were left that had not done their steps; who cannot be asked any more begins anew."""
    found: dict[str, dict[str, Any]] = {}
    for step in run.plan.steps:
        state = run.steps[step.id]
        if step.tool != AGENT_TOOL or not state.calls or state.status is Status.COMPLETED:
            continue
        name = agent_of_step(run.plan.id or "", step.id, state.calls)
        try:
            await _until_ended(client, name)
            found[step.id] = await ask(client, name, "state")
        except PlanError as error:
            if error.code not in GONE:
                raise
    return found


async def _until_ended(client: Client, agent: str) -> None:
    """An agent whose plan was cancelled ends a moment after it. Raises NOT_ENDED when it does not."""

    async def has_ended() -> bool:
        return (await describe(client, agent)).status is not WorkflowExecutionStatus.RUNNING

    try:
        await until(has_ended, ENDING_SECONDS, every=0.2)
    except TimeoutError:
        text = f"agent '{agent}' has not ended yet; try again, or end it: plan cancel {agent}"
        raise Refused(text, "NOT_ENDED") from None


async def rerun(
    client: Client,
    plan: str,
    *,
    start_at: str | None = None,
    only: str | None = None,
    changes: Sequence[Replacement] = (),
    by: str = "",
) -> Started:
    """Do a step of an ended plan again in a new run: with all that follows from it (`start_at`), or alone (`only`).

    Raises Refused.
    """
    if (start_at is None) == (only is None):
        raise Refused("name the step to start at, or the only one to run: --from STEP or --only STEP", "BAD_USAGE")
    if only is not None:
        return await _go_on(client, plan, lambda run, new_id, now: rerun_only(run, only, new_id, now, by, changes))
    return await _go_on(
        client, plan, lambda run, new_id, now: rerun_from(run, start_at or "", new_id, now, by, changes)
    )


async def links(client: Client, plan: str) -> Links:
    """The runs before and after a plan's run. Raises PlanNotFound."""
    memo = await (await describe(client, plan)).memo()
    name = plan_id(plan)
    found = [each async for each, resumes in _runs(client, base_id(name)) if resumes == name]
    if memo.get("stepId"):
        found += await _later_agents(client, name, str(memo.get("planId")), str(memo["stepId"]))
    resumes = memo.get("resumes")
    return Links(resumes=str(resumes) if resumes else None, resumed_by=found)


async def _later_agents(client: Client, agent: str, plan: str, step_id: str) -> list[str]:
    """The agents that went on with a step when its plan was resumed."""
    found: list[str] = []
    for later in (await links(client, plan)).resumed_by:
        name = agent_of_step(later, step_id, 1)
        with suppress(PlanNotFound):
            if (await (await describe(client, name)).memo()).get("resumes") == agent:
                found.append(name)
    return found


async def _go_on(
    client: Client, plan: str, make: Callable[[Run, str, datetime], Run], by: str | None = None
) -> Started:
    description = await _ended(client, plan)
    state = await ask(client, plan, "state")
    run = None if "order" in state else Run.model_validate(state)
    if run is not None and by is not None:
        run.agents |= await _agents_left(client, run)
    base = base_id(plan_id(plan))
    taken = [name async for name, _ in _runs(client, base)]
    for number in range(len(taken) + 2, MAX_RUNS):
        new_id, now, queue = run_id(base, number), datetime.now(UTC), description.task_queue
        try:
            if run is None:
                return await _resume_agent(client, AgentRun.model_validate(state), new_id, now, queue, by)
            return await start_run(client, make(run, new_id, now), queue)
        except PlanExists:  # somebody else was faster
            continue
    raise Refused(f"plan '{base}' has had {MAX_RUNS} runs; start it anew", "TOO_MANY_RUNS")


async def _resume_agent(
    client: Client, agent: AgentRun, new_id: str, now: datetime, queue: str, by: str | None
) -> Started:
    if by is None:
        raise Refused("steps of an agent cannot be run again; `plan resume` goes on with it", "NOT_A_PLAN")
    if agent.end == "completed":
        raise Refused("the agent has done its work; there is nothing to resume", "NOTHING_TO_DO")
    made = resumed_agent(agent, new_id, now, by)
    request = {"agent": made.model_dump(mode="json", exclude_defaults=True)}
    title = made.run.plan.title
    return await start_agent(client, request, new_id, queue, title, made.run.resumes)


async def _ended(client: Client, plan: str) -> WorkflowExecutionDescription:
    description = await describe(client, plan)
    if description.status is WorkflowExecutionStatus.RUNNING:
        name = plan_id(plan)
        text = (
            f"plan '{name}' has not ended; `plan interrupt {name}` stops it first, `plan unpause {name}` ends a pause"
        )
        raise Refused(text, "NOT_ENDED")
    return description


async def _runs(client: Client, base: str) -> AsyncIterator[tuple[str, Any]]:
    """The later runs of a plan, in order, each with the id of the one it goes on from."""
    for number in range(2, MAX_RUNS):
        name = run_id(base, number)
        try:
            memo = await (await describe(client, name)).memo()
        except PlanNotFound:
            return
        yield name, memo.get("resumes")
