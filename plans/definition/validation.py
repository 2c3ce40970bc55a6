"""Validates a plan: reports every problem at once, each with its step, its field and how to fix it.

Checks ids, dependencies, cycles, tools and their arguments, references, conditions and inputs. The structure of the
data has been checked before, by `plans.definition.parsing`. A plan without problems of severity `error` can run.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from plans.agents.as_plan import TOOL as AGENT
from plans.children.check import inline_problems
from plans.definition.arguments import MAX_FIELD, argument_problems
from plans.definition.dependencies import find_cycles
from plans.definition.near_names import Hints
from plans.definition.output_schema import schema_problem
from plans.definition.parsing import MAX_FOUND
from plans.errors import BadExpression, BadReference
from plans.expressions.conditions import compiled, roots_of
from plans.expressions.opaque import scanned
from plans.expressions.references import INPUTS, Reference, check_code, find, is_literal
from plans.model import Input, Plan, Problem, Step, ToolSpec

MAX_PROBLEMS = 200
"""At most this many problems go into history; `plan check` shows all of them."""


def problems(plan: Plan, tools: Mapping[str, ToolSpec], elsewhere: Container[str] = ()) -> list[Problem]:
    """All problems of a plan, in step order; those of the plan as a whole come last. After MAX_FOUND the check stops.

    Tools of the steps in `elsewhere` are not checked: they run on workers of another task queue.
    """
    known = {step.id for step in plan.steps}
    found, hints, inputs = list(_ids(plan)), Hints(), set(plan.inputs)
    for count, step in enumerate(plan.steps, 1):
        found += _dependencies(step, known, hints)
        if step.id not in elsewhere:
            found += [*_tool(step, tools, known, hints), *_code(step, tools), *inline_problems(step, tools, problems)]
        found += _references(step, known, inputs, hints)
        found += _condition(step, known, hints)
        if len(found) > MAX_FOUND and len(errors(found)) > MAX_FOUND:
            rest = len(plan.steps) - count
            return [*found, _more(f"the other {rest} steps were not checked; fix these problems first")]
    return [*found, *_cycles(plan, known), *_defaults(plan)]


def call_problems(step: Step, tools: Mapping[str, ToolSpec], usable: set[str], inputs: set[str]) -> list[Problem]:
    """All problems of one step's call, given that it may reference the values of the `usable` steps."""
    hints = Hints()
    return [*_tool(step, tools, usable, hints), *_references(step, usable, inputs, hints), *_code(step, tools)]


def errors(found: list[Problem]) -> list[Problem]:
    """The problems that prevent a plan from running (severity `error`)."""
    return [problem for problem in found if problem.severity == "error"]


def bounded(found: list[Problem]) -> list[Problem]:
    """At most MAX_PROBLEMS, errors first, plus one that counts the rest: history size is limited."""
    if len(found) <= MAX_PROBLEMS:
        return found
    kept = sorted(found, key=lambda problem: problem.severity != "error")[:MAX_PROBLEMS]
    return [*kept, _more(f"{len(found) - MAX_PROBLEMS} more problems are not shown; `plan check` shows more")]


def _more(text: str) -> Problem:
    return Problem(code="MORE_PROBLEMS", message=text)


def input_values(plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The plan's input values with defaults applied, and the problems of the values given."""
    values: dict[str, Any] = {}
    hints = Hints()
    found = [
        Problem(
            code="UNKNOWN_INPUT",
            field=f"inputs.{name}",
            message=f"the plan has no input '{name}'{hints.question(name, plan.inputs)}",
        )
        for name in given
        if name not in plan.inputs
    ]
    for name, declared in plan.inputs.items():
        value = given.get(name, declared.default)
        if value is None:
            text = f"the input '{name}' is required; give it with --input {name}=VALUE"
            found.append(Problem(code="MISSING_INPUT", field=f"inputs.{name}", message=text))
        elif name in given and not _has_type(value, declared):
            text = f"{_short(value)} is not of type {declared.type}; pass one that is"
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


def _defaults(plan: Plan) -> Iterator[Problem]:
    for name, declared in plan.inputs.items():
        if declared.default is not None and not _has_type(declared.default, declared):
            text = f"the default {_short(declared.default)} is not of type {declared.type}; change one of them"
            yield Problem(code="BAD_INPUT", field=f"inputs.{name}.default", message=text)


def _has_type(value: Any, declared: Input) -> bool:
    if declared.type in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _KINDS[declared.type])


def _ids(plan: Plan) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    exact: set[str] = set()
    for step in plan.steps:
        folded = step.id.casefold()
        if step.id in exact:
            text = f"the id '{step.id}' is used by more than one step; give each its own"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=step.id, field="id", message=text)
        elif folded in seen:
            text = f"'{step.id}' and '{seen[folded]}' differ only in case; that is easily misread"
            yield Problem(code="PLAN_DUPLICATE_ID", step_id=step.id, field="id", message=text, severity="warning")
        seen.setdefault(folded, step.id)
        exact.add(step.id)
        if step.id == INPUTS:
            text = f"'{INPUTS}' is the name of the plan's inputs; give the step another id"
            yield Problem(code="PLAN_SCHEMA", step_id=step.id, field="id", message=text)


def _dependencies(step: Step, known: set[str], hints: Hints) -> Iterator[Problem]:
    for name in dict.fromkeys(step.depends_on):
        if name == step.id:
            text = "Plan contains circular dependencies: the step depends on itself; remove that"
            yield Problem(code="PLAN_CYCLE", step_id=step.id, field="dependsOn", message=text)
        elif name not in known:
            text = f"Unknown dependency: {name}; no step has that id{hints.question(name, known)}"
            yield Problem(code="UNKNOWN_DEPENDENCY", step_id=step.id, field="dependsOn", message=text)


