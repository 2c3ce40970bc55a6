"""Whether the steps of a plan can have certain people approve them, and whether these people are in policy.toml."""

from __future__ import annotations

from plansurvive.features.policy.plan_terms import CODE, named_in, without_calls
from plansurvive.features.policy.policy_file import file_of, policy_of
from plansurvive.features.policy.rule import GROUP
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """An error for each step that asks no certain people, a warning for each name that the policy here does not have;
    that of the workers may. Raises SettingError.
    """
    found, named = list(without_calls(plan)), named_in(plan)
    policy = policy_of(settings) if any(named.values()) else None
    if policy is None:
        return found
    known = {*policy.written.people, *(GROUP + group for group in policy.written.groups)}
    return found + [
        Problem(
            code=CODE,
            step_id=step_id or None,
            field="approval.by" if step_id else "defaults.approval.by",
            message=f"'{name}' is not in {file_of(settings)}; if the workers' has no such name either, correct it",
            severity="warning",
        )
        for step_id, names in named.items()
        for name in names
        if name not in known
    ]
