"""The list of a `forEach`: a JMESPath expression over steps and inputs, a reference, or the list itself."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.expressions.references import find, in_text


def list_expression(items: str) -> str:
    """The JMESPath expression in `items`. `$find.files` and `{{find.files}}` mean the same as in arguments."""
    text = items.strip()
    found = in_text(text)
    if len(found) != 1 or found[0].text != text or not found[0].root:
        return items
    root, path = found[0].root, found[0].path
    return f'"{root}" | {path}' if path else f'"{root}"'


def roots_of_items(items: str | list[Any]) -> list[str]:
    """The root names that a list of items uses, in order. Raises BadExpression if an expression does not parse."""
    if isinstance(items, str):
        return roots_of(list_expression(items))
    return list(dict.fromkeys(reference.root for reference in find(items)))
