"""Whether the targets that a plan names are in notify.toml."""

from __future__ import annotations

from plansurvive.features.notify.targets import read_targets
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """A warning for each target that the plan names and that is not there. Raises SettingError."""
    return read_targets(settings).problems(plan.notify) if plan.notify else []
