"""Whether the people whom a plan wants to approve its steps are in policy.toml."""

from __future__ import annotations

from plansurvive.features.policy.plan_terms import CODE, named_in
from plansurvive.features.policy.policy_file import file_of, policy_of
from plansurvive.features.policy.rule import GROUP
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """A warning for each name that the policy here does not have; that of the workers may. Raises SettingError."""
    named = named_in(plan)
    policy = policy_of(settings) if any(named.values()) else None
    if policy is None:
        return []
    written, found = policy.written, list[Problem]()
    for step_id, names in named.items():
        groups = {name for name in names if name.removeprefix(GROUP) in written.groups and name.startswith(GROUP)}
        for name in names:
            if name not in groups and name not in written.people:
                text = f"'{name}' is not in {file_of(settings)}; if the workers' has no such name either, nobody can"
                field = "approval.by" if step_id else "defaults.approval.by"
                found.append(Problem(code=CODE, step_id=step_id or None, field=field, message=f"{text} approve as it",
                                     severity="warning"))  # fmt: skip
    return found
