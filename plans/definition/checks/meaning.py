"""Finds expressions and references that parse, and still cannot mean what they say (JMESPath gives null for them).

A field that a closed object lacks is an error: it can never have a value. Everything else is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jmespath.exceptions import JMESPathError
from jmespath.lexer import Lexer

from plansurvive.plans.definition.checks.kinds import not_a_list, unfit
from plansurvive.plans.definition.checks.list_values import field_of_list
from plansurvive.plans.definition.checks.scope import Scope
from plansurvive.plans.definition.checks.types import Mistake, Schema, Walk
from plansurvive.plans.definition.checks.values import Values
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import VALUE
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled, holds, roots_of
from plansurvive.plans.expressions.items import list_expression
from plansurvive.plans.expressions.references import INPUTS, Reference
from plansurvive.plans.expressions.slips import LITERALS, after_dot
from plansurvive.plans.model import Plan, Problem, Step, ToolSpec

FAILS = "BAD_REFERENCE"
_COMPARED = frozenset(("eq", "ne", "lt", "lte", "gt", "gte"))
_IN_BRACKETS = re.compile(r"\[(['\"])([^'\"\\]{1,100})\1\]")
_SUSPECT = re.compile(r"[=<>]\s*(?:\"|true|false|null|none)", re.IGNORECASE)


class MeaningCheck:
    """The check of one plan."""

    def __init__(self, values: Values, hints: Hints) -> None:
        self._values, self._hints = values, hints

    def of_reference(
        self, reference: Reference, step: Step, scope: Scope, path: str, field: str, spec: ToolSpec | None = None
    ) -> Iterator[Problem]:
        """A reference whose path leads nowhere, or to a value that its argument cannot be. `spec`: of the tool.

        Of one that fails for certain, a warning FAILS: see `certain`.
        """
        in_undo = field.startswith("undo.") and reference.root == VALUE
        known = self._values.of_round(step) if in_undo else self._values.of_name(reference.root, scope, step)
        if (quoted := _IN_BRACKETS.match(reference.path)) is not None:
            write = reference.alike(f"{reference.root}{after_dot(quoted[2])}{reference.path[quoted.end() :]}")
            text = f"'{reference.text}' is a list of what is in the brackets; a field follows a dot: write {write}"
            yield Problem(code="ALWAYS_NULL", step_id=path, field=field, message=text, severity="warning")
        elif known is not None and (text := field_of_list(reference, known)):
            yield Problem(code=FAILS, step_id=path, field=field, message=text, severity="warning")
        elif known is not None:
            what, inputs = f"'{reference.text}'", reference.root == INPUTS
            if reference.path:
                yield from self._found(reference.path, None, known, path, field, what, inputs)
            if (
                spec is not None
                and reference.whole
                and (text := unfit(reference, self._values.of_path(reference.path, known), spec))
            ):
                yield Problem(code=FAILS, step_id=path, field=field, message=text, severity="warning")

    def of_outputs(self, plan: Plan) -> Iterator[Problem]:
        """Fields in the `outputs` of a plan that cannot exist."""
        steps = {step.id: step for step in plan.steps}

        def root(name: str) -> Schema | None:
            return self._values.of_step(steps[name]) if name in steps else None

        for name, expression in plan.outputs.items():
            for problem in self._found(expression, root, None, "", f"outputs.{name}"):
                yield problem.model_copy(update={"step_id": None})

    def of_step(self, step: Step, scope: Scope) -> Iterator[Problem]:
        """Expressions of a step that are never true, always null, or the same whatever happens."""
        path = f"{scope.before}{step.id}"

        def root(name: str) -> Schema | None:
            return self._values.of_name(name, scope, step)

        if step.when is not None:
            yield from self._constant(step.when, path, "when")
            yield from self._found(step.when, root, None, path, "when")
        if step.for_each is not None and isinstance(step.for_each.items, str):
            outer = step.model_copy(update={"for_each": None, "repeat": None})
            text = list_expression(step.for_each.items)

            def of_list(name: str) -> Schema | None:
                return self._values.of_name(name, scope, outer)

            yield from self._found(text, of_list, None, path, "forEach.items")
            if said := not_a_list(step.for_each.items, self._values.of_expression(text, of_list)):
                yield Problem(code=FAILS, step_id=path, field="forEach.items", message=said, severity="warning")
        for number, case in enumerate(step.switch or []):
            if case.when is not None:
                yield from self._constant(case.when, path, f"switch.{number}.when")
                yield from self._found(case.when, root, None, path, f"switch.{number}.when")
        if step.output is not None and step.is_block:
            inner = self._values.of_block(step)["properties"]
            yield from self._found(step.output, inner.get, None, path, "output")
        if step.repeat is not None:
            yield from self._constant(step.repeat.until, path, "repeat.until")
            yield from self._found(step.repeat.until, None, self._values.of_round(step), path, "repeat.until")

    def _found(
        self, expression: str, root: Callable[[str], Schema | None] | None, here: Schema | None, path: str, field: str,
        what: str = "", inputs: bool = False,
    ) -> Iterator[Problem]:  # fmt: skip
        """The mistakes of an expression: about names if there is a `root`, else about the value `here`."""
        try:
            parsed = compiled(expression).parsed
        except BadExpression:
            return  # reported with its place
        walk = Walk(root or (lambda _: None), self._hints.question)
        walk.of(parsed, here, is_top=root is not None)
        doubtful = inputs or (root is not None and roots_of(expression) == [INPUTS])
        for mistake in dict.fromkeys(walk.mistakes):
            yield _problem(mistake, path, field, what or f"'{expression[:100]}'", doubtful)
        for text in _unquoted(expression):
            yield Problem(code="NEVER_TRUE", step_id=path, field=field, message=text, severity="warning")

    def _constant(self, expression: str, path: str, field: str) -> Iterator[Problem]:
        try:
            if roots_of(expression):
                return
            result = "always" if holds(expression, {}) else "never"
        except BadExpression:
            return
        text = f"this condition uses no value: it {result} holds"
        yield Problem(code="CONSTANT_CONDITION", step_id=path, field=field, message=text, severity="warning")


def _problem(mistake: Mistake, path: str, field: str, what: str, doubtful: bool) -> Problem:
    text = f"{what}: {mistake.text}"
    if mistake.fails:
        return Problem(code=FAILS, step_id=path, field=field, message=text, severity="warning")
    if mistake.is_closed and not doubtful:
        return Problem(code=FAILS, step_id=path, field=field, message=text)
    code = "NEVER_TRUE" if "never true" in text or "always true" in text else "ALWAYS_NULL"
    return Problem(code=code, step_id=path, field=field, message=text, severity="warning")


def _unquoted(expression: str) -> Iterator[str]:
    """Comparisons with a word in double quotes, or with true, false or null as they are: both name fields."""
    if not _SUSPECT.search(expression):
        return  # the common case: reading the words takes longer than everything else here
    try:
        tokens = list(Lexer().tokenize(expression))
    except JMESPathError:
        return
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before["type"] not in _COMPARED or after["type"] in ("dot", "lbracket", "lparen", "filter", "flatten"):
            continue
        word = str(token["value"])
        if token["type"] == "quoted_identifier":
            yield f"\"{word[:80]}\" in double quotes is the name of a field; write '{word[:80]}' for the text"
        elif token["type"] == "unquoted_identifier" and word.lower() in LITERALS:
            yield f"{word} is the name of a field here; write `{LITERALS[word.lower()]}` in backticks"
