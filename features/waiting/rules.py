"""What is asked of the events that a plan keeps, besides what `events` decides; what it says to its child plans."""

from __future__ import annotations

from plansurvive.features.waiting.events import state_problem
from plansurvive.features.waiting.model import FromAbove
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules


def _for_child(run: Run, step: Step, plan: Plan | None) -> FromAbove | None:  # noqa: ARG001
    """A child plan may ask for events. Not where only signed ones count: a signature is for one plan."""
    return FromAbove(passes=True) if plan is not None and not run.facts.must_sign else None


RULES = Rules("waiting", problem=state_problem, for_child=_for_child)
