"""Approvals: which steps need one, and how a decision is validated and recorded.

A decision is about the digest of one call (`plans.run.step_call`). It may arrive before the step awaits it; the first
one counts, later ones are refused (REQUIREMENTS B6). It may name the digest, or a plan version; then it is valid for
those only. When the step starts with another call than the one decided about, it asks again: an edit, another queue,
or a value that was not known yet. Arguments that replace the step's are validated, and make a new version of the plan.

"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

from plansurvive.plans.change_log import logged, of_approver, stands_since
from plansurvive.plans.definition.checks.validation import call_problems
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import remembered, undo_consent
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.tool_history import keep_asked, keep_proposed
from plansurvive.plans.flow.ids import around, is_inside, lineage, pattern_of, template_of
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import ApprovalRule, Step
from plansurvive.plans.plan_diff import same_value
from plansurvive.plans.run import DONE, Decision, Run, Status
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.run.people import is_verified, who_of
from plansurvive.plans.run.step_call import StepCall, carries, digest_of, upcoming
from plansurvive.plans.run.undone import is_of_edited
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.signature import signer_of
from plansurvive.plans.step_state import by_whom

Source = Literal["signal", "update", "timeout"]
"""How a decision came in."""
DENIED = "User denied approval"
"""The reason of a denied step (seed 004)."""
UNANSWERED = "no decision in time"
"""The reason of a step whose approval expired with `onTimeout: deny`."""
OVERRIDDEN = "OVERRIDDEN"
"""Code of the log entry of an approval that one person has made in place of all who must."""
CALL, RULE, DEFAULTS = "call", "rule", ""
"""Marks of `Run.edited`: the call of a step is another one, or only what may waive its approval. The key DEFAULTS
stands for the plan's `defaults.approval`."""


def is_needed(run: Run, step: Step, call: StepCall) -> bool:
    """Whether the step needs a person's approval to make this call."""
    asks, has_changed = stated(run, step), step.tool in run.tools_changed
    if step.id in run.unwaived:
        return True
    if undo_consent.is_agreed(run, step, call):
        return False
    if run.facts.strict_approvals:
        return asks is True or has_changed or _asks_by_default(run, step, call)
    if step.id in run.denied:
        return True
    if run.remembered and remembered.by_item(run, step, call):
        return False
    if has_changed:
        return asks is True or call.kind not in run.remembered
    if run.options.approve_all:
        return False
    if asks is None:
        return _asks_by_default(run, step, call) and call.kind not in run.remembered
    return asks


def _asks_by_default(run: Run, step: Step, call: StepCall) -> bool:
    """Whether the step's tool needs approval for this call, before its worker judges it; a block has none."""
    if step.is_block or run.facts.tools[step.tool].judged:
        return False
    return run.facts.tools[step.tool].asks_by_default(call.args, carries(run, step))


def is_waived(run: Run, step: Step, call: StepCall) -> bool:
    """Whether approval was given in advance.

    By `--yes`, by `requiresApproval: false`, for all calls of the tool, or of an undo with its step.
    """
    if step.id in run.unwaived:
        return False
    if undo_consent.is_agreed(run, step, call):
        return True
    if run.facts.strict_approvals or step.id in run.denied:
        return False
    asks = stated(run, step)
    if run.remembered and remembered.by_item(run, step, call):
        return True
    if (run.options.approve_all or asks is False) and step.tool not in run.tools_changed:
        return True
    return asks is not True and bool(run.remembered) and call.kind in run.remembered


def stated(run: Run, step: Step) -> bool | None:
    """The step's `requiresApproval`, as far as it counts.

    A waiver counts only as the plan was started with, not as edited. What was denied in the run before asks anyway.
    """
    if step.id in run.denied:
        return True
    if step.requires_approval is False:
        return None if is_of_edited(run, step.id) or not run.options.waivers else False
    return step.requires_approval


def refused_waiver(run: Run, step: Step) -> str:
    """Why the time limit of an approval may not approve the step; empty if it may."""
    if run.facts.strict_approvals:
        return "the worker's approvals are strict"
    if step.id in run.unwaived:
        return run.unwaived[step.id]
    if step.tool in run.tools_changed:
        return "its tool is not as it was when the plan was checked"
    no_waivers = not run.options.waivers or is_inside(step.id, run.edited)
    if no_waivers or (step.approval is None and DEFAULTS in run.edited):
        return "it is not what the plan was started with, but an edit"
    return ""


