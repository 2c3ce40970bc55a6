"""What `plan show` adds to the display of seed 000: ids, how steps ended, their values, who decided about them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Run
from plansurvive.plans.run.undone import shown_steps
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views.models.plan import IN_ORDER
from plansurvive.plans.views.steps.below import asks_rows
from plansurvive.plans.views.steps.child import rows as child_rows
from plansurvive.plans.views.steps.row import shortened, status_word, verdicts
from plansurvive.plans.views.steps.values import value_of
from plansurvive.plans.views.views import created

PROBLEMS = 5
"""Problems of a draft that are shown."""
VALUE = 300
"""Characters of a value that are shown; `plan show --json` has the rest."""


def of_plan(run: Run) -> list[str]:
    """The rows about the plan: its id and version, its status in words, its times, where it works, its tokens."""
    plan = run.plan
    named = f", task {plan.task_id}" if plan.task_id and plan.task_id != plan.id else ""
    numbers = ", ".join(f"{count} {name}" for name, count in in_words(run).items())
    began = created(run)
    times = [("created", began), ("started", run.started), ("ended", run.ended)]
    took = f", in {(run.ended - run.started).total_seconds():.1f} s" if run.ended and run.started else ""
    took += f", estimated {plan.estimated_duration:,.10g} s" if plan.estimated_duration is not None else ""
    rows = [f"Id: {line(plan.id or '')}, version {plan.version}{named}"]
    closing = f", {PHASES[run.closing.phase]}" if run.closing is not None and run.ended is None else ""
    rows += [f"Status: {run.status.value}{closing}{f': {numbers}' if numbers else ''}"]
    rows += ["Times: " + ", ".join(f"{name} {_clock(time)}" for name, time in times if time) + took] if began else []
    until = run.must_end
    rows += [f"Deadline: {_clock(until)}"] if until else []
    rows += [f"Workspace: {line(run.facts.workspace or plan.workspace or '')}"] if run.facts.workspace else []
    rows += _problems(run)
    rows += [f"Notice: it {line(each.text)}" for each in run.notices.values()] if not run.ended else []
    rows += [f"Host: {line(run.host.name)}"] if run.host else []
    rows += [f"Inputs: {_inputs(run)}"] if run.inputs else []
    used = run.ledger.total
    rows += [f"Tokens: {used.in_words()}"] if used.calls or used.cost else []
    rows += [f"Step of: {line(run.parent.plan_id)}, {line(run.parent.step_id)}"] if run.parent else []
    rows += [f"Value: {_value(plan.id or '', run.value, run)}"] if run.value and run.value.ok else []
    return rows + ([f"Stopped: {line(run.stopped)}"] if run.stopped else [])


def _problems(run: Run) -> list[str]:
    """The first problems of a draft; what an ended plan was refused for is its `Stopped`."""
    found = [] if run.ended else run.problems
    more = len(found) - PROBLEMS
    return [f"Problem: {line(each.text)}" for each in found[:PROBLEMS]] + (
        [f"Problem: {more} more; see: plan review {line(run.plan.id or '')}"] if more > 0 else []
    )


def _inputs(run: Run) -> str:
    """The values of the plan's inputs, each cut to a line's share."""
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in run.inputs.items()}
    return line(
        ", ".join(f"{name} = {text if len(text) <= VALUE else text[:VALUE] + '…'}" for name, text in texts.items())
    )


def in_words(run: Run) -> dict[str, int]:
    """The plan's steps by status, each counted once: one that awaits a decision is not called ready as well.

    Of the steps that close the plan, only those that await something.
    """
    number = Counter[str]()
    for step in shown_steps(run):
        state = run.steps[step.id]
        if state.awaiting:
            number[f"awaiting {state.awaiting}"] += 1
        elif not state.closes:
            number[status_word(state)] += 1
    return {name: number[name] for name in (*IN_ORDER, *number) if number[name]}


def of_step(run: Run, step: Step) -> list[str]:
    """The rows about a step: its value, the decision about it, what features add, the files of others among its own."""
    state, name = run.steps[step.id], run.plan.id or ""
    rows = [f"Value: {_value(name, state.result, run, step.id)}"] if state.result and state.result.ok else []
    said = verdicts(run.decisions.get(step.id), state.answer)
    rows += [f"{each.verb.capitalize()}: {line(each.text)}" for each in said]
    rows += [f"Recovered: {line(state.mended)}"] if state.mended else []
    rows += run.views.details(name, step, state)
    rows += child_rows(state) + asks_rows(run, step.id)
    rows += [f"Deleted: {', '.join(map(line, state.deleted))}"] if state.deleted else []
    rows += [f"Warning: {line(warning)}" for warning in state.warnings]
    return [f"      {row}" for row in rows]


def _value(plan: str, result: Result, run: Run, step_id: str = "") -> str:
    if result.large:
        return f"{line(result.large.preview)}… {result.large.bytes:,} bytes; all of it: plan show {plan} --full --json"
    value, is_whole = value_of(run, step_id, result)
    if not is_whole:
        return f"assembled from the values of its steps: plan show {plan} {quoted(step_id)}"
    text, length = shortened(value, VALUE)
    if length <= VALUE:
        return line(text) or "(empty)"
    return f"{line(text)}… {length:,} characters; all of it: plan show {plan} --json"


def _clock(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
