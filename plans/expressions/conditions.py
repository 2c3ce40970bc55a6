"""Conditions (`when`): JMESPath over the values of finished steps and the inputs.

Root names in an expression are step ids, or `inputs`. JMESPath cannot call into Python, assign or loop; the length and
depth of an expression are limited here, and the work of evaluating it in `plans.expressions.evaluation`, so that it
cannot stall a workflow task (FAULTS T17).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import IncompleteExpressionError, JMESPathError, LexerError, ParseError
from jmespath.functions import Functions

from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.evaluation import Budget, evaluate
from plansurvive.plans.expressions.slips import instead

MAX_CHARACTERS = 1_000
MAX_DEPTH = 64
_SHOWN = 200
"""Characters of an expression that a message has."""
_CHAINS = ("subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection")
"""Expressions whose first part alone is evaluated on the value itself."""
_ALL = f"JMESPath has {', '.join(sorted(Functions.FUNCTION_TABLE))}"


def compiled(expression: str) -> Any:
    """The parsed expression (cached). Raises BadExpression with the position of the error."""
    if len(expression) > MAX_CHARACTERS:
        raise BadExpression(f"the expression has {len(expression)} characters; {MAX_CHARACTERS} are allowed")
    return _compiled(expression)


@lru_cache(maxsize=1_000)
def _compiled(expression: str) -> Any:
    if max(expression.count(mark) for mark in "([{!&|") > 2 * MAX_DEPTH:
        raise BadExpression(f"the expression is nested deeper than {MAX_DEPTH}; split the value up in a step first")
    try:
        found = jmespath.compile(expression)
    except (JMESPathError, RecursionError) as error:
        raise BadExpression(
            f"'{expression[:80]}' is not a JMESPath expression: {_syntax(error, expression)}"
        ) from error
    _check(found.parsed)
    return found


def search(expression: str, value: Any, budget: Budget | None = None) -> Any:
    """Evaluate the expression on a value, within a budget that several may share.

    Raises BadExpression when it does not apply to the value, or costs too much.
    """
    parsed = compiled(expression).parsed
    try:
        return evaluate(parsed, value, budget or Budget())
    except BadExpression as error:
        raise BadExpression(f"'{expression[:80]}' cannot be applied: {error.message}", error.code) from None
    except (JMESPathError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise BadExpression(f"'{expression[:80]}' cannot be applied: {_one_line(error)}") from error


def holds(expression: str, values: Mapping[str, Any], budget: Budget | None = None) -> bool:
    """Whether the condition is true by JMESPath's rule: null, false, `""`, `[]` and `{}` are false."""
    return is_true(search(expression, dict(values), budget))


def is_true(found: Any) -> bool:
    """Whether a value is true by JMESPath's rule."""
    return found not in (None, False, "", [], {}) or (found == 0 and found is not False)


def roots_of(expression: str | None) -> list[str]:
    """The root names an expression uses, in order, without repeats; `@` stands for the whole scope."""
    return list(_distinct_roots(expression)) if expression else []


def field_of(path: str, *, is_all: bool = False) -> str:
    """The one field of an object that an expression on it begins with; with `is_all`, only if it is all of it.

    Empty if it may use others too, or does not parse.
    """
    try:
        return _first_field(compiled(path).parsed, is_all=is_all) if path else ""
    except BadExpression:
        return ""


def reaches(expression: str, root: str) -> set[str]:
    """The fields of a root's value that an expression begins with; with an empty one if it may use others too."""
    found, pending = set[str](), [compiled(expression).parsed]
    while pending:
        node = pending.pop()
        kind, children = node["type"], [child for child in node.get("children", []) if isinstance(child, dict)]
        if kind == "subexpression" and _first_field(children[0], is_all=True) == root:
            found.add(_first_field(children[1]))
        elif kind == "field" and node["value"] == root:
            found.add("")
        else:
            pending += children[:1] if kind in _CHAINS else children  # what follows the first looks at its value
    return found


@lru_cache(maxsize=5_000)
def _distinct_roots(expression: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_roots(compiled(expression).parsed)))


def _first_field(node: dict[str, Any], *, is_all: bool = False) -> str:
    while not is_all and node["type"] in _CHAINS:
        node = node["children"][0]
    return str(node["value"]) if node["type"] == "field" else ""


