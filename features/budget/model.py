"""What a person has decided about the LLM budget of a run, and the limits after it."""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import ClassVar

from pydantic import Field

from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Budget
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Run

GRANTED = 0.5
"""What a person adds to each limit, as a share of it."""


class Final(Part):
    """Part of a run whose budget a person refused to extend."""

    feature: ClassVar[str] = "budget"

    refused_for: str = Field(default="", max_length=200, description="Id of the plan: a run that continues it may ask.")


def may_ask(run: Run) -> bool:
    """Whether a person may be asked to extend the budget."""
    return (run.plan.budget or Budget()).ask and not _is_final(run)


def granted(budget: Budget) -> Budget:
    """The budget after a person extended it: every limit raised by half of itself, rounded up."""
    raised = 1 + GRANTED
    return budget.model_copy(
        update={
            "tokens": None if budget.tokens is None else ceil(budget.tokens * raised),
            "calls": None if budget.calls is None else ceil(budget.calls * raised),
            "seconds": None if budget.seconds is None else budget.seconds * raised,
            "cost": None if budget.cost is None else budget.cost * raised,
        }
    )


def settle(run: Run, larger: Budget | None) -> None:
    """Put a person's decision into effect: these limits. None: the limits are final, until somebody edits them."""
    run.plan = run.plan.model_copy(update={"budget": larger or run.plan.budget or Budget()})
    run.part(Final).refused_for = "" if larger else run.plan.id or ""


def note_once(run: Run, reason: str, now: datetime) -> None:
    """Note that requests will soon be refused; once in a run."""
    if not any(entry.kind is LogKind.BUDGET for entry in run.log):
        run.note(LogKind.BUDGET, reason, now)


def _is_final(run: Run) -> bool:
    return bool(run.plan.id) and run.part(Final).refused_for == run.plan.id
