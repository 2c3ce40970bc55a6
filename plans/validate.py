"""Whether a plan is sound: every problem at once, each with its step, its field and the way to mend it.

Judged here: ids, dependencies, cycles, tools and their arguments, references, conditions, inputs. The shape of the data
was judged before, by `plans.reading`. A plan without problems of severity `error` can run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from plans.arguments import argument_problems
from plans.conditions import BadExpression, compiled, roots_of
from plans.model import Input, Plan, Problem, Step, ToolSpec
from plans.references import INPUTS, find, is_literal


def problems(plan: Plan, tools: Mapping[str, ToolSpec]) -> list[Problem]:
    """Everything wrong with a plan, in the order of its steps, those of the whole plan last."""
    known = {step.id for step in plan.steps}
    found = list(_ids(plan))
    for step in plan.steps:
        found += _dependencies(step, known)
        found += _tool(step, tools, known)
        found += _references(step, known, set(plan.inputs))
        found += _condition(step, known)
    return found + _cycles(plan, known)


def errors(found: list[Problem]) -> list[Problem]:
    """Those problems that keep a plan from running."""
    return [problem for problem in found if problem.severity == "error"]


def input_values(plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The values of a plan's inputs, defaults filled in, and what is wrong with those given."""
    values: dict[str, Any] = {}
    found = [
        Problem(
            code="UNKNOWN_INPUT",
            field=f"inputs.{name}",
            message=f"the plan has no input '{name}'{_near(name, plan.inputs)}",
        )
        for name in given
        if name not in plan.inputs
    ]
    for name, declared in plan.inputs.items():
        value = given.get(name, declared.default)
        if value is None:
            text = f"the input '{name}' is required; give it with --input {name}=VALUE"
            found.append(Problem(code="MISSING_INPUT", field=f"inputs.{name}", message=text))
        elif not _has_type(value, declared):
            text = f"{value!r} is no {declared.type}"
            found.append(Problem(code="BAD_INPUT", field=f"inputs.{name}", message=text))
        values[name] = value
    return values, found


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _has_type(value: Any, declared: Input) -> bool:
    if declared.type in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _KINDS[declared.type])


def _ids(plan: Plan) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for step in plan.steps:
        folded = step.id.casefold()
        if seen.get(folded) == step.id:
            text = f"the id '{step.id}' is used by more than one step; give each its own"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=step.id, field="id", message=text)
        elif folded in seen:
            text = f"'{step.id}' and '{seen[folded]}' differ only in case; that is easily misread"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=step.id, field="id", message=text, severity="warning")
        seen.setdefault(folded, step.id)
        if step.id == INPUTS:
            text = f"'{INPUTS}' is the name of the plan's inputs; call the step something else"
            yield Problem(code="PLAN_SCHEMA", step_id=step.id, field="id", message=text)


