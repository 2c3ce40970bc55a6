"""What an agent is started with, parsed without trust, as `workflows.inputs` and `run_check` do it for plans."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from temporalio import workflow

from plansurvive.features.agents.model.order import AgentOrder
from plansurvive.features.agents.model.run import AgentRun, agent_view, outcome_of, tasks_text
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.model import Value
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.receipts import Receipts
from plansurvive.plans.run import ENDED, Options, PlanStatus, Status
from plansurvive.plans.run.feature import NO_RULES, Rules, RuleSet
from plansurvive.plans.signature import Signature
from plansurvive.workflows.inputs import is_carried, only_object, own_id, require_sound, schema_errors
from plansurvive.workflows.run_check import RAISED, odd_values, problems_of, tried_out

_STATUSES = frozenset((Status.PENDING, Status.COMPLETED, Status.FAILED, Status.SKIPPED, Status.BLOCKED))


class AgentRequest(Value):
    """Start argument of AgentWorkflow: an order and options; after continue-as-new or on resume, the AgentRun."""

    order: AgentOrder | None = Field(default=None, description="The request, its limits and the tools allowed.")
    options: Options = Field(default_factory=Options, description="How to run the agent.")
    agent: AgentRun | None = Field(default=None, description="The state carried over by continue-as-new or resume.")
    signature: Signature | None = Field(default=None, description="Of all this, by the key of the worker.")


def read_agent_request(
    arguments: Sequence[Any], rules: Sequence[Rules] = (), views: ViewSet = NO_VIEWS
) -> AgentRequest:
    """The argument of AgentWorkflow. Raises InvalidPlan, as `read_request` does."""
    example = '{"order": {"request": "..."}, "options": {}}'
    sent = only_object(arguments, "AGENT_SCHEMA", example, ("order", "agent"))
    with schema_errors("AGENT_SCHEMA"):
        request = AgentRequest.model_validate(sent)
    if request.agent is not None:
        request.agent.run.views = views
    if request.agent is not None and not is_carried():
        require_sound(problem_of(request.agent, workflow.now(), RuleSet(rules)))
    if request.agent is not None:
        request.agent.run.receipts = Receipts()
    return request


def agent_of_workflow() -> str:
    """The id of the agent that this workflow runs: the workflow's own. Raises InvalidPlan (BAD_PLAN_ID)."""
    return own_id(AGENT_PREFIX, "")


def problem_of(agent: AgentRun, now: datetime, rules: RuleSet = NO_RULES) -> str | None:
    """Why an agent cannot start with this AgentRun; None if it can."""
    run, names = agent.run, [step.id for step in agent.run.plan.steps]
    has_ended = run.status in ENDED
    if has_ended != (agent.end is not None) or not (has_ended or run.status is PlanStatus.DRAFT):
        return f"run.status: an agent starts as a draft, or with its end; not as {run.status} with the end {agent.end}"
    if names != [f"call_{number}" for number in range(1, len(names) + 1)]:
        return "run.plan.steps: the steps of an agent are call_1, call_2 and so on"
    unknown = [name for name in agent.called if name not in run.steps or run.steps[name].status is Status.BLOCKED]
    if unknown or len(set(agent.called)) < len(agent.called):
        return f"called: there is no call '{unknown[0][:100]}'" if unknown else "called: a call occurs twice"
    lost = [name for name, state in run.steps.items() if state.status is Status.PENDING and name not in agent.called]
    if lost:
        return f"run.steps.{lost[0][:100]}: a call that is still to be made is in `called`"
    return (
        next(problems_of(run, _STATUSES, rules), None) or next(odd_values(agent), None) or _agent_tried_out(agent, now)
    )


def _agent_tried_out(agent: AgentRun, now: datetime) -> str | None:
    try:
        for name in agent.called:
            outcome_of(agent, name)
        agent_view(agent)
        tasks_text(agent)
        agent.model_dump_json()
    except RAISED as error:
        return f"agent: inconsistent ({type(error).__name__}: {str(error)[:300]})"
    return tried_out(agent.run, now)