def rule_of(run: Run, step: Step) -> ApprovalRule:
    """The approval rule of a step: its own, the plan's default, or no time limit."""
    return step.approval or run.plan.defaults.approval or ApprovalRule()


def deadline_of(run: Run, step: Step, now: datetime) -> datetime | None:
    """When an approval awaited from now on expires; None: never."""
    timeout = rule_of(run, step).timeout
    return None if timeout is None else now + timedelta(seconds=timeout)


def _what_awaits_inside(run: Run, step_id: str) -> str:
    found = next((name for name, each in run.steps.items() if each.awaiting and step_id in around(name)), "")
    if not found:
        return "and can no longer be approved or denied"
    everyone = pattern_of(found)
    more = f", '{everyone}' names all such items" if everyone != found else ""
    return f"and is decided by what is inside it: '{found}' awaits a decision{more}"


def decided(run: Run, step_id: str) -> str:
    """The decision about a step that makes another one too late, as a sentence; empty if there is none."""
    state, earlier = run.steps[step_id], run.decisions.get(step_id)
    if earlier is None:
        return ""
    what = f"{'approved' if earlier.approved else 'denied'}{by_whom(earlier)}"
    is_used = state.permanently_blocked or state.status in DONE | {Status.RUNNING} or earlier.source == "timeout"
    way = "" if is_used else f"; `plan withdraw {run.plan.id} {step_id}` takes it back"
    return f"step '{step_id}' was already {what}{way}"


def check(
    run: Run, message: Decide, now: datetime | None = None, rules: RuleSet = NO_RULES
) -> Step:  # fmt: skip
    """The step that a decision concerns. Raises Refused if the decision cannot be accepted.

    `rules`: of the features that the run asks.
    """
    step = run.step_of(message.step_id)
    if step is None:
        raise unknown_step(message.step_id, run, pattern_of)
    state = run.steps[step.id]
    _refuse_approval_of_question(run, step)
    if message.override:
        _check_override(step, message)
    if earlier := decided(run, step.id):
        raise Refused(earlier, "ALREADY_DECIDED")
    too_late = DONE if state.awaiting and message.args is None else DONE | {Status.RUNNING}
    if state.permanently_blocked or state.status in too_late:
        status = "permanently blocked" if state.status is Status.BLOCKED else f"already {state.status}"
        raise Refused(f"step '{step.id}' is {status} {_what_awaits_inside(run, step.id)}", "TOO_LATE")
    about, current = message.version, run.plan.version
    # It counts if, since that version, only approvers of other steps changed arguments.
    if about is not None and about != current and not stands_since(run.revisions, about, current, step.id):
        raise Refused(f"the decision is about version {about}, the plan is at version {current}", "STALE_VERSION")
    _check_digest(run, step, message)
    if message.args is not None:
        _check_args(run, step, message.args)
    if now is not None:
        rules.may_decide(run, step, _decision(run, step, message, now, "update"))
    return step


def _check_override(step: Step, message: Decide) -> None:
    """Raise Refused for an override that is more than the approval of one call, or has no reason."""
    if not message.approved or message.remember or message.args is not None:
        raise Refused(
            "an override is the approval of one call as it is: no denial, no `args`, no `remember`", "INVALID_ARGS"
        )
    if not message.comment.strip():
        raise Refused(f"say why step '{step.id}' cannot wait for the others: an override has a reason (`comment`)",
                      "REASON_REQUIRED")  # fmt: skip


def _refuse_approval_of_question(run: Run, step: Step) -> None:
    """Raise Refused if an approval or denial concerns a question that only wants an answer."""
    is_question = run.language.tool(step.tool).is_question and not stated(run, step)
    if is_question or run.steps[step.id].wants_answer:
        text = f"step '{step.id}' asks a question, which is answered, not approved"
        raise Refused(f"{text}: plan answer {run.plan.id} {step.id} VALUE", "IS_A_QUESTION")


def _check_digest(run: Run, step: Step, message: Decide) -> None:
    """Raise Refused for a decision about another call, or one that does not say which of several it is about."""
    if message.digest is not None and message.digest != digest_shown(run, step):
        raise Refused(
            f"the decision is about another call (digest {message.digest[:12]}…) than that of step '{step.id}'"
            f" (now {digest_shown(run, step)[:12]}…): {_whose(run, step, message.digest)};"
            f" read it with `plan pending {run.plan.id} {step.id}` and decide about that",
            "STALE_DIGEST",
        )
    named = message.digest is not None or message.version is not None
    if message.approved and not named and is_changed(run, step.id):
        raise Refused(
            f"what step '{step.id}' would do {_since(run, step)}, and the approval does not say what it is about; "
            "read it with `plan pending` and send its `digest` or `version`",
            "DIGEST_REQUIRED",
        )