def _dependencies(step: Step, known: set[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(step.depends_on):
        if name == step.id:
            text = "Plan contains circular dependencies: the step depends on itself; take that out"
            yield Problem(code="PLAN_CYCLE", step_id=step.id, field="dependsOn", message=text)
        elif name not in known:
            text = f"Unknown dependency: {name}; no step has that id{_near(name, known)}"
            yield Problem(code="UNKNOWN_DEPENDENCY", step_id=step.id, field="dependsOn", message=text)


def _tool(step: Step, tools: Mapping[str, ToolSpec], known: set[str]) -> Iterator[Problem]:
    spec = tools.get(step.tool)
    if spec is None:
        hint = _near(step.tool.strip().lower(), tools) or "; `plan tools` lists them"
        yield Problem(code="UNKNOWN_TOOL", step_id=step.id, field="tool", message=f"Unknown tool: {step.tool}{hint}")
        return
    for field, text in argument_problems(spec, step.args, known | {INPUTS}):
        message = f"Invalid args for {step.tool}: {text}"
        yield Problem(code="INVALID_ARGS", step_id=step.id, field=field, message=message)


def _references(step: Step, known: set[str], inputs: set[str]) -> Iterator[Problem]:
    for reference in find(step.args):
        if is_literal(reference, known):
            continue
        field = ".".join(["args", *map(str, reference.place)])
        text = _reference_problem(reference.root, reference.path, reference.text, step, known, inputs)
        if text:
            yield Problem(code="BAD_REFERENCE", step_id=step.id, field=field, message=text)
        elif reference.path:
            yield from _expression(reference.path, step, field)


def _reference_problem(root: str, path: str, text: str, step: Step, known: set[str], inputs: set[str]) -> str:
    if not root:
        return "'$' alone names no step; write $STEP, or $$ for a dollar sign"
    if root == step.id:
        return f"'{text}' is the step's own value, which it cannot have yet; name an earlier step"
    if root == INPUTS:
        name = path.replace("[", ".").split(".")[0].split(" ")[0].strip('"')
        if path and not path.startswith("@") and name not in inputs:
            return f"'{text}': the plan has no input '{name}'{_near(name, inputs)}"
        return ""
    if root not in known:
        literal = f"${text}" if text.startswith("$") else "{{" + text + "}}"
        return f"'{text}' names no step of the plan{_near(root, known)}; for the literal text write {literal}"
    return ""


def _condition(step: Step, known: set[str]) -> Iterator[Problem]:
    if step.when is None:
        return
    found = list(_expression(step.when, step, "when"))
    yield from found
    for root in [] if found else roots_of(step.when):
        if root == step.id or root not in known | {INPUTS}:
            text = f"'{root}' is no earlier step and not `inputs`{_near(root, known)}"
            yield Problem(code="BAD_REFERENCE", step_id=step.id, field="when", message=text)


def _expression(expression: str, step: Step, field: str) -> Iterator[Problem]:
    try:
        compiled(expression)
    except BadExpression as error:
        yield Problem(code="BAD_EXPRESSION", step_id=step.id, field=field, message=error.message)


def _cycles(plan: Plan, known: set[str]) -> list[Problem]:
    """A problem per cycle, naming its steps; and one per reference in it that waits for its own step."""
    stated = {step.id: set(step.depends_on) for step in plan.steps}
    needs = {step.id: [name for name in _needs(step) if name in known and name != step.id] for step in plan.steps}
    found: list[Problem] = []
    while stuck := _stuck(needs):
        ring = _ring(needs, stuck)
        shown = " -> ".join(ring if len(ring) <= 12 else [*ring[:10], "...", ring[-1]])
        text = f"Plan contains circular dependencies: {shown} ({len(ring) - 1} steps); take one of them out"
        found.append(Problem(code="PLAN_CYCLE", step_id=ring[0], field="dependsOn", message=text))
        for name, needed in pairwise(ring):
            if needed not in stated[name]:
                text = f"the value of '{needed}' cannot be used here: '{needed}' itself waits for '{name}'"
                found.append(Problem(code="BAD_REFERENCE", step_id=name, field="args", message=text))
        needs = {name: others for name, others in needs.items() if name not in ring}
    return found


def _stuck(needs: dict[str, list[str]]) -> set[str]:
    """What is left when, again and again, every step that depends on nothing left is taken away."""
    dependents: dict[str, list[str]] = {name: [] for name in needs}
    left = dict.fromkeys(needs, 0)
    for name, others in needs.items():
        for other in others:
            if other in needs:
                dependents[other].append(name)
                left[name] += 1
    free = deque(name for name, count in left.items() if not count)
    while free:
        for dependent in dependents[free.popleft()]:
            left[dependent] -= 1
            if not left[dependent]:
                free.append(dependent)
    return {name for name, count in left.items() if count}


def _ring(needs: dict[str, list[str]], stuck: set[str]) -> list[str]:
    path: dict[str, int] = {}
    name = next(name for name in needs if name in stuck)
    while name not in path:
        path[name] = len(path)
        name = next(other for other in needs[name] if other in stuck)
    return [*list(path)[path[name] :], name]


def _needs(step: Step) -> list[str]:
    roots = [reference.root for reference in find(step.args)]
    with suppress(BadExpression):  # told already, with its place
        roots += roots_of(step.when)
    return list(dict.fromkeys([*step.depends_on, *roots]))


def _near(name: str, known: Mapping[str, Any] | set[str]) -> str:
    near = get_close_matches(name, sorted(known), 1)
    return f"; did you mean '{near[0]}'?" if near else ""
