"""The account that a plan keeps of an agent of its own (`plans.execution.accounts`): opened, and settled after all."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from plansurvive.features.agents.model.order import PlanLink
from plansurvive.features.agents.model.reports.report import done_before, last_report, spent_of
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.plans.execution.accounts import ended
from plansurvive.plans.execution.tool_history import add_files
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.usage import Account


def opened(run: Run, step: Step, agent: AgentRun, *, asks: bool) -> None:
    """Open the account of an agent that is about to start, or to resume another one. Changes both."""
    # What the run that it resumes has spent and called is in the plan's record already.
    state = run.steps[step.id]
    since, known = done_before(agent) if state.past or state.more_past else (0, [])
    agent.link = PlanLink(asks=asks, permitted=agent.asked, since=since, known=known, told=since, requests=agent.asked)
    run.ledger = run.ledger.account(
        step.id,
        Account(
            child=agent.run.plan.id or "", asks=asks, spent=spent_of(agent), finished=agent.asked, granted=agent.asked,
            told=since,
        ),
    )  # fmt: skip


def caught_up(run: Run, step_id: str, now: datetime) -> None:
    """See `Rules.caught_up`: what the agent of a step did after its last report."""
    account = run.ledger.accounts.get(step_id)
    if account is None or account.is_plan:  # that of a child plan may have been settled just now
        return
    try:
        agent = AgentRun.model_validate(run.agents[step_id])
    except (KeyError, ValidationError):
        return
    if agent.run.plan.id == account.child:
        report = last_report(agent)
        add_files(run.steps[step_id], report["wrote"], report["deleted"], report["shared"], report["sharedWith"])
        ended(run, step_id, report, now)
