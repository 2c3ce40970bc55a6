"""Checks ids, `dependsOn`, and how many steps are inside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plansurvive.plans.definition.checks.scope import RESERVED, Meaning, Scope
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import MAX_NESTING, bodies, outermost
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.model import MAX_STEPS, Plan, Problem, Step


def size_problem(plan: Plan) -> Problem | None:
    """Why a plan has too many steps, or steps inside each other too deep: nothing else of it is checked then."""
    pending: list[tuple[str, Step, int]] = [(step.id, step, 1) for step in outermost(plan)]
    count = 0
    while pending:
        count += 1
        path, step, depth = pending.pop()
        if depth > MAX_NESTING:
            text = f"steps are inside each other more than {MAX_NESTING} levels deep; use the tool `plan` for a part"
            return Problem(code="PLAN_TOO_DEEP", step_id=path[:1_000], field="steps", message=text)
        pending += [(f"{path}.{each.id}", each, depth + 1) for body in bodies(step) for each in body.steps]
    if count > MAX_STEPS:
        text = f"a plan may have {MAX_STEPS} steps, those inside blocks included; this one has {count}; split it"
        return Problem(code="PLAN_TOO_LARGE", field="steps", message=text)
    return None


def id_problems(steps: Sequence[Step], scope: Scope, closes: bool = False) -> Iterator[Problem]:
    """Ids that occur twice among these steps, or have another meaning. `closes`: the plan has a `finally`."""
    seen: dict[str, str] = {}
    exact: set[str] = set()
    taken = (RESERVED | scope.loop_names()) if scope.is_nested else {INPUTS, *(["finally"] if closes else [])}
    for step in steps:
        path, folded = f"{scope.before}{step.id}", step.id.casefold()
        if step.id in exact:
            text = f"the id '{step.id}' is used by more than one step; give each its own"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=path, field="id", message=text)
        elif folded in seen:
            text = f"'{step.id}' and '{seen[folded]}' differ only in case; that is easily misread"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=path, field="id", message=text, severity="warning")
        seen.setdefault(folded, step.id)
        exact.add(step.id)
        if step.id in taken:
            yield Problem(code="PLAN_SCHEMA", step_id=path, field="id", message=_taken(step.id, scope))


def _taken(name: str, scope: Scope) -> str:
    if name == INPUTS:
        return f"'{INPUTS}' is the name of the plan's inputs; give the step another id"
    where = "inside another step" if scope.is_nested else "beside the plan's `finally`"
    return f"'{name}' already has a meaning {where}; give the step another id"


def dependency_problems(step: Step, scope: Scope, hints: Hints) -> Iterator[Problem]:
    """Entries of `dependsOn` that are not steps of the same body."""
    path = f"{scope.before}{step.id}"
    for name in dict.fromkeys(step.depends_on):
        if name == step.id:
            text = "Plan contains circular dependencies: the step depends on itself; remove that"
            yield Problem(code="PLAN_CYCLE", step_id=path, field="dependsOn", message=text)
        elif name not in scope.steps:
            text = f"Unknown dependency: {name}; {_unknown(step, name, scope, hints)}"
            yield Problem(code="UNKNOWN_DEPENDENCY", step_id=path, field="dependsOn", message=text, name=name)


def _unknown(step: Step, name: str, scope: Scope, hints: Hints) -> str:
    meaning = scope.meaning(name, step.id)
    if name in scope.beside:
        return f"'{name}' has ended before this step starts; remove it"
    if meaning is Meaning.ITSELF:
        return f"'{name}' contains this step; remove it"
    if meaning is Meaning.STEP:
        block = scope.owner.id if scope.owner is not None else ""
        return f"'{name}' is not in the same block; write it into dependsOn of '{block}', or use its value here"
    if name in scope.plain.inside:
        block = scope.plain.inside[name].partition(".")[0].removesuffix("[*]")
        if block in scope.steps and block != step.id:
            return f"it is inside the block '{block}'; did you mean '{block}'?"
        return f"it is inside the block '{block}', which alone can be depended on"
    return f"no step has that id{hints.question(name, scope.steps.keys() - {step.id})}"
