"""The child plan of a step, folded into its parent's views: its id, its steps by status, and what it asks people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.plans.child_state import ChildPlan, ChildReport
from plansurvive.plans.run import StepState
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import commands

COMMANDS = 3
"""Commands in one line of the log."""


def child_view(child: ChildPlan) -> dict[str, Any]:
    """The child plan as JSON data (a ChildView); its content is in its own view."""
    report = child.report
    view: dict[str, Any] = {"planId": child.plan_id, "title": child.title, "kind": child.kind}
    view |= {"source": child.source, "sha256": child.sha256} if child.source else {}
    if report is not None:
        view |= {"status": report.status, "counts": report.counts}
        view |= {"pending": [each.model_dump(mode="json") for each in report.pending]} if report.pending else {}
        view |= {"more": report.more} if report.more else {}
    return view


def rows(state: StepState) -> list[str]:
    """The row about a step's child plan in the text of its parent: how far it is."""
    child = state.child
    if child is None or not child.plan_id:
        return [f"Plan: {line(child.source)}, SHA-256 {child.sha256[:12]}…"] if child and child.source else []
    report = child.report
    asked = len(report.pending) + report.more if report else 0
    found = f": {in_words(report.status, report.counts, asked)}" if report else ""
    source = f" ({line(child.source)})" if child.source else ""
    return [f"Plan: plan show {line(child.plan_id)}{source}{found}"]


def in_words(status: str, counts: Mapping[str, int], asked: int) -> str:
    """`running, 3 of 5 done, 1 awaiting a decision`; empty before its first report."""
    if not status:
        return ""
    done = sum(counts.get(name, 0) for name in ("completed", "skipped"))  # as of any plan
    parts = [status, f"{done} of {counts.get('total', 0)} done"]
    parts += [f"{counts['failed']} failed"] if counts.get("failed") else []
    parts += [f"{asked} awaiting a decision"] if asked else []
    return line(", ".join(parts))


def asks_now(plan_id: str, step_id: str, before: ChildReport | None, report: ChildReport) -> str:
    """What a child plan has begun to ask since its report before, with the commands; empty if nothing."""
    known = {each.path for each in before.pending} if before else set()
    new = [each for each in report.pending if each.path not in known]
    ways = [commands(plan_id, f"{step_id}/{each.path}", each.kind) for each in new[:COMMANDS]]
    more = f"; {len(new) - COMMANDS} more: plan pending {line(plan_id)}" if len(new) > COMMANDS else ""
    return f"a person is asked: {'; '.join(ways)}{more}" if new else ""
