"""What a plan takes over of an agent whose end it did not see."""

from __future__ import annotations

from datetime import datetime

from plansurvive.features.agents.model.reports import accounts
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules, RuleSet


def _caught_up(run: Run, step_id: str, now: datetime, rules: RuleSet) -> None:  # noqa: ARG001
    accounts.caught_up(run, step_id, now)


RULES = Rules("agents", caught_up=_caught_up)
