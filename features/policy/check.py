"""Whether the steps of a plan can have certain people approve them, and whether these people are in policy.toml.

Not asked in workflows: a plan that began before a check must begin again when its history is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.features.policy.plan_terms import CODE, rules_in, without_calls
from plansurvive.features.policy.policy_file import file_of, policy_of
from plansurvive.features.policy.rule import GROUP, Written
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.settings import Settings


def problems(plan: Plan, settings: Settings) -> list[Problem]:
    """An error for each step that asks no certain people, or more than it names; a warning for each name that the
    policy here does not have, as that of the workers may. Raises SettingError.
    """
    rules = rules_in(plan)
    if not rules:
        return []
    found = [*without_calls(plan), *too_few(plan)]
    policy = policy_of(settings) if any(each.by for each in rules.values()) else None
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
        for step_id, rule in rules.items()
        for name in rule.by
        if name not in known
    ]


def too_few(plan: Plan, written: Written | None = None) -> Iterator[Problem]:
    """Steps that more people must approve than may: those that name all of them one by one.

    With the policy of a worker those that need it: they name groups, or nobody, so that all its people may.
    """
    for step_id, rule in rules_in(plan).items():
        groups = [name.removeprefix(GROUP) for name in rule.by if name.startswith(GROUP)]
        if (written is None) == (not rule.by or bool(groups)):
            continue
        if written is None:
            number, of = len(set(rule.by)), "`by` names"
        elif any(each not in written.groups for each in groups):
            continue  # a warning of its own
        elif groups:
            number, of = len(written.members(tuple(rule.by))), "with its groups `by` names"
        else:
            number, of = len(written.people), "the worker's policy.toml has"
        if rule.count > max(number, 1):
            text = f"{rule.count} people must approve, and {of} {number}; name more, or write a lower `count`"
            field = "approval.count" if step_id else "defaults.approval.count"
            yield Problem(code=CODE, step_id=step_id or None, field=field, message=text)