def _tool(step: Step, tools: Mapping[str, ToolSpec], known: set[str], hints: Hints) -> Iterator[Problem]:
    spec = tools.get(step.tool)
    if spec is None:
        hint = hints.question(step.tool.strip().lower(), tools) or "; `plan tools` lists them"
        yield Problem(code="UNKNOWN_TOOL", step_id=step.id, field="tool", message=f"Unknown tool: {step.tool}{hint}")
        return
    for field, text in [*argument_problems(spec, step.args, known, hints), *_form(step)]:
        message = f"Invalid args for {step.tool}: {text}"
        yield Problem(code="INVALID_ARGS", step_id=step.id, field=field, message=message)


def _form(step: Step) -> Iterator[tuple[str, str]]:
    """Problems of the `outputSchema` of an agent step, as (field, sentence)."""
    schema = step.args.get("outputSchema")
    if step.tool == AGENT and isinstance(schema, dict) and not find(schema):
        problem = schema_problem(schema)
        if problem:
            yield "args.outputSchema", problem


def _references(step: Step, known: set[str], inputs: set[str], hints: Hints) -> Iterator[Problem]:
    for reference in find(scanned(step.tool, step.args)):
        if is_literal(reference, known):
            continue
        text = _reference_problem(reference, step, known, inputs, hints)
        if text:
            yield Problem(code="BAD_REFERENCE", step_id=step.id, field=_field(reference.place), message=text)
        elif reference.path:
            yield from _expression(reference.path, step, _field(reference.place))


def _reference_problem(reference: Reference, step: Step, known: set[str], inputs: set[str], hints: Hints) -> str:
    root, path, text = reference.root, reference.path, reference.text
    if not root:
        return "'$' alone does not name a step; write $STEP, or $$ for a dollar sign"
    if root == step.id:
        return f"'{text}' is the step's own value, which it cannot have yet; name an earlier step"
    if root == INPUTS:
        name = path.replace("[", ".").split(".")[0].split(" ")[0].strip('"')
        if path and not path.startswith("@") and name not in inputs:
            return f"'{text}': the plan has no input '{name}'{hints.question(name, inputs)}"
        return ""
    if root not in known:
        literal = f"${text}" if text.startswith("$") else "{{" + text + "}}"
        return f"'{text}' is not a step of the plan{hints.question(root, known)}; for the literal text write {literal}"
    return ""


def _code(step: Step, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    """References inside code arguments that cannot be quoted safely: reported before the plan starts."""
    quoting = tools[step.tool].quoting if step.tool in tools else {}
    for name, language in quoting.items():
        text = step.args.get(name)
        try:
            check_code(text, language)
        except BadReference as error:
            yield Problem(code="BAD_REFERENCE", step_id=step.id, field=f"args.{name}", message=error.message)


def condition_problems(plan: Plan) -> list[Problem]:
    """Conditions that do not parse. The dependencies of their steps are unknown until they do."""
    return [problem for step in plan.steps if step.when is not None for problem in _expression(step.when, step, "when")]


def _condition(step: Step, known: set[str], hints: Hints) -> Iterator[Problem]:
    if step.when is None:
        return
    found = list(_expression(step.when, step, "when"))
    yield from found
    for root in [] if found else roots_of(step.when):
        if root == step.id or (root not in known and root != INPUTS):
            text = f"'{root}' is neither an earlier step nor `{INPUTS}`; write STEP.field{hints.question(root, known)}"
            yield Problem(code="BAD_REFERENCE", step_id=step.id, field="when", message=text)


def _expression(expression: str, step: Step, field: str) -> Iterator[Problem]:
    try:
        compiled(expression)
    except BadExpression as error:
        yield Problem(code="BAD_EXPRESSION", step_id=step.id, field=field, message=error.message)


def _cycles(plan: Plan, known: set[str]) -> list[Problem]:
    """One problem per cycle, naming its steps, plus one per reference that is part of it.

    Steps that share an id, a problem of its own, count as one with the dependencies of all of them.
    """
    steps: dict[str, list[Step]] = {}
    for step in plan.steps:
        steps.setdefault(step.id, []).append(step)
    needs = {
        name: [other for step in same for other in _needs(step) if other in known and other != name]
        for name, same in steps.items()
    }
    found: list[Problem] = []
    for ring in find_cycles(needs):
        shown = " -> ".join(ring if len(ring) <= 12 else [*ring[:10], "...", ring[-1]])
        text = f"Plan contains circular dependencies: {shown} ({len(ring) - 1} steps); remove one of these dependencies"
        found.append(Problem(code="PLAN_CYCLE", step_id=ring[0], field="dependsOn", message=text))
        for name, needed in pairwise(ring):
            if not any(needed in step.depends_on for step in steps[name]):
                text = f"the value of '{needed}' cannot be used here: '{needed}' itself waits for '{name}'"
                place = next(_mention(step, needed) for step in steps[name] if needed in _needs(step))
                found.append(Problem(code="BAD_REFERENCE", step_id=name, field=place, message=text))
    return found


def _mention(step: Step, root: str) -> str:
    places = (reference.place for reference in find(scanned(step.tool, step.args)) if reference.root == root)
    return next((_field(place) for place in places), "when")


def _field(place: tuple[str | int, ...]) -> str:
    return ".".join(["args", *(str(part)[:MAX_FIELD] for part in place)])[:MAX_FIELD]


def _needs(step: Step) -> list[str]:
    roots = [reference.root for reference in find(scanned(step.tool, step.args))]
    with suppress(BadExpression):  # reported already, with its location
        roots += roots_of(step.when)
    return list(dict.fromkeys([*step.depends_on, *roots]))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
