"""Checks the expressions of a step: that they parse, and that their first names mean something where they stand.

`when`, the list of a `forEach` and the conditions of a `switch` are about what is visible to the step. `until` is about
the value of the round, `key` about the item, `output` about the values of the block's steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set

from plansurvive.plans.definition.checks.calls import reference_problems, texts_of
from plansurvive.plans.definition.checks.scope import Meaning, Scope
from plansurvive.plans.definition.foreign_names import variable_instead
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import VALUE, CallOf, call_names, inner_ids, item_names
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import compiled, roots_of
from plansurvive.plans.expressions.items import list_expression
from plansurvive.plans.expressions.references import INPUTS
from plansurvive.plans.expressions.slips import LITERALS, in_yaml, instead
from plansurvive.plans.model import Plan, Problem, Step


def expression_problems(
    step: Step, scope: Scope, inputs: Set[str], hints: Hints, language: Language
) -> Iterator[Problem]:
    """Problems of the expressions of a step itself, not of the steps inside it."""
    path, unread = f"{scope.before}{step.id}", list(unreadable(step, scope.before))
    yield from unread
    bad = {problem.field for problem in unread}
    for field, expression, variables in _about_steps(step):
        if field not in bad:
            for root in roots_of(expression):
                if text := _of_no_step(root, expression) or _unknown(root, step, scope, variables, hints):
                    code, text = word.misplaced if (word := language.word(root)) else ("BAD_REFERENCE", text)
                    yield Problem(code=code, step_id=path, field=field, message=text, name=root)
    if step.for_each is not None and isinstance(step.for_each.items, list):
        given = CallOf(path, step.id, "", {"items": step.for_each.items}, frozenset())
        yield from reference_problems(given, texts_of(given), scope, inputs, hints, "forEach", language=language)
    if step.output is not None and step.is_block and "output" not in bad:
        yield from _inner(step, "output", step.output, path, hints, language)


def unreadable(step: Step, before: str = "") -> Iterator[Problem]:
    """Expressions of a step that do not parse."""
    for field, expression in _all(step):
        try:
            compiled(expression)
        except BadExpression as error:
            text = f"{error.message}{_quotes(expression)}"
            yield Problem(code="BAD_EXPRESSION", step_id=f"{before}{step.id}", field=field, message=text)


def output_problems(plan: Plan, hints: Hints, language: Language) -> Iterator[Problem]:
    """Problems of the `outputs` of a plan."""
    known = {step.id for step in plan.steps}
    for name, expression in plan.outputs.items():
        field = f"outputs.{name}"
        try:
            roots = roots_of(expression)
        except BadExpression as error:
            text = f"{error.message}{_quotes(expression)}"
            yield Problem(code="BAD_EXPRESSION", field=field, message=text)
            continue
        for root in roots:
            if root in known or root == INPUTS:
                continue
            if (word := language.word(root)) is not None:
                yield Problem(code=word.misplaced[0], field=field, message=word.misplaced[1])
            else:
                text = f"'{root}' is neither a step of the plan nor `{INPUTS}`{hints.question(root, known)}"
                yield Problem(code="BAD_REFERENCE", field=field, message=text, name=root)


def _quotes(expression: str) -> str:
    """How what was probably meant stands in YAML, if not as it is."""
    written = in_yaml(meant) if (meant := instead(expression).expression) else ""
    return f"; in YAML all of it in quotes: {written[:200]}" if written else ""


def _about_steps(step: Step) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Expressions about what is visible to the step: field, text, names that the step itself defines for it."""
    if step.when is not None:
        yield "when", step.when, item_names(step)
    if step.for_each is not None and isinstance(step.for_each.items, str):
        yield "forEach.items", list_expression(step.for_each.items), frozenset()
    for number, case in enumerate(step.switch or []):
        if case.when is not None:
            yield f"switch.{number}.when", case.when, call_names(step)


def _all(step: Step) -> Iterator[tuple[str, str]]:
    yield from ((field, text) for field, text, _ in _about_steps(step))
    if step.for_each is not None and step.for_each.key is not None:
        yield "forEach.key", step.for_each.key
    if step.repeat is not None:
        yield "repeat.until", step.repeat.until
    if step.output is not None:
        yield "output", step.output


def _of_no_step(root: str, expression: str) -> str:
    """What is said of an expression that begins with no name, such as `*.csv`."""
    if root != "@":
        return ""
    if "*" not in expression:
        return f"'{expression[:100]}' names no step; write STEP.field"
    find = "find them with a step (`tool: find_files`, `args: {pattern: ...}`) and write $STEP"
    return f"'{expression[:100]}' names no step; if it is a pattern of files, {find}"


def _unknown(root: str, step: Step, scope: Scope, variables: Collection[str], hints: Hints) -> str:
    if root in variables or root == INPUTS:
        return ""
    meaning = scope.meaning(root, step.id)
    if meaning in (Meaning.STEP, Meaning.VARIABLE):
        return ""
    if root.lower() in LITERALS:
        return f"'{root}' names a step here; write `{LITERALS[root.lower()]}` in backticks"
    undone = scope.undone()
    if meaning is Meaning.ITSELF and root == undone != step.id:
        return f"in its own `undo`, the value of '{root}' is called `{VALUE}`; write {VALUE}.FIELD"
    meant = variable_instead(root, "", {*variables, *scope.loop_names()}) if meaning is Meaning.NOTHING else ""
    if meant:
        return f"'{root}' is neither an earlier step nor `{INPUTS}`; it is called `{meant}` here"
    hint = "" if meaning is Meaning.ITSELF else scope.hint(root, hints, step.id if variables else "", undone)
    if not hint and meaning is Meaning.NOTHING:
        hint = f", or '{root}' in single quotes if it is a text"
    return f"'{root}' is neither an earlier step nor `{INPUTS}`; write STEP.field{hint}"


def _inner(step: Step, field: str, expression: str, path: str, hints: Hints, language: Language) -> Iterator[Problem]:
    known = inner_ids(step)
    for root in roots_of(expression):
        if root in known or root == "@":
            continue
        if (word := language.word(root)) is not None:
            yield Problem(code=word.misplaced[0], step_id=path, field=field, message=word.misplaced[1])
        else:
            text = f"'{root}' is not a step of this block, whose values the expression is about"
            message = f"{text}{hints.question(root, known)}"
            yield Problem(code="BAD_REFERENCE", step_id=path, field=field, message=message, name=root)
