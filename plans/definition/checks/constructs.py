"""Checks loops, blocks, alternatives, catches and undoing: fields that exclude each other, what can never happen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from plansurvive.plans.definition.checks.scope import Meaning, Scope
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import item_names, walk_step
from plansurvive.plans.error_codes import STEPS
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.conditions import roots_of, search
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import MAX_STEPS, ForEach, Problem, Step

_OF_CALLS = ("args", "queue")
"""Fields that a block cannot have: they would be silently ignored."""
_WITHOUT_EFFECT = ("retry", "timeout", "repeatable")


def construct_problems(step: Step, scope: Scope, hints: Hints) -> Iterator[Problem]:
    """Problems of the constructs of a step itself, not of the steps inside it."""
    for code, field, text, severity in [
        *_kind(step), *_loop(step, scope), *_repeat(step), *_switch(step), *_catch(step, hints)
    ]:  # fmt: skip
        place = f"{scope.before}{step.id}"
        yield Problem(code=code, step_id=place, field=field, message=text, severity=severity)


_Found = tuple[str, str, str, Literal["error", "warning"]]
"""Code, field, sentence, severity."""


def _error(field: str, text: str, code: str = "PLAN_SCHEMA") -> _Found:
    return code, field, text, "error"


def _warning(field: str, text: str, code: str = "NEVER_RUNS") -> _Found:
    return code, field, text, "warning"


def _kind(step: Step) -> Iterator[_Found]:
    if step.is_block:
        for name in _OF_CALLS:
            if getattr(step, name):
                yield _error(name, f"a block calls no tool: '{name}' has no meaning here; set it on its steps")
        for name in _WITHOUT_EFFECT:
            if getattr(step, name) is not None:
                yield _warning(name, f"'{name}' has no effect on a block; set it on its steps", "NO_EFFECT")
    if step.finally_ is not None and not step.is_block:
        yield _error("finally", "only a block or a plan has `finally`; put the step into a block with `steps`")
    if step.output is not None and step.steps is None:
        yield _error("output", "only a block with `steps` has an `output`; remove it")


def _loop(step: Step, scope: Scope) -> Iterator[_Found]:
    rule = step.for_each
    if rule is None:
        return
    if rule.batch is not None and rule.mode != "plans":
        yield _error("forEach.batch", "`batch` needs `mode: plans`: it is the number of items per child plan")
    if rule.mode == "plans" and any(each.undo is not None for _, each in walk_step(step)):
        text = "`undo` is not carried out for items in child plans: use `mode: steps`, or remove `undo`"
        yield _error("forEach.mode", text)
    for name in sorted(item_names(step)):
        if scope.meaning(name, step.id) in (Meaning.STEP, Meaning.ITSELF):
            field = "forEach.as" if name == rule.as_ else "forEach"
            yield _warning(field, f"the loop's '{name}' hides the step '{name}' inside of it", "HIDDEN_NAME")
    if isinstance(rule.items, list):
        yield from _items(rule, rule.items)
    elif "{{" in rule.items:
        whole = re.fullmatch(r"\{\{\s*([^{}]+?)\s*\}\}", rule.items)
        instead = f"`{whole[1]}`" if whole else "$STEP.field or STEP.field"
        text = f"the list is an expression or a reference, not a text: write {instead}, without braces"
        yield _error("forEach.items", text, "BAD_EXPRESSION")
    if rule.key is not None and _first_roots(rule.key) == [rule.as_]:
        text = f"`key` is about the item itself: write `name`, not `{rule.as_}.name`, and `@` for the item as a whole"
        yield _warning("forEach.key", text, "ALWAYS_NULL")


def _items(rule: ForEach, items: list[Any]) -> Iterator[_Found]:
    if len(items) > MAX_STEPS and rule.mode != "plans":
        text = f"{len(items)} items, {MAX_STEPS} are allowed in one plan; use `mode: plans` with `batch`"
        yield _error("forEach.items", text, "PLAN_TOO_LARGE")
    elif rule.key is not None and not find(items):
        keys: list[Any] = []
        try:
            budget = Budget()
            keys = [search(rule.key, item, budget) for item in items]
        except BadExpression:
            return  # reported with its place, or when it runs
        for index, key in enumerate(keys):
            if isinstance(key, bool) or not isinstance(key, (str, int, float)) or key == "":
                text = f"'{rule.key}' is neither a text nor a number for item {index}; name a field that is"
                yield _error("forEach.key", text, "BAD_KEY")
                return
        twice = next((key for key, count in Counter(map(str, keys)).items() if count > 1), None)
        if twice is not None:
            text = f"two items have the key '{twice[:100]}'; choose a key that differs"
            yield _error("forEach.key", text, "BAD_KEY")


def _repeat(step: Step) -> Iterator[_Found]:
    if step.repeat is None or step.is_block:
        return
    if _first_roots(step.repeat.until) == [step.id]:
        text = f"`until` is about the value of the round itself: write `field`, not `{step.id}.field`"
        yield _warning("repeat.until", text, "ALWAYS_NULL")


def _switch(step: Step) -> Iterator[_Found]:
    cases = step.switch or []
    for number, case in enumerate(cases[:-1]):
        if case.when is None:
            yield _error(f"switch.{number}.when", "this alternative always holds, so that those after it never run")
    if cases and all(case.when is not None for case in cases):
        text = "if none of the conditions holds, nothing runs; add an alternative without `when` if that is not meant"
        yield _warning("switch", text, "NO_DEFAULT_CASE")


def _catch(step: Step, hints: Hints) -> Iterator[_Found]:
    taken: set[str] = set()
    for number, handler in enumerate(step.catch or []):
        field = f"catch.{number}"
        if "" in taken:
            yield _warning(field, "an earlier catch without codes takes every error; this one never runs")
        for code in handler.codes:
            if code in taken:
                yield _warning(f"{field}.codes", f"an earlier catch takes {code}; this one never does")
            elif code == "CANCELLED":
                yield _warning(f"{field}.codes", "a cancelled step is not caught; use `finally`")
            elif code not in STEP_CODES and (hint := hints.question(code.upper(), STEP_CODES)):
                yield _warning(f"{field}.codes", f"'{code}' is not a known code{hint}", "UNKNOWN_CODE")
        taken.update(handler.codes or [""])


def _first_roots(expression: str) -> list[str]:
    try:
        return roots_of(expression)
    except BadExpression:
        return []


_OF_THE_CHECK = """
INVALID_ARGS ARGS_TOO_LARGE BAD_REFERENCE BAD_EXPRESSION EXPRESSION_TOO_COSTLY UNKNOWN_TOOL SECRET_REFUSED
SECRET_MISPLACED UNKNOWN_SECRET
"""
STEP_CODES = frozenset((*STEPS, *_OF_THE_CHECK.split()))
