"""Decides, as a value, what to do with a step that is ready, whose call failed, or whose approval timed out.

`workflows.execution` executes the decision. A ready step is checked in this order: a person's denial, its condition,
its references, its arguments, its approval, the kind of its tool. Nothing here changes the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.durable_tools import SLEEP
from plansurvive.plans.definition.language import Language
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.expressions.conditions import holds, roots_of
from plansurvive.plans.expressions.evaluation import MAX_ARGS_CHARACTERS, Budget
from plansurvive.plans.expressions.items import roots_of_items
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import when_of_whole
from plansurvive.plans.flow.progress import case_of, items_of
from plansurvive.plans.model import ForEach, Step, ToolSpec
from plansurvive.plans.run import DENIED, NOBODY_ANSWERED, Result
from plansurvive.plans.run.step_call import StepCall, StepValues, call_of, filled_args, size_of, upcoming


@dataclass(frozen=True)
class Skip:
    """Skip the step. `opens`: dependents that do not use its value may still run."""

    reason: str
    opens: bool = True
    code: str | None = None


@dataclass(frozen=True)
class Fail:
    """Fail the step without a call."""

    code: str
    message: str


@dataclass(frozen=True)
class Ask:
    """Await a person's approval of the call. `voids`: discard the present decision, which was about another call."""

    call: StepCall
    voids: bool = False


@dataclass(frozen=True)
class Call:
    """Call the step's tool, as an activity; `values` are those it may use. `call`: what was decided about."""

    filled: Filled
    values: StepValues
    call: StepCall


@dataclass(frozen=True)
class Sleep:
    """Start a timer of the workflow."""

    seconds: float


@dataclass(frozen=True)
class Begin:
    """Have what runs the steps of this tool begin it (`workflows.in_steps`): ask, wait, start an agent or a plan."""

    args: dict[str, Any]


@dataclass(frozen=True)
class Open:
    """Begin a block or a loop."""

    opened: Opened


@dataclass(frozen=True)
class List:
    """Have the items of a loop listed by an activity: some of the `values` are stored outside history."""

    rule: ForEach
    values: StepValues


@dataclass(frozen=True)
class Expire:
    """Fail the step: its approval has timed out, with `onTimeout: fail`. `note` is the log entry."""

    note: str
    code: str
    message: str


NextAction = Skip | Fail | Ask | Call | Begin | Sleep | Open | List


def next_action(schedule: ReadinessIndex, step_id: str, budget: Budget | None = None) -> NextAction:
    """The next action for a ready step. `budget`: for its condition and its references together."""
    run, step, decision = schedule.run, schedule.step(step_id), schedule.run.decisions.get(step_id)
    # 1. A denial comes before everything else: a denied step's condition and references no longer matter.
    if decision is not None and not decision.approved:
        if decision.source == "timeout":
            return Skip(decision.comment or approvals.UNANSWERED, opens=False, code=NOBODY_ANSWERED)
        return Skip(approvals.DENIED, opens=False, code=DENIED)
    values = StepValues(run, schedule.needs(step_id), step_id)
    try:
        # 2. The condition comes before the references: it may guard against missing ones.
        condition = when_of_whole(step)
        if condition is not None:
            values.add(roots_of(condition))
            if not holds(condition, values.loaded(condition), budget):
                return Skip(f"condition not met: {condition}")
        if schedule.is_container(step_id):
            return _opening(schedule, step, values, budget)
        if schedule.outline.loop_of(step.id) is not None:
            return Begin({})  # a batch of a loop: the items in it ask for themselves
        filled = filled_args(run, step, values, budget=budget)
        spec = run.facts.tools[step.tool]
        _check_args(spec, filled, run.language)
    except (BadReference, BadExpression) as error:
        return Fail(error.code, error.message)
    # What has to be read first is begun without asking: what the call would do is known only then.
    if spec.durable and run.language.tool(step.tool).reads_first(filled.args, run.steps[step_id]):
        return Begin(filled.args)
    # 3. The approval comes after the arguments: it covers exactly the call that would be made now.
    call = call_of(run, step, filled, values)
    if decision is not None and not approvals.covers(run, step, call):
        return Ask(call, voids=True)
    if decision is None and approvals.is_needed(run, step, call):
        return Ask(call)
    # 4. The kind of the tool.
    if step.tool == SLEEP:
        return Sleep(float(filled.args.get("seconds", 0)))
    if spec.durable:
        return Begin(filled.args)
    return Call(filled, values, call)


