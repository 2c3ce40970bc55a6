"""The deadline of a plan: when its `timeout` is over, and what it is called then.

It counts from the moment when the plan begins to run, so a draft in review has none, and waiting and pauses count. It
is never stored: continue-as-new keeps when the plan began, an edit of `timeout` moves it, and a resumed run begins
again. A child plan ends with its parent at the latest. What closes a plan (rollback, `finally`) has no deadline: it
runs because the plan has ended.

A plan whose deadline passes has failed, so rollback, alerts and schedules that pause on failure act. It is derived from
when the plan began, so edits and resumes need no rule. Rejected: Temporal's workflow timeout, which ends a plan without
rollback and summary.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from plansurvive.plans.log import LogKind
from plansurvive.plans.run import ENDED, Run

PLAN_TIMEOUT = "PLAN_TIMEOUT"
"""Code of a plan that its deadline has ended; its steps that were running are `CANCELLED`."""


def timeout_of(run: Run) -> float | None:
    """The seconds that the run may take; None: any time."""
    given = run.options.timeout
    return run.plan.timeout if given is None else given


def deadline_of(run: Run) -> datetime | None:
    """When the run must have ended; None if never, or if it has not begun."""
    if run.started is None:
        return None
    seconds = timeout_of(run)
    own = None if seconds is None else run.started + timedelta(seconds=seconds)
    times = [each for each in (own, run.options.until) if each is not None]
    return min(times, default=None)


def awaited(run: Run) -> datetime | None:
    """The deadline that is still to come: of a run that has begun, has not ended, and is not being closed."""
    open_ = run.status not in ENDED and run.closing is None and not run.timed_out
    return deadline_of(run) if open_ else None


def for_child(parent: Run) -> datetime | None:
    """When a child plan must have ended because its parent must; None if the parent is being closed."""
    return deadline_of(parent) if parent.closing is None else None


def end(run: Run, now: datetime) -> str:
    """Mark the run as ended by its deadline. Returns the reason, for `Schedule.stop`."""
    run.timed_out = True
    seconds, is_own = timeout_of(run), deadline_of(run) != run.options.until
    limit = f"its `timeout` of {in_words(seconds)}" if is_own and seconds is not None else "that of its parent"
    text = f"the plan's deadline has passed: {limit}"
    run.note(LogKind.EXPIRED, text, now, code=PLAN_TIMEOUT)
    return text


def left(until: datetime, now: datetime) -> str:
    """How far away a deadline is: `in 9 min 56 s`."""
    seconds = (until - now).total_seconds()
    return f"in {in_words(seconds)}" if seconds > 0 else "now"


def in_words(seconds: float) -> str:
    """A time span as people say it: `45 s`, `9 min 56 s`, `2 h`, `3 d 4 h`."""
    for size, unit, part, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= 2 * size or seconds == size:
            number, rest = divmod(round(seconds / part), size // part)
            return f"{number} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{seconds:.3g} s"
