"""What a plan gives its child plans, and what it takes over of one whose end it did not see."""

from __future__ import annotations

from plansurvive.features.children.accounts import caught_up
from plansurvive.features.children.model import KnownPlans
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules


def _for_child(run: Run, step: Step, plan: Plan | None) -> KnownPlans | None:  # noqa: ARG001
    """Of what a person knew when they started the outermost plan, all of its child plans are told."""
    return run.options.part(KnownPlans) if plan is not None else None


RULES = Rules("children", for_child=_for_child, caught_up=caught_up)
