"""Checks the call of a tool: the tool, its arguments, and the references in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, NamedTuple

from plans.agents.as_plan import TOOL as AGENT
from plans.definition.arguments import argument_problems
from plans.definition.checks.scope import Meaning, Scope
from plans.definition.dependencies import field_of_place
from plans.definition.near_names import Hints
from plans.definition.output_schema import schema_problem
from plans.errors import BadExpression, BadReference
from plans.expressions.conditions import compiled
from plans.expressions.opaque import scanned
from plans.expressions.references import INPUTS, Reference, check_code, find, is_literal
from plans.model import Problem, ToolSpec


class CallOf(NamedTuple):
    """A call that a step makes: its own, or that of its `undo`."""

    path: str
    """Path of the step."""
    own: str
    """Its id: a name that its arguments may not use; empty: they may."""
    tool: str
    args: Mapping[str, Any]
    variables: Set[str]
    """Names that have a meaning in these arguments only."""
    start: str = ""
    """What comes before its fields: `undo.`, or nothing."""

    def problem(self, code: str, field: str, message: str) -> Problem:
        """A problem of the call."""
        return Problem(code=code, step_id=self.path, field=f"{self.start}{field}", message=message)


def tool_problems(call: CallOf, tools: Mapping[str, ToolSpec], scope: Scope, hints: Hints) -> Iterator[Problem]:
    """An unknown tool, or arguments that it does not take."""
    spec = tools.get(call.tool)
    if spec is None:
        hint = hints.question(call.tool.strip().lower(), tools) or "; `plan tools` lists them"
        yield call.problem("UNKNOWN_TOOL", "tool", f"Unknown tool: {call.tool}{hint}")
        return
    for field, text in [*argument_problems(spec, call.args, _Known(call, scope), hints), *_form(call)]:
        yield call.problem("INVALID_ARGS", field, f"Invalid args for {call.tool}: {text}")
    yield from _code(call, spec)


def reference_problems(
    call: CallOf, scope: Scope, inputs: Set[str], hints: Hints, start: str = "args"
) -> Iterator[Problem]:
    """References that mean nothing, or cannot have a value yet; `start` is the field that they are in."""
    for reference in find(scanned(call.tool, dict(call.args))):
        if is_literal(reference, _Known(call, scope)):
            continue
        field = field_of_place(start, reference.place)
        text = _reference(reference, call, scope, inputs, hints)
        if text:
            yield call.problem("BAD_REFERENCE", field, text)
        elif reference.path:
            try:
                compiled(reference.path)
            except BadExpression as error:
                yield call.problem("BAD_EXPRESSION", field, error.message)


class _Known:
    """The names that have a meaning in a call."""

    def __init__(self, call: CallOf, scope: Scope) -> None:
        self._call, self._scope = call, scope

    def __contains__(self, name: object) -> bool:
        return name in self._call.variables or self._scope.meaning(str(name)) is not Meaning.NOTHING


def _form(call: CallOf) -> Iterator[tuple[str, str]]:
    """Problems of the `outputSchema` of an agent step, as (field, sentence)."""
    schema = call.args.get("outputSchema")
    if call.tool == AGENT and isinstance(schema, dict) and not find(schema):
        problem = schema_problem(schema)
        if problem:
            yield "args.outputSchema", problem


def _code(call: CallOf, spec: ToolSpec) -> Iterator[Problem]:
    """References inside code arguments that cannot be quoted safely: reported before the plan starts."""
    for name, language in spec.quoting.items():
        try:
            check_code(call.args.get(name), language)
        except BadReference as error:
            yield call.problem("BAD_REFERENCE", f"args.{name}", error.message)


def _reference(reference: Reference, call: CallOf, scope: Scope, inputs: Set[str], hints: Hints) -> str:
    root, path, text = reference.root, reference.path, reference.text
    if not root:
        return "'$' alone does not name a step; write $STEP, or $$ for a dollar sign"
    if root in call.variables:
        return ""
    meaning = scope.meaning(root, call.own)
    if meaning is Meaning.ITSELF and root == call.own:
        return f"'{text}' is the step's own value, which it cannot have yet; name an earlier step"
    if meaning is Meaning.ITSELF:
        return f"'{text}' is the value of the block that contains this step, which it cannot have yet"
    if root == INPUTS:
        name = path.replace("[", ".").split(".")[0].split(" ")[0].strip('"')
        if path and not path.startswith("@") and name not in inputs:
            return f"'{text}': the plan has no input '{name}'{hints.question(name, inputs)}"
        return ""
    if meaning is Meaning.NOTHING:
        literal = f"${text}" if text.startswith("$") else "{{" + text + "}}"
        return f"'{text}' is not a step of the plan{scope.hint(root, hints)}; for the literal text write {literal}"
    return ""