def digest_shown(run: Run, step: Step) -> str:
    """The digest of what a person is asked now; of a step that does not ask yet, that of its call as known now."""
    state = run.steps[step.id]
    return state.digest if state.awaiting == "approval" and state.digest else digest_of(upcoming(run, step).call)


def is_changed(run: Run, step_id: str) -> bool:
    """Whether the step's call is another one than the plan was started with, or than it asked about before."""
    places = (step_id, template_of(step_id)) if run.edited else ()
    return any(run.edited.get(name) == CALL for each in places for name in lineage(each))


def _since(run: Run, step: Step, otherwise: str = "has changed since") -> str:
    last = next((each for each in reversed(run.revisions) if any(step.id in line for line in each.diff)), None)
    if last is None:
        return otherwise
    return f"was changed in version {last.version}{f' by {last.by}' if last.by else ''}"


def _whose(run: Run, step: Step, digest: str) -> str:
    """Why a digest may not be that of the step."""
    other = next((name for name, state in run.steps.items() if state.digest == digest), "")
    if other and other != step.id:
        return f"the digest is that of step '{other}'"
    since = _since(run, step, "has changed since" if is_changed(run, step.id) else "may have changed since")
    return f"what it would do {since}"


def decide(
    run: Run, message: Decide, now: datetime, source: Source, *, is_told: bool = True, rules: RuleSet = NO_RULES
) -> Decision:
    """Record a decision, with a log entry unless the caller has one. Raises Refused, with the run unchanged.

    If more people must approve (`missing`), `run.decisions` stays without it: the feature that asks for them stores it,
    and the step continues to await approval.
    """
    step = check(run, message, now, rules)
    if message.args is not None:
        _take_args(run, step, message, now)
    decision = rules.may_decide(run, step, _decision(run, step, message, now, source))
    rules.decided(run, step, decision)
    if not decision.missing:
        run.decisions[step.id] = decision
        keep_proposed(run.steps[step.id])
    if is_told:
        kind, code = LogKind.APPROVED if message.approved else LogKind.DENIED, OVERRIDDEN if decision.override else None
        run.note(kind, sentence(step.id, decision), now, step.id, code=code)
    is_over = not decision.missing and run.steps[step.id].status is not Status.RUNNING
    if message.remember and message.approved and not run.facts.strict_approvals and is_over:
        remembered.remember(run, step, _seen(run, step, message), decision, stated)
    return decision


def _seen(run: Run, step: Step, message: Decide) -> StepCall:
    """The call that was decided about."""
    state, call = run.steps[step.id], upcoming(run, step).call
    is_asked = state.awaiting and message.args is None
    return call._replace(args=state.asked) if is_asked and state.asked is not None else call


def _decision(run: Run, step: Step, message: Decide, now: datetime, source: Source) -> Decision:
    """The decision that a message is."""
    state, call = run.steps[step.id], upcoming(run, step)
    # A digest is recorded only of what was read: without one in the message, the approver may have read the plan before
    # its values were known, and the values in arguments that the approver typed are filled in after the decision.
    named = call.is_whole and message.digest is not None and message.args is None
    digest = digest_of(call.call) if call.is_written or named else ""
    if state.awaiting and message.args is None:
        digest = state.digest or digest
    asked_now = state.awaiting == "approval" and not state.proposal
    return Decision(
        approved=message.approved,
        by=message.by,
        comment=message.comment,
        args=message.args,
        version=run.plan.version,
        digest=digest,
        undo=undo_consent.agreed(run, step) if asked_now and message.approved and source != "timeout" else "",
        unchecked=not run.facts.workspace,
        time=now,
        source=source,
        via=message.via,
        verified=is_verified(run, message),
        signed=signer_of(message),
        override=message.override,
    )


def ask(run: Run, step_id: str, asked: dict[str, Any], digest: str) -> None:
    """Note what the person is asked. A step that asked about something else before is marked as changed."""
    state = run.steps[step_id]
    if state.digest and state.digest != digest:
        run.edited[step_id] = CALL
    keep_asked(state)
    state.asked = asked
    undo = undo_consent.undo_call(run, step) if (step := run.step_of(step_id)) is not None else None
    state.asked_undo = digest_of(undo) if undo is not None else ""
    state.asks[state.changes[-1].seq] = digest


