"""Whether a Run that is handed in with a start can be worked with: what its model does not say about it as a whole.

A Run enters a workflow in two ways: from the workflow itself (continue-as-new), which is trusted, and from whoever
starts it (`plan resume`, `plan rerun`, a plan's agent, or anybody with a client), which is not. The second is always a
draft, so that a worker checks the plan and its policy applies; an agent's may also have ended, with an answer to hand
over. Beyond the rules stated here, the Run is tried out: begun, shown and written once. What raises is a problem.

Rejected: a catch-all around the workflow, which would end plans for faults of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from math import isfinite
from typing import Any

from pydantic import BaseModel

from plansurvive.plans.editing import taken_over
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution import undo_run
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model.control_flow import MAX_ROUNDS
from plansurvive.plans.run import DONE, PlanStatus, Run, Status, StepState, run_of, text_of
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.views import queries
from plansurvive.plans.views.markdown import details
from plansurvive.plans.views.summary import summary_of

MAX_SEQ = 10**9
"""Far above any number of changes and log entries that a run can have."""
_OF_A_PLAN = frozenset((Status.PENDING, Status.COMPLETED, Status.SKIPPED))
_INSIDE = frozenset((Status.PENDING, *DONE, Status.BLOCKED))
"""Statuses of steps inside a block or loop that an earlier run has done, or begun."""
RAISED = (PlanError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What code that relies on a sound Run may raise for another one."""


def problem_of(run: Run, now: datetime, rules: RuleSet = NO_RULES) -> str | None:
    """Why a plan cannot start with this Run; None if it can."""
    if run.status is not PlanStatus.DRAFT:
        return f"run.status: a plan starts as a draft, not as {run.status}; use `plan resume` or `plan rerun`"
    return next(problems_of(run, _OF_A_PLAN, rules), None) or tried_out(run, now)


def problems_of(run: Run, statuses: frozenset[Status], rules: RuleSet) -> Iterator[str]:
    names = [step.id for step in run.plan.steps]
    if len(set(names)) < len(names):
        yield "run.plan.steps: two steps have the same id"
    wrong = next(_container_problems(run), None)
    if wrong is not None:
        yield wrong
        return
    if run.outline.nodes.keys() != run.steps.keys():
        odd = sorted(run.outline.nodes.keys() ^ run.steps.keys())[0][:100]
        yield f"run.steps: '{odd}' must be both a step of the plan and a key here"
    elif (wrong := undo_run.problem_of(run)) is not None:
        yield wrong
    if not 0 <= run.seq <= MAX_SEQ or any(not 0 < entry.seq <= run.seq for entry in run.log):
        yield "run.seq: the number of the last change or log entry, and none has a higher one"
    for name, state in run.steps.items():
        node = run.outline.nodes.get(name)
        within = _INSIDE if node is not None and node.parent is not None else statuses
        yield from (f"run.steps.{name[:100]}: {problem}" for problem in _step_problems(run, state, within))
    for name, state in run.kept.steps.items():
        yield from (f"run.kept.{name[:100]}: {problem}" for problem in _step_problems(run, state, _INSIDE))
    yield from (f"run.parts.{problem}" for problem in rules.problems(run))
    yield from odd_values(run)


def _container_problems(run: Run) -> Iterator[str]:
    """Progress of blocks and loops that their steps cannot have made, and edits of them that nobody can have made."""
    yield from taken_over.problems_of(run)
    for where, found in (("opened", run.opened), ("kept.opened", run.kept.opened)):
        for name, opened in found.items():
            most = MAX_ROUNDS if opened.items is None else len(opened.items)
            keys = opened.keys is None or (len(opened.keys) == most and len(set(opened.keys)) == most)
            if not (0 <= opened.began <= most and opened.failed >= 0 and keys):
                yield f"run.{where}.{name[:100]}: its items, keys and counts do not agree"
            if (opened.case or 0) < 0 or (opened.handler or 0) < 0:
                yield f"run.{where}.{name[:100]}: case, handler: indexes are not negative"
    try:
        nodes = run.outline.nodes
    except RAISED as error:
        yield f"run.opened: does not fit the plan ({type(error).__name__}: {str(error)[:300]})"
        return
    for name in run.opened:
        if name not in nodes or name not in run.steps or run.steps[name].status not in DONE:
            yield f"run.opened.{name[:100]}: names no block or loop that is done"


def _step_problems(run: Run, state: StepState, statuses: frozenset[Status]) -> Iterator[str]:
    numbers, status = [change.seq for change in state.changes], state.status
    if status not in statuses:
        yield f"a step cannot start as {status}"
    if status is Status.BLOCKED and not state.permanently_blocked:
        yield "a blocked step of an agent is blocked permanently"
    if state.awaiting or state.deadline or state.failure or state.proposal:
        yield "a step that waits for nothing has none of awaiting, deadline, failure, proposal"
    if numbers != sorted(set(numbers)) or any(not 0 < number <= run.seq for number in numbers):
        yield "changes: their numbers ascend, up to run.seq"
    if state.changes and state.changes[-1].status is not status:
        yield f"changes: the last one is {state.changes[-1].status}, the step is {status}"
    if not state.changes and status not in (Status.PENDING, Status.SKIPPED):
        yield f"changes: a step that is {status} has some"
    if status in (Status.COMPLETED, Status.FAILED) and (
        state.result is None or state.result.ok is not (status is Status.COMPLETED)
    ):
        yield f"result: does not agree with the status {status}"
    counts = (state.calls, state.recoveries, state.more_files, state.more_past, run.retried)
    if min(counts) < 0 or max(state.calls, state.more_past) > MAX_SEQ:
        yield "calls, recoveries, moreFiles, morePast: counts are not negative"


def odd_values(value: Any) -> Iterator[str]:
    """Values that JSON or a model lets through and no Run of ours holds: times without a zone, numbers without end."""
    if isinstance(value, BaseModel):
        for name, each in value:
            if name == "plan":  # its author's own words, checked by the worker
                continue
            yield from (f"{name}.{problem}" for problem in odd_values(each))
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from odd_values(each)
    elif isinstance(value, datetime) and value.tzinfo is None:
        yield "time: has no time zone"
    elif isinstance(value, float) and not isfinite(value):
        yield f"number: {value} is not finite"


def tried_out(run: Run, now: datetime) -> str | None:
    """What goes wrong when a copy of the Run is begun, shown and written."""
    try:
        copy = run_of(text_of(run), run.language, run.views)
        schedule = Schedule(copy)
        if copy.status is PlanStatus.DRAFT:
            schedule.begin(now)
        queries.view(copy, [], schedule)
        queries.text(copy, [])
        queries.events(copy, [])
        details(copy, schedule)
        summary_of(copy).to_json()
    except RAISED as error:
        return f"run: inconsistent ({type(error).__name__}: {str(error)[:300]})"
    return None
