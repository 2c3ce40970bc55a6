"""`plan pending` with many items of one loop: the first calls in full, the others counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from plansurvive.client.cli.terminal.asking import question
from plansurvive.client.cli.terminal.output import either
from plansurvive.client.feature import views_of_features
from plansurvive.client.verbs.runs import Pending
from plansurvive.plans.flow.ids import is_pattern, pattern_of
from plansurvive.plans.text.safe_text import quoted
from plansurvive.plans.views.models.card import QUESTION, commands, wanted

IN_FULL = 3
"""Calls of one step inside a loop that are listed in full."""


def pending_rows(found: Sequence[Pending], *, folds: bool) -> Iterator[Text]:
    """The rows of the pending decisions. `folds`: of many items of one step, only the first are listed in full."""
    groups: dict[tuple[str, str, str], list[Pending]] = {}
    for each in found:
        groups.setdefault((each.plan_id, pattern_of(each.step_id), each.kind), []).append(each)
    for (plan, pattern, kind), items in groups.items():
        count = len(items) + sum(each.more for each in items)
        if count > 1 and is_pattern(pattern):
            yield from (Text(row) for row in _of_all(plan, pattern, items[0].step_id, count, kind))
        shown = items[:IN_FULL] if folds and is_pattern(pattern) and count > IN_FULL + 1 else items
        for each in shown:
            yield from question(each.plan_id, each)
        if len(shown) < count:
            yield Text(f"… and {count - len(shown):,} more: plan pending {plan} {quoted(pattern)}")


def _of_all(plan: str, pattern: str, first: str, count: int, kind: str) -> Iterator[str]:
    """How many items ask the same, and the commands for one of them and for all."""
    what = wanted(kind, views=views_of_features())
    yield f"{plan}  {pattern}: {count:,} await {what}{', each its own' if kind == QUESTION else ''}"
    yield from either("  one of them   ", commands(plan, first, kind))
    if kind != QUESTION:
        yield from either("  all of them   ", commands(plan, pattern, kind))