def _take_args(run: Run, step: Step, message: Decide, now: datetime) -> None:
    """Give the step the approver's arguments: a new version of the plan, with its line in the change log."""
    before, was = run.args_of(step), digest_shown(run, step)
    run.steps[step.id].args = message.args
    if same_value(message.args, before):
        return
    run.plan = run.plan.model_copy(update={"version": run.plan.version + 1})
    run.edited[step.id] = CALL
    old, new = (step.model_copy(update={"args": args}) for args in (before, run.args_of(step)))
    digests = f"{step.id}: call {was} -> {digest_of(upcoming(run, step).call)}"
    revision = of_approver(old, new, digests, version=run.plan.version, by=message.by, time=now, reason=message.comment)
    proof = {"via": message.via, "verified": is_verified(run, message), "signed": signer_of(message)}
    revision = revision.model_copy(update=proof)
    run.revisions = logged(run.revisions, revision)
    what = f"the approver of '{step.id}' changed its arguments: {'; '.join(revision.diff[:-1])}"
    who = f" by {who_of(run, message)}" if message.by else ""
    run.note(LogKind.EDITED, f"version {run.plan.version}{who}: {what}", now, subject=step.id)


def covers(run: Run, step: Step, call: StepCall) -> bool:
    """Whether the decision on a step covers the call it would make now."""
    decision = run.decisions[step.id]
    # Before a worker checked the plan, nobody knew the workspace that the starter's choice leads to.
    return decision.digest == digest_of(call._replace(workspace="", directory=None) if decision.unchecked else call)


def rebound(run: Run, step: Step, decision: Decision) -> Decision:
    """The approval of a recovery as the approval of the call that is repeated, as far as it could be shown."""
    call = upcoming(run, step)
    digest = digest_of(call.call) if call.is_whole else ""
    return decision.model_copy(update={"digest": digest})


def void(run: Run, step_id: str, now: datetime) -> None:
    """Discard the decision on a step, because it is not about the call that the step would make."""
    step = run.step_of(step_id) if step_id in run.unwaived and step_id in run.decisions else None
    is_same = step is not None and covers(run, step, upcoming(run, step).call)
    decision = run.decisions.pop(step_id, None)
    if decision is not None:
        what = "approval" if decision.approved else "denial"
        why = "was about another call" if decision.digest else "did not say which values it was about"
        why = f"does not count ({run.unwaived[step_id]})" if is_same else why
        run.note(LogKind.VOID, f"the {what} of step '{step_id}' {why}; it needs another decision", now, step_id)


def sentence(step_id: str, decision: Decision) -> str:
    """The decision as a sentence, for the log and for the reply to the person who made it."""
    who = f" by {decision.who}" if decision.by else ""
    how = " with changed arguments" if decision.args is not None else ""
    how = " alone, overriding those who must approve" if decision.override else how
    why = f": {decision.comment}" if decision.comment else ""
    done = decision.needed - decision.missing
    more = f"; {done} of {decision.needed}, {decision.missing} more must approve" if decision.missing else ""
    return f"step '{step_id}' {'approved' if decision.approved else 'denied'}{who}{how}{why}{more}"


def is_as_asked(run: Run, step: Step) -> bool:
    """Whether the step's call can only be approved as it is, or denied."""
    spec = run.facts.tools.get(step.tool)
    return spec is not None and spec.as_asked


def _check_args(run: Run, step: Step, args: dict[str, Any]) -> None:
    if not run.facts.tools:
        raise Refused(
            "arguments cannot be changed before the plan has been checked; try again in a moment", "TOO_EARLY"
        )
    if is_as_asked(run, step):
        text = f"the arguments of step '{step.id}' cannot be changed: who asks makes the call itself, as it is shown"
        raise Refused(f"{text}; approve or deny it as it is", "INVALID_ARGS")
    completed = {name for name, state in run.steps.items() if state.status is Status.COMPLETED}
    usable = completed | (run.steps.keys() & dependencies(step).keys())
    changed = step.model_copy(update={"args": args})
    problems = call_problems(changed, run.facts.tools, usable, set(run.plan.inputs), run.language)
    if problems:
        raise Refused("; ".join(f"{problem.field}: {problem.message}" for problem in problems[:5]), "INVALID_ARGS")


def later(now: datetime, seconds: float) -> datetime:
    """The time `seconds` from now."""
    return now + timedelta(seconds=seconds)
