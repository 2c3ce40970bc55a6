"""The run of an agent that resumes an ended one, for `plan resume`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from temporalio.client import Client

from plansurvive.client.undone import restored_since
from plansurvive.client.verbs.continuing import Continued, NextRun
from plansurvive.client.verbs.start import Started
from plansurvive.features.agents.model.order import agent_of_step
from plansurvive.features.agents.model.resume import resumed
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.agents.verbs import launched
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.undo_run import with_restored
from plansurvive.plans.files.changes import RestoredFiles
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.text.lists import some

MAX_NAMED = 20
"""Files that the model is told of by name."""


def id_like(child: str, plan_id: str, step_id: str) -> str:
    """The id of the first agent of a step, if `child` is an agent; empty if it is none."""
    return agent_of_step(plan_id, step_id, 1) if child.startswith(AGENT_PREFIX) else ""


def _told(undone: RestoredFiles) -> str:
    """What the model has to know about files that a person has restored: its calls said that they had changed them."""
    names = list(dict.fromkeys(each.path for each in undone.files))
    return f"Your changes to these files have been undone; they are as before: {some(names, MAX_NAMED)}"


def next_run(state: Any, how: Continued) -> NextRun | None:
    """Starts the next run of an agent. None: the state is no agent's. Raises Refused NOT_A_PLAN, NOTHING_TO_DO."""
    if "order" not in state:
        return None
    if how.is_changed:
        raise Refused("an agent is resumed as it is: --set is for plans", "NOT_A_PLAN")
    if how.reruns:
        raise Refused("an agent's steps cannot be rerun; continue the agent with `plan resume`", "NOT_A_PLAN")
    agent, by = AgentRun.model_validate(state), how.by
    if agent.end == "completed":
        raise Refused("the agent has completed its request; there is nothing to resume", "NOTHING_TO_DO")

    async def begin(client: Client, new_id: str, now: datetime, queue: str) -> Started:
        new = resumed(agent, new_id, now, by)
        undone = await restored_since(client, agent.run)
        if undone.files:
            new.run.files = with_restored(agent.run, undone).files
            new.notice = "\n".join(filter(None, (new.notice, _told(undone))))
        new.run = how.begun(new.run)
        request = {"agent": new.model_dump(mode="json", exclude_defaults=True)}
        return await launched(client, request, new_id, queue, new.run.plan.title, new.run.resumes, new.run.options)

    return begin
