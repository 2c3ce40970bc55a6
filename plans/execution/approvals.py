"""Approvals: which steps need one, and how a decision is validated and recorded.

A decision may arrive before the step awaits it; the first one counts, later ones are refused (REQUIREMENTS B6). If it
names a plan version, it is valid for that version only. Arguments that replace the step's are validated first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal

from plans.definition.dependencies import dependencies
from plans.definition.references import INPUTS, find, is_literal
from plans.definition.validation import call_problems
from plans.errors import Refused
from plans.execution.messages import Decide
from plans.log import LogKind
from plans.model import ApprovalRule, Plan, Step
from plans.run import DONE, Decision, Run, Status
from plans.step_fields import On, names

DENIED = "User denied approval"
"""The reason of a denied step (seed 004)."""
_DECIDED = names(Step, On.APPROVAL)
"""Fields of a step that a decision covers."""


def is_needed(run: Run, step: Step, args: dict[str, Any]) -> bool:
    """Whether the step needs a person's approval to start with these arguments."""
    spec = run.facts.tools[step.tool]
    if run.facts.strict_approvals:
        return step.requires_approval is True or spec.asks_by_default(args, carries(run, step))
    if run.options.approve_all:
        return False
    if step.requires_approval is None:
        return spec.asks_by_default(args, carries(run, step)) and _kind(step.tool, args) not in run.remembered
    return step.requires_approval


def carries(run: Run, step: Step) -> bool:
    """Whether what the step's tool would send holds a step's value, or what a model chose while the plan ran."""
    sent = {name: value for name, value in run.args_of(step).items() if name in run.facts.tools[step.tool].sends}
    if not sent or run.literal:
        return bool(sent)
    if any(reference.root != INPUTS and not is_literal(reference, run.steps) for reference in find(sent)):
        return True
    own = (f"+ {step.id}:", f"~ {step.id}.", "and ")  # the last: differences that were not listed
    return any(line.startswith(own) for each in run.revisions if each.by == "llm" for line in each.diff)


def is_waived(run: Run, step: Step, args: dict[str, Any]) -> bool:
    """Whether approval was given in advance: by `--yes`, by `requiresApproval: false`, or for all calls of the tool."""
    if run.facts.strict_approvals:
        return False
    remembered = _kind(step.tool, args) in run.remembered and step.requires_approval is None
    return run.options.approve_all or step.requires_approval is False or remembered


def rule_of(run: Run, step: Step) -> ApprovalRule:
    """The approval rule of a step: its own, the plan's default, or no time limit."""
    return step.approval or run.plan.defaults.approval or ApprovalRule()


def deadline_of(run: Run, step: Step, now: datetime) -> datetime | None:
    """When an approval awaited from now on expires; None: never."""
    timeout = rule_of(run, step).timeout
    return None if timeout is None else now + timedelta(seconds=timeout)


def check(run: Run, message: Decide) -> Step:
    """The step that a decision concerns. Raises Refused if the decision cannot be accepted."""
    step = next((step for step in run.plan.steps if step.id == message.step_id), None)
    if step is None:
        raise Refused(f"the plan has no step '{message.step_id}'; `plan show` lists its steps", "UNKNOWN_STEP")
    state, earlier = run.steps[step.id], run.decisions.get(step.id)
    if earlier is not None:
        what = "approved" if earlier.approved else "denied"
        raise Refused(
            f"step '{step.id}' was already {what}{f' by {earlier.by}' if earlier.by else ''}", "ALREADY_DECIDED"
        )
    if state.status in DONE or state.status is Status.RUNNING or state.never:
        status = "permanently blocked" if state.status is Status.BLOCKED else f"already {state.status}"
        raise Refused(f"step '{step.id}' is {status} and can no longer be approved or denied", "TOO_LATE")
    if message.version is not None and message.version != run.plan.version:
        raise Refused(
            f"the decision is about version {message.version}, the plan is at version {run.plan.version}",
            "STALE_VERSION",
        )
    if message.args is not None:
        _check_args(run, step, message.args)
    return step


