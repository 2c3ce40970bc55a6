"""Why a step asks a person, and what its approval would cover if it were remembered: what the asked person is told.

Decides nothing: `plans.execution.approvals` does. The sentences are about the run as it is now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from plansurvive.plans.execution import approvals
from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.model import Step
from plansurvive.plans.model.tool_spec import needs_approval
from plansurvive.plans.run import Run, Status
from plansurvive.plans.run.step_call import StepCall, carries, is_controlled
from plansurvive.plans.run.undone import is_of_edited, undo_of

ASKED_BY_TOOL = "APPROVAL_REQUIRED"
"""Code of an attempt whose tool reported that a person must approve it."""
_PLAIN_NAME = re.compile(r"[\w.@+-]+")
"""A name of a person that needs no quotes in a sentence."""
CUT = 400
"""Characters of what a tool said."""


def reasons(run: Run, step: Step, call: StepCall) -> list[str]:
    """Why the step awaits approval of this call, the strongest reason first; empty for a question."""
    return list(dict.fromkeys(_reasons(run, step, call)))


def _reasons(run: Run, step: Step, call: StepCall) -> Iterator[str]:
    state, facts = run.steps[step.id], run.facts
    yield from _closes(run, step)
    proposal = state.proposal or {}
    if proposal:
        yield from (each.reason for kind, each in run.views.proposals.items() if kind in proposal)
        return
    if run.literal:
        yield "an agent's model chose this call"
    if step.tool in run.tools_changed:
        yield run.tools_changed[step.tool]
    if step.id in run.denied:
        yield "it was denied in the previous run"
    if approvals.stated(run, step) is True and step.id not in run.denied:
        yield "the plan says `requiresApproval: true`"
    if step.requires_approval is False:
        yield from _waiver_ignored(run, step)
    attempts = (past.attempt for past in reversed(state.past) if past.attempt is not None)
    said = next((each.error for each in attempts if each.code == ASKED_BY_TOOL), "")
    spec = facts.tools.get(step.tool)
    asks = not step.is_block and spec is not None and spec.asks_by_default(call.args, carries(run, step))
    if said and not (asks and said == needs_approval(step.tool)):  # else the last reason says the same
        yield " ".join(said.split())[:CUT]
    elif step.id in run.unwaived:  # of a step that no activity of its tool runs, no attempt is known
        yield run.unwaived[step.id][:CUT]
    if asks and spec is not None:
        if spec.asks_because:
            yield spec.asks_because
        if spec.sends and not run.literal and is_controlled(run, step):
            yield "whether the request is sent depends on what other steps have read or done, and so it can reveal that"
        how = " with these arguments" if spec.approval_exempt else " by default"
        yield f"{step.tool} needs approval{how}{', and waivers do not count here' if facts.strict_approvals else ''}"
    yield from _origin(run, step)


def _closes(run: Run, step: Step) -> Iterator[str]:
    """That the step closes its plan, and why the plan is closed."""
    closing = run.closing
    if closing is None or not run.steps[step.id].closes:
        return
    undone = next((name for name in closing.undone if f"{step.id}.".startswith(f"{undo_of(name)}.")), None)
    if undone is None:
        yield f"the plan is finishing: this is part of its `finally`, and it ends as {closing.ends}"
    elif closing.of:
        yield f"plan '{closing.of}' is undone by `plan undo`: this undoes step '{undone}'"
    else:
        yield f"the plan is rolling back{_why_rolled_back(run)}: this undoes step '{undone}'"


def _why_rolled_back(run: Run) -> str:
    """What kept the plan from completing, as a part of a sentence."""
    if run.closing is not None and run.closing.cancelled:
        return ", as it was cancelled"
    own = [name for name, state in run.steps.items() if not state.closes]
    failed = next((name for name in own if run.steps[name].status is Status.FAILED), None)
    # In a block or loop that failed, the step inside it that failed says why.
    while failed is not None and (inside := _failed_in(run, failed)):
        failed = inside
    if failed is not None and (result := run.steps[failed].result) is not None:
        code = f" ({result.code})" if result.code else ""
        return f", as step '{failed}' failed{code}: {' '.join((result.error or '').split())[:CUT]}"
    denied = next((name for name in own if run.steps[name].is_denied), None)
    if denied is not None:
        return f", as step '{denied}' was {'not answered' if run.steps[denied].is_unanswered else 'denied'}"
    return f": {' '.join(run.stopped.split())[:CUT]}" if run.stopped else ""


def _failed_in(run: Run, step_id: str) -> str | None:
    children = run.outline.nodes[step_id].children
    return next((each for each in children if each in run.steps and run.steps[each].status is Status.FAILED), None)


def _waiver_ignored(run: Run, step: Step) -> Iterator[str]:
    """Why the plan's `requiresApproval: false` does not count."""
    if run.facts.strict_approvals:
        yield "`requiresApproval: false` does not count: the worker ignores waivers (PLANS_APPROVALS=strict)"
    elif not run.options.waivers:
        yield "`requiresApproval: false` does not count: no person had read the plan when it was started"
    elif is_of_edited(run, step.id):
        yield "`requiresApproval: false` does not count: the step is not what the plan was started with"


def _origin(run: Run, step: Step) -> Iterator[str]:
    """What of the call is not as a person wrote it."""
    if approvals.is_changed(run, step.id):
        last = next((each for each in reversed(run.revisions) if any(step.id in row for row in each.diff)), None)
        who = f" by {last.by} in version {last.version}" if last and last.by else ""
        yield f"the call was changed{who} since the plan was started, or since it was last asked about"
    if run.steps[step.id].mended:
        yield "an LLM recovered the step from its last failure"
    if run.request and not run.literal:
        yield "an LLM wrote this plan"


def asker(run: Run) -> str:
    """Who asks: the plan or agent, who started it, and for which step of which plan it works."""
    kind = "agent" if run.literal else "plan"
    text = f"{kind} {run.plan.id}" + (f" ({json.dumps(run.plan.title, ensure_ascii=False)})" if run.plan.title else "")
    # Quoted, so that a title or a name such as `x), started by ann` is not taken for the sentence around it
    by = run.options.by
    if by:
        text += f", started by {by if _PLAIN_NAME.fullmatch(by) else json.dumps(by, ensure_ascii=False)}"
    return text + (f", for step '{run.parent.step_id}' of plan {run.parent.plan_id}" if run.parent else "")


def remembered_scope(run: Run, step: Step, call: StepCall) -> str:
    """What would be approved as well if the decision were remembered, in a sentence; empty if it cannot be."""
    if run.facts.strict_approvals or step.is_block or run.steps[step.id].proposal or step.id in run.unwaived:
        return ""
    until = f"until {'agent' if run.literal else 'plan'} {run.plan.id} ends; a resumed run asks again"
    if template_of(step.id) != step.id:
        return f"step '{template_of(step.id)}' for every item, as {call.kind}, {until}"
    own = "" if run.literal else ", less those of steps that say `requiresApproval: true`"
    return f"every call of {call.kind}, whatever its arguments{own}, {until}"