def _roots(node: dict[str, Any]) -> list[str]:
    kind, children = node["type"], node.get("children", [])
    if kind == "field":
        return [str(node["value"])]
    if kind in _CHAINS:
        return _roots(children[0])
    if kind in ("current", "identity"):
        return ["@"]
    if kind in ("literal", "expref"):
        return []
    return [name for child in children if isinstance(child, dict) for name in _roots(child)]


def _check(parsed: Any) -> None:
    """Reject unknown functions, and nesting too deep for the recursive evaluator. Iterative itself."""
    stack = [(parsed, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise BadExpression(f"the expression is nested deeper than {MAX_DEPTH}; split the value up in a step first")
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            name = node["value"]
            raise BadExpression(f"there is no function '{name}'; {_INSTEAD.get(name, _ALL)}")
        stack.extend((child, depth + 1) for child in node.get("children", []) if isinstance(child, dict))


def arguments_of(name: str) -> tuple[int, bool]:
    """How many values a function takes, and whether it may take more."""
    signature = Functions.FUNCTION_TABLE[name]["signature"]
    return len(signature), any(each.get("variadic") for each in signature)


def filter_instead(name: str) -> str:
    """What to write instead of a name behind `|` that other languages take for a filter; empty: it is none."""
    if name in Functions.FUNCTION_TABLE:
        return f"a function is called with the value before it: | {_CALLED.get(name, '{}(@)').format(name)}"
    return f"there is no filter '{name}'; {_INSTEAD[name]}" if name in _INSTEAD else ""


def call_of(name: str) -> str:
    """How a function is called, as an example."""
    return _CALLED.get(name, "{}(VALUE)").format(name).replace("@", "VALUE")


_ENDS = "a step runs once those that it depends on completed; `catch` and `finally` have the steps after a failure"
_PATTERNS = "JMESPath has no patterns; contains, starts_with and ends_with are functions"
_THERE = "what is not there is null: write STEP.field != `null`"
_TEXTS = "JMESPath does not change texts; a step with run_python does"
_INSTEAD = dict.fromkeys(("success", "failure", "always", "cancelled"), _ENDS) | {
    "range": "write the numbers, as in [`1`, `2`, `3`]", "len": "it is called length", "size": "it is called length",
    "startswith": "it is called starts_with", "endswith": "it is called ends_with", "int": "it is called to_number",
    "str": "it is called to_string", "count": "it is called length", "float": "it is called to_number",
    "tojson": "it is called to_string", "first": "the first item is [0]", "last": "the last item is [-1]",
    "includes": "it is called contains", "filter": "items are chosen with [?...], as in LIST[?size > `0`]",
    "empty": "what is empty does not hold: write !STEP.field", "not": "not is written !",
    "default": "what stands in for a missing value is behind ||, as in STEP.name || 'none'",
} | dict.fromkeys(("exists", "defined", "isset", "has"), _THERE) | dict.fromkeys(
    ("match", "matches", "regex", "test"), _PATTERNS
) | dict.fromkeys(("upper", "lower", "trim", "strip", "split", "replace", "capitalize"), _TEXTS)  # fmt: skip
"""Functions and filters of other languages, and what to write instead."""
_CALLED = {
    "join": "{}(', ', @)", "map": "{}(&FIELD, @)", "not_null": "{}(@, 'TEXT')", "merge": "{}(@, OTHER)",
} | dict.fromkeys(("contains", "starts_with", "ends_with"), "{}(@, 'TEXT')") | dict.fromkeys(
    ("sort_by", "min_by", "max_by"), "{}(@, &FIELD)"
)  # fmt: skip
"""How functions are called that take more than the value."""


def _syntax(error: Exception, expression: str) -> str:
    """Where an expression does not parse, after what was probably meant."""
    said = _one_line(error)
    if isinstance(error, IncompleteExpressionError):
        said = "it ends too early"
    elif isinstance(error, ParseError):
        said = f"unexpected {str(error.token_value)!r} at column {error.lex_position + 1}"
    elif isinstance(error, LexerError):
        said = f"unexpected {str(error.lexer_value)!r} at column {error.lexer_position + 1}"
    meant = instead(expression)
    write = f": write {meant.expression[:_SHOWN]}" if meant.expression else ""
    return f"{meant.said}{write} ({said})" if meant.said else said


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
