"""The deadline of a plan: when its `timeout` is over, and what it is called then.

It counts from the moment when the plan begins to run, so a draft in review has none, and waiting and pauses count. It
is derived: continue-as-new keeps when the plan began, an edit of `timeout` moves it, and a resumed run begins
again. A child plan ends with its parent at the latest. What closes a plan (rollback, `finally`) has no deadline: it
runs because the plan has ended.

A plan whose deadline passes has failed, so rollback, alerts and schedules that pause on failure act. Rejected:
Temporal's workflow timeout, which ends a plan without rollback and summary.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from plansurvive.features.deadline.model import Within
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import ENDED, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.text.spans import in_words

PLAN_TIMEOUT = "PLAN_TIMEOUT"
"""Code of a plan that its deadline has ended; its steps that were running are `CANCELLED`."""


def deadline_of(run: Run) -> datetime | None:
    """When the run must have ended; None if never, or if it has not begun."""
    if run.started is None:
        return None
    seconds, within = run.time_limit, run.options.known_part(Within)
    until = None if within is None else within.until
    if seconds is None:
        return until
    own = run.started + timedelta(seconds=seconds)
    return own if until is None else min(own, until)


def awaited(run: Run) -> datetime | None:
    """The deadline that is still to come: of a run that has begun, has not ended, and is not being closed."""
    is_open = run.status not in ENDED and run.closing is None and not run.failed_as
    return deadline_of(run) if is_open else None


def end(run: Run, now: datetime) -> str:
    """Mark the run as ended by its deadline. Returns the reason, for `Schedule.stop`."""
    seconds, is_own = run.time_limit, deadline_of(run) != run.options.part(Within).until
    run.failed_as = PLAN_TIMEOUT
    limit = f"its `timeout` of {in_words(seconds)}" if is_own and seconds is not None else "that of its parent"
    text = f"the plan's deadline has passed: {limit}"
    run.note(LogKind.EXPIRED, text, now, code=PLAN_TIMEOUT)
    return text


def _for_child(parent: Run, step: Step, plan: Plan | None) -> Within | None:  # noqa: ARG001
    """Nothing if the parent is being closed."""
    until = deadline_of(parent) if parent.closing is None else None
    return None if until is None else Within(until=until)


def _edited(run: Run, before: Plan) -> None:
    """Let an edited `timeout` count, also if the plan was started with another one."""
    if run.plan.timeout != before.timeout and run.options.timeout is not None:
        run.options = run.options.model_copy(update={"timeout": None})


RULES = Rules("deadline", for_child=_for_child, edited=_edited)
