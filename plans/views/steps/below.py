"""What is asked below a step, for the views of the step; `plans.children.asked` says it of a whole plan."""

from __future__ import annotations

from plansurvive.plans.children.asked import asked_below
from plansurvive.plans.run import Run
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import commands


def asks_rows(run: Run, step_id: str) -> list[str]:
    """What is asked by the agent or the child plan of a step, and below it: a row for each, with how to decide."""
    name, found = run.plan.id or "", list(asked_below(run, [step_id]))
    more = sum(below.more for below in found)
    rows = [f"Asks: {commands(name, each.path, each.kind)}" for below in found for each in below.asked]
    return rows + ([f"Asks: {more} more; see: plan pending {line(name)}"] if more else [])
