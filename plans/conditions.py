"""Conditions (`when`): JMESPath over the values of finished steps and the inputs.

The names at the root of an expression are step ids, or `inputs`. JMESPath has no calls into Python, no assignment and
no loops; its length and depth are bounded here (FAULTS, T17).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from plans.errors import PlanError

MAX_CHARACTERS = 1_000
MAX_DEPTH = 64


class BadExpression(PlanError):
    """An expression that cannot be read, or not be applied to the values it is given."""

    code = "BAD_EXPRESSION"


def compiled(expression: str) -> Any:
    """The parsed expression. Raises BadExpression with the place of the mistake."""
    if len(expression) > MAX_CHARACTERS:
        raise BadExpression(f"the expression has {len(expression)} characters; {MAX_CHARACTERS} are allowed")
    if max(expression.count(mark) for mark in "([{!") > MAX_DEPTH:
        raise BadExpression(f"the expression is nested deeper than {MAX_DEPTH}")
    try:
        return _parse(expression)
    except (JMESPathError, RecursionError) as error:
        text = " ".join(str(error).split())[:200]
        raise BadExpression(f"'{expression[:80]}' is no JMESPath expression: {text}") from error


@lru_cache(maxsize=1_000)
def _parse(expression: str) -> Any:
    return jmespath.compile(expression)


def holds(expression: str, values: Mapping[str, Any]) -> bool:
    """Whether the condition is true: JMESPath's own rule, where null, false, `""`, `[]` and `{}` are not."""
    try:
        found = compiled(expression).search(dict(values))
    except JMESPathError as error:
        raise BadExpression(f"'{expression[:80]}': {' '.join(str(error).split())[:200]}") from error
    return found not in (None, False, "", [], {}) or (found == 0 and found is not False)


def roots_of(expression: str | None) -> list[str]:
    """The names an expression takes from its surroundings, in order, each once."""
    if not expression:
        return []
    return list(dict.fromkeys(_roots(compiled(expression).parsed)))


def _roots(node: dict[str, Any]) -> list[str]:
    kind, children = node["type"], node.get("children", [])
    if kind == "field":
        return [str(node["value"])]
    if kind in ("subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection"):
        return _roots(children[0])
    if kind in ("literal", "current", "identity", "expref"):
        return []
    return [name for child in children if isinstance(child, dict) for name in _roots(child)]
