"""Checks for cycles among the steps of one body; what a block uses from outside counts as its own dependency."""

from __future__ import annotations

from itertools import pairwise

from plansurvive.plans.definition.checks.scope import Scope
from plansurvive.plans.definition.dependencies import Mention, find_cycles, mentions
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.model import Problem, Step


def cycle_problems(steps: list[Step], scope: Scope) -> list[Problem]:
    """One problem per cycle, naming its steps, plus one per reference that is part of it.

    Steps that share an id, a problem of its own, count as one with the dependencies of all of them.
    """
    same: dict[str, list[Step]] = {}
    for step in steps:
        same.setdefault(step.id, []).append(step)
    needs = {
        name: [other for step in each for other in _needs(step) if other in same and other != name]
        for name, each in same.items()
    }
    found: list[Problem] = []
    for ring in find_cycles(needs):
        shown = " -> ".join(ring if len(ring) <= 12 else [*ring[:10], "...", ring[-1]])
        text = f"Plan contains circular dependencies: {shown} ({len(ring) - 1} steps); remove one of these dependencies"
        place = f"{scope.before}{ring[0]}"
        found.append(Problem(code="PLAN_CYCLE", step_id=place, field="dependsOn", message=text))
        for name, needed in pairwise(ring):
            if not any(needed in step.depends_on for step in same[name]):
                text = f"the value of '{needed}' cannot be used here: '{needed}' itself waits for '{name}'"
                at = next(each for step in same[name] for each in _mentions(step, scope.before) if each.root == needed)
                found.append(Problem(code="BAD_REFERENCE", step_id=at.path, field=at.field, message=text))
    return found


def _needs(step: Step) -> list[str]:
    return list(dict.fromkeys([*step.depends_on, *(each.root for each in _mentions(step))]))


def _mentions(step: Step, before: str = "") -> list[Mention]:
    found: list[Mention] = []
    try:
        for each in mentions(step, before):
            found.append(each)  # noqa: PERF402 - what comes before an expression that does not parse counts
    except BadExpression:
        pass  # reported already, with its place
    return found