def decide(run: Run, message: Decide, now: datetime, source: Literal["signal", "update", "timeout"]) -> Decision:
    """Record a decision. Raises Refused, with the run unchanged, if it cannot be accepted."""
    step = check(run, message)
    state = run.steps[step.id]
    if message.args is not None:
        state.args = message.args
    seen = state.asked if state.awaiting and state.asked is not None and message.args is None else run.args_of(step)
    decision = Decision(
        approved=message.approved,
        by=message.by,
        comment=message.comment,
        args=message.args,
        version=run.plan.version,
        args_hash=digest(seen),
        time=now,
        source=source,
    )
    run.decisions[step.id] = decision
    run.note(LogKind.APPROVED if message.approved else LogKind.DENIED, sentence(step.id, decision), now, step.id)
    if message.remember and message.approved and not run.facts.strict_approvals:
        _remember(run, _kind(step.tool, seen), decision)
    return decision


def _kind(tool: str, args: dict[str, Any]) -> str:
    """What a remembered approval covers: a tool, with network access apart from without."""
    return f"{tool} with network" if args.get("network") is True else tool


def _remember(run: Run, kind: str, decision: Decision) -> None:
    """Approve a tool for the rest of the run, including the steps that already await approval for it.

    A step with its own `requiresApproval` still needs approval: its author asked for that.
    """
    run.remembered[kind] = decision.by
    run.note(LogKind.REMEMBERED, f"{kind} is approved for the rest of this run", decision.time, subject=kind)
    for step in run.plan.steps:
        state = run.steps[step.id]
        seen = state.asked if state.asked is not None else run.args_of(step)
        if state.awaiting == "approval" and step.requires_approval is None and _kind(step.tool, seen) == kind:
            own = decision.model_copy(update={"args": None, "args_hash": digest(seen)})
            run.decisions.setdefault(step.id, own)


def covers(run: Run, step: Step, args: dict[str, Any]) -> bool:
    """Whether the decision on a step covers the arguments it would run with now."""
    decision = run.decisions[step.id]
    return not decision.args_hash or decision.args_hash in (digest(args), digest(run.args_of(step)))


def void(run: Run, step_id: str, now: datetime) -> None:
    """Discard the decision on a step, because the step has changed since."""
    decision = run.decisions.pop(step_id, None)
    if decision is not None:
        what = "approval" if decision.approved else "denial"
        text = f"the {what} of step '{step_id}' was for other arguments; it needs another decision"
        run.note(LogKind.VOID, text, now, step_id)


def outdated(run: Run, plan: Plan, changed: Iterable[str]) -> list[str]:
    """The changed steps whose tool, arguments or approval requirement differ in the new plan."""
    old, new = {step.id: step for step in run.plan.steps}, {step.id: step for step in plan.steps}
    return [
        name
        for name in sorted(changed)
        if name in old and _call(old[name], run.args_of(old[name])) != _call(new[name], new[name].args)
    ]


def _call(step: Step, args: dict[str, Any]) -> dict[str, Any]:
    """What a decision on the step covers."""
    return {name: getattr(step, name) for name in _DECIDED} | {"args": args}


def digest(args: dict[str, Any]) -> str:
    """Hash of the arguments, which binds a decision to them."""
    text = json.dumps(args, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def sentence(step_id: str, decision: Decision) -> str:
    """The decision as a sentence, for the log and for the reply to the person who made it."""
    who = f" by {decision.by}" if decision.by else ""
    how = " with changed arguments" if decision.args is not None else ""
    why = f": {decision.comment}" if decision.comment else ""
    return f"step '{step_id}' {'approved' if decision.approved else 'denied'}{who}{how}{why}"


def _check_args(run: Run, step: Step, args: dict[str, Any]) -> None:
    if not run.facts.tools:
        raise Refused(
            "arguments cannot be changed before the plan has been checked; try again in a moment", "TOO_EARLY"
        )
    completed = {name for name, state in run.steps.items() if state.status is Status.COMPLETED}
    usable = completed | (run.steps.keys() & dependencies(step).keys())
    changed = step.model_copy(update={"args": args})
    problems = call_problems(changed, run.facts.tools, usable, set(run.plan.inputs))
    if problems:
        raise Refused("; ".join(f"{problem.field}: {problem.message}" for problem in problems[:5]), "INVALID_ARGS")


def later(now: datetime, seconds: float) -> datetime:
    """The time `seconds` from now."""
    return now + timedelta(seconds=seconds)
