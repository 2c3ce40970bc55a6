"""The account that a plan keeps of a child plan (`plans.execution.accounts`): opened, and settled after all."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from plansurvive.plans.execution import accounts
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.usage import Account


def opened(run: Run, step: Step, child: Run, *, asks: bool) -> None:
    """Open the account of a child plan that is about to start; what the run that it resumes has spent is known."""
    if child.parent is not None:
        child.parent = child.parent.model_copy(update={"asks": asks})
    run.ledger = run.ledger.account(
        step.id,
        Account(
            child=f"plan-{child.plan.id}", is_plan=True, asks=child.parent is not None and child.parent.asks,
            spent=child.ledger.spent(child.llm_seconds),
        ),
    )  # fmt: skip


def caught_up(run: Run, step_id: str, now: datetime, rules: RuleSet) -> None:
    """See `Rules.caught_up`: what the child plan of a step, and those below it, did after its last report."""
    account = run.ledger.accounts.get(step_id)
    if account is None or not account.is_plan or step_id not in run.agents:
        return
    try:
        child = Run.model_validate(run.agents[step_id])
    except ValidationError:
        return
    if f"plan-{child.plan.id}" == account.child:
        child = accounts.caught_up(child, rules, now)
        accounts.ended(run, step_id, {"spent": child.ledger.spent(child.llm_seconds).model_dump(mode="json")}, now)
