"""Asks a person whether the LLM budget may be extended for an agent or child plan that needs another request."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow

from plansurvive.features.budget.model import settle
from plansurvive.features.budget.rules import extended_for, raised
from plansurvive.plans.execution import accounts
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Status
from plansurvive.plans.run.step_call import digest_of, upcoming
from plansurvive.plans.usage import OVERRUN_CODE, Permission
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.in_steps import InSteps


class Questions(InSteps):
    """What people are asked about the budget of one run. All of it is in the steps' `proposal`."""

    def __init__(self, execution: Execution) -> None:
        self._schedule, self._run = execution.schedule, execution.run

    def exceeds(self, step_id: str, permission: Permission) -> None:
        """Have a person asked whether the budget may be extended: one question, however many children wait."""
        run, now, reason = self._run, workflow.now(), permission.reason
        if any(accounts.question(run.steps[name]) for name in run.ledger.accounts):
            return
        state, step = run.steps[step_id], self._schedule.step(step_id)
        run.decisions.pop(step_id, None)  # it was about the start of the child
        self._schedule.ask_beside(step_id)
        state.proposal = {"budget": reason, "since": now.isoformat().replace("+00:00", "Z")}
        what = "child plan" if run.ledger.accounts[step_id].is_plan else "agent"
        state.asked = {
            "budget": reason, "approve": f"the limits become: {raised(run)}",
            "deny": f"the {what} ends with what it has done, and its step fails with {OVERRUN_CODE}",
        }  # fmt: skip
        state.asks[state.changes[-1].seq] = digest_of(upcoming(run, step).call, state.asked)
        how = f"to extend it: plan approve {run.plan.id} {step_id}   or: plan deny {run.plan.id} {step_id}"
        run.note(LogKind.BUDGET, f"{reason}; a person is asked {how}", now, step_id, code=OVERRUN_CODE)

    def decided(self, step_id: str) -> bool:
        """Act on a person's decision about the question of a running step; False if it has none."""
        run, state = self._run, self._run.steps[step_id]
        if state.status is not Status.RUNNING or "budget" not in (state.proposal or {}):
            return False
        approved = run.decisions.pop(step_id).approved
        state.proposal = state.asked = None
        settle(run, extended_for(run) if approved else None)
        self._schedule.answered(step_id)
        return True


class BudgetOfRun(InRun):
    """The LLM budget of a plan. An agent has none of its own: it asks its plan."""

    feature = "budget"
    of_agents = False

    def in_steps(self) -> Sequence[InSteps]:
        """People are asked about requests of agents and child plans."""
        return (Questions(self.execution),)


IN_RUN, WORKFLOWS = BudgetOfRun, ()
