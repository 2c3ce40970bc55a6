"""Answers the children of a plan that ask whether they may send their next LLM request, in the order they asked.

A child plan passes the question on to its own parent, if something above it limits requests (`workflows.parent`).
"""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow

from plansurvive.features.budget.model import note_once
from plansurvive.features.children.handles import Handles
from plansurvive.plans.execution import accounts
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.usage import OVERRUN_CODE, Permission
from plansurvive.workflows.parent import take_grant


class ChildRequests:
    """The questions of one Run's children about their LLM requests."""

    def __init__(self, schedule: Schedule, handles: Handles, exceeds: Callable[[str, Permission], None]) -> None:
        """`exceeds`: see `InSteps.exceeds`."""
        self._schedule, self._handles, self._exceeds = schedule, handles, exceeds

    def turn(self) -> None:
        """Answer the children that ask whether they may send their next request."""
        run = self._run
        if not run.ledger.accounts:
            return None
        if must_ask(self._schedule):
            for step_id in [name for name, account in run.ledger.accounts.items() if not account.asks]:
                self._tell_to_ask(step_id)
        for step_id in accounts.waiting(run):
            permission = self._schedule.rules.permission(run, own=False)
            if permission.verdict in ("ok", "warn"):
                if permission.verdict == "warn":
                    note_once(run, permission.reason, workflow.now())
                refusal = take_grant(run)
                if refusal is None:
                    return None  # the parent has not answered yet
                self._answer(step_id, not refusal, refusal)
            elif permission.verdict == "stop":
                self._answer(step_id, False, permission.refusal)
            elif permission.verdict == "ask":
                return self._exceeds(step_id, permission)
            else:  # whoever asked first waits, and those behind it: a later one must not take its place
                return None
        return None

    def _tell_to_ask(self, step_id: str) -> None:
        """Let a child ask from now on that began when nothing limited its requests."""
        if step_id in self._handles:
            accounts.told_to_ask(self._run, step_id)
            self._handles.signal(step_id, "budget_answer", {"number": 0, "granted": True})

    def _answer(self, step_id: str, granted: bool, reason: str) -> None:
        run, state = self._run, self._run.steps[step_id]
        number = accounts.answered(run, step_id, granted)
        if accounts.question(state):  # larger limits, or the end of another request, have answered it
            state.proposal = state.asked = None
            self._schedule.answered(step_id)
        if reason:
            run.note(LogKind.BUDGET, reason, workflow.now(), step_id, code=OVERRUN_CODE)
        message = {"number": number, "granted": granted, **({"reason": reason[:1_000]} if reason else {})}
        self._handles.signal(step_id, "budget_answer", message)

    @property
    def _run(self) -> Run:
        return self._schedule.run


def must_ask(schedule: Schedule) -> bool:
    """Whether the agents and child plans of a run ask before each LLM request."""
    return accounts.must_ask(schedule.run, limited=schedule.rules.limits_children(schedule.run))
