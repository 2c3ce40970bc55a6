"""Answers the children of a plan that ask whether its LLM budget allows their next request, in the order they asked.

A child plan passes the question on to its own parent, if there is a budget above it (`parent.permit`).
"""

from __future__ import annotations

from temporalio import workflow

from plansurvive.plans.agents.reports import accounts
from plansurvive.plans.budget import OVERRUN_CODE, Budget
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run, Status
from plansurvive.plans.step_call import digest_of, upcoming
from plansurvive.workflows.children.handles import Handles
from plansurvive.workflows.children.parent import permit


class ChildBudget:
    """The questions of one Run's children about the budget."""

    def __init__(self, schedule: Schedule, handles: Handles) -> None:
        self._schedule, self._handles = schedule, handles

    def turn(self) -> None:
        """Answer the children that ask whether the budget allows their next request."""
        run = self._run
        if accounts.must_ask(run):
            for step_id in [name for name, account in run.ledger.accounts.items() if not account.asks]:
                self._tell_of_budget(step_id)
        for step_id in accounts.waiting(run):
            judgement = accounts.verdict(run)
            if judgement.verdict in ("ok", "warn"):
                if judgement.verdict == "warn":
                    _note_once(run, judgement.reason)
                refusal = permit(run)
                if refusal is None:
                    return None  # the parent has not answered yet
                self._answer(step_id, not refusal, refusal)
            elif judgement.verdict == "stop":
                self._answer(step_id, False, judgement.refusal(run.plan.id or ""))
            elif judgement.verdict == "ask":
                return self._ask(step_id, judgement.reason)
            else:  # whoever asked first waits, and those behind it: a later one must not take its place
                return None
        return None

    def decided(self, step_id: str) -> bool:
        """Act on a person's decision about the question of a running step; False if it has none."""
        run, state = self._run, self._run.steps[step_id]
        if state.status is not Status.RUNNING or "budget" not in (state.proposal or {}):
            return False
        approved, budget = run.decisions.pop(step_id).approved, run.plan.budget or Budget()
        state.proposal = state.asked = None
        run.plan = run.plan.model_copy(
            update={"budget": accounts.extended(run, budget) if approved else budget.refused()}
        )
        run.ledger = run.ledger.model_copy(update={"refused": not approved})
        self._schedule.answered(step_id)
        return True

    def _tell_of_budget(self, step_id: str) -> None:
        """Let a child that began without a budget ask from now on."""
        if step_id in self._handles:
            accounts.told_of_budget(self._run, step_id)
            self._handles.signal(step_id, "budget_answer", {"number": 0, "granted": True})

    def _answer(self, step_id: str, granted: bool, reason: str) -> None:
        run, state = self._run, self._run.steps[step_id]
        number = accounts.answered(run, step_id, granted)
        if accounts.question(state):  # a larger budget, or the end of another request, has answered it
            state.proposal = state.asked = None
            self._schedule.answered(step_id)
        if reason:
            run.note(LogKind.BUDGET, reason, workflow.now(), step_id, code=OVERRUN_CODE)
        message = {"number": number, "granted": granted, **({"reason": reason[:1_000]} if reason else {})}
        self._handles.signal(step_id, "budget_answer", message)

    def _ask(self, step_id: str, reason: str) -> None:
        """Have a person asked whether the budget may be extended: one question, however many children wait."""
        run, budget, now = self._run, self._run.plan.budget, workflow.now()
        if budget is None or any(accounts.question(run.steps[name]) for name in run.ledger.accounts):
            return
        state, step = run.steps[step_id], self._schedule.step(step_id)
        run.decisions.pop(step_id, None)  # it was about the start of the child
        self._schedule.ask_beside(step_id)
        state.proposal = {"budget": reason, "since": now.isoformat().replace("+00:00", "Z")}
        what = "child plan" if run.ledger.accounts[step_id].is_plan else "agent"
        state.asked = {
            "budget": reason, "approve": f"the limits become: {accounts.raised(run, budget)}",
            "deny": f"the {what} ends with what it has done, and its step fails with {OVERRUN_CODE}",
        }  # fmt: skip
        state.asks[state.changes[-1].seq] = digest_of(upcoming(run, step).call, state.asked)
        how = f"to extend it: plan approve {run.plan.id} {step_id}   or: plan deny {run.plan.id} {step_id}"
        run.note(LogKind.BUDGET, f"{reason}; a person is asked {how}", now, step_id, code=OVERRUN_CODE)

    @property
    def _run(self) -> Run:
        return self._schedule.run


def _note_once(run: Run, reason: str) -> None:
    if not any(entry.kind is LogKind.BUDGET for entry in run.log):
        run.note(LogKind.BUDGET, reason, workflow.now())
