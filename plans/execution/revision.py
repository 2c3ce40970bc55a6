"""Puts a revised plan into effect: the run continues with the new version.

Steps approved with other arguments need approval again. `plans.execution.apply_edits` decides whether edits may be
applied, this module updates the run; the caller stops the timers of steps that no longer wait.
"""

from __future__ import annotations

from datetime import datetime

from plans.change_log import logged
from plans.execution import approvals
from plans.execution.apply_edits import Revised
from plans.execution.schedule import Schedule
from plans.log import LogKind


def put_into_effect(schedule: Schedule, revised: Revised, now: datetime) -> None:
    """Update the run to the revised plan: statuses, decisions, problems and change log."""
    run = schedule.run
    # Outdated decisions are identified by the old plan, so before it is replaced; `answered` needs the new one.
    again = approvals.outdated(run, revised.plan, revised.changed)
    for name in again:
        approvals.void(run, name, now)
    for name in sorted(revised.changed & run.steps.keys()):
        run.steps[name].args = None
    schedule.revise(revised.plan, revised.skipped, revised.unskipped, now)
    for name in again:
        schedule.answered(name)
    run.decisions = {name: decision for name, decision in run.decisions.items() if name in run.steps}
    run.problems, run.revisions = revised.problems, logged(run.revisions, revised.revision)
    what = ", ".join(revised.revision.ops)
    by = f" by {revised.revision.by}" if revised.revision.by else ""
    run.note(LogKind.EDITED, f"version {run.plan.version}{by}: {what}", now)