def _opening(
    schedule: ReadinessIndex, step: Step, values: StepValues, budget: Budget | None
) -> Open | List | Ask | Skip:
    """Begin a block or a loop. A block may need approval as a whole; of a loop, each item asks for itself."""
    run = schedule.run
    if step.for_each is not None:
        if (batch := run.batch) is not None and batch.step_id == step.id:
            return Open(batch.opened)
        names = roots_of_items(step.for_each.items)
        values.add(names)
        if any(name in values.stored for name in names):
            return List(step.for_each, values)
        return Open(items_of(step.for_each, values.inline, budget))
    if step.is_block:
        call, decision = upcoming(run, step).call, run.decisions.get(step.id)
        if decision is not None and not approvals.covers(run, step, call):
            return Ask(call, voids=True)
        if decision is None and approvals.is_needed(run, step, call):
            return Ask(call)
    if step.repeat is not None:
        return Open(Opened(began=1))
    if step.switch is None:
        return Open(Opened())
    for case in step.switch:
        values.add(roots_of(case.when))
    chosen = case_of(step.switch, values.loaded, budget)
    return Skip("no alternative holds") if chosen is None else Open(Opened(case=chosen))


def after_failure(schedule: ReadinessIndex, step_id: str, failure: Result, *, once_more: bool = False) -> Ask | None:
    """Ask, if the tool reported that it needs approval after all, e.g. write_file over a file it does not know.

    `once_more`: a feature says that a person decides about the call once more, even if one has (`Rules.failed`).
    """
    run, step = schedule.run, schedule.step(step_id)
    if not schedule.may_start(step_id):
        return None
    if once_more:
        return Ask(upcoming(run, step).call, voids=step_id in run.decisions)
    needs_approval = failure.code == "APPROVAL_REQUIRED" and step_id not in run.decisions
    return Ask(upcoming(run, step).call) if needs_approval else None


def after_timeout(schedule: ReadinessIndex, step_id: str) -> Expire | Decide | None:
    """The action of the approval rule after its time limit. None: already decided, or no longer awaiting approval."""
    if step_id not in schedule.awaiting or step_id in schedule.run.decisions:
        return None
    run, step = schedule.run, schedule.step(step_id)
    rule = approvals.rule_of(run, step)
    if rule.timeout is None:
        return None  # an edit removed the time limit while the step was awaiting approval
    text = f"no decision within {rule.timeout:g} s"
    if rule.on_timeout == "fail":
        return Expire(f"step '{step_id}': {text}", "APPROVAL_TIMEOUT", text)
    why = approvals.refused_waiver(run, step) if rule.on_timeout == "approve" else ""
    comment = f"{text}; `onTimeout: approve` does not count: {why}" if why else text
    approved = rule.on_timeout == "approve" and not why
    return Decide(step_id=step_id, approved=approved, comment=comment, digest=run.steps[step_id].digest or None)


def _check_args(spec: ToolSpec, filled: Filled, language: Language) -> None:
    """Raise BadReference for arguments the workflow itself cannot use; a tool validates its own in the activity."""
    if size_of(filled.args) > MAX_ARGS_CHARACTERS:
        text = f"the arguments are longer than {MAX_ARGS_CHARACTERS} characters; pass the data in a file"
        raise BadReference(text, "ARGS_TOO_LARGE")
    if not spec.durable:
        return
    if why := _durable_problem(spec, filled) or language.tool(spec.name).problem(filled.args):
        raise BadReference(f"Invalid args for {spec.name}: {why}", "INVALID_ARGS")


def _durable_problem(spec: ToolSpec, filled: Filled) -> str:
    """Validate arguments of a tool that the workflow runs itself: no activity would validate them."""
    if filled.deferred:
        return "the value is too large; pass it in a file"
    problems = argument_problems(spec, filled.args)
    if problems:
        return "; ".join(f"{field}: {sentence}" for field, sentence in problems)
    return "" if math.isfinite(filled.args.get("seconds", 0)) else "args.seconds: not a finite number"
