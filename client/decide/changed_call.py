"""A pending call with the arguments that a person wants instead: shown as a whole before an approval of it is final.

Pure. The terminal and the web page use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from plansurvive.client.decide.shown import EDITED, MARGIN
from plansurvive.client.differences.plan_diff import FieldChange, field_changes
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model.opaque import scanned
from plansurvive.plans.plan_diff import same_value
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import NAME_WIDTH

Item = TypeVar("Item", bound=Card)


def with_args(item: Item, args: Mapping[str, Any]) -> Item:
    """The call with these arguments, which no approval of further calls covers.

    Large values that the arguments still refer to stay with it: without them, a reference would pass for a text.
    """
    given = dict(args)
    kept = {each.root for each in find(scanned(item.tool, given))}
    large = {name: each for name, each in item.large.items() if name in kept}
    values = {name: each for name, each in item.values.items() if name in kept}
    changed = (was for name, was in item.args.items() if not same_value(was, given.get(name)))
    tells_before = any(isinstance(was, str) and was and was in item.description for was in changed)
    title = "" if tells_before else item.description  # an agent's call is titled after its arguments
    more = {"large": large, "values": values, "description": title}
    return item.model_copy(update={"args": given, "always": "", "change": {}, **more})


def is_same(item: Card, args: Mapping[str, Any]) -> bool:
    """Whether these are the arguments of the call: its digest would be the same. 1, 1.0 and true are not."""
    return same_value(dict(args), item.args)


def edit_rows(item: Card, args: Mapping[str, Any]) -> list[str]:
    """What differs from the call that was asked about, one argument after the other, as a diff for a terminal."""
    rows = [row for each in field_changes(item.args, args) for row in _rows(each)]  # safe to show already
    return [f"{EDITED if number == 0 else '':<{NAME_WIDTH}} {MARGIN}{row}" for number, row in enumerate(rows)]


def _rows(change: FieldChange) -> list[str]:
    if change.rows:
        return [f"{line(change.path)}:", *change.rows]
    sides = (("-", change.was), ("+", change.now))
    return [f"{line(change.path)}:", *(f"{mark}{text}" for mark, text in sides if text is not None)]
