"""Which calls a segment makes: those of quick tools that nobody need be asked about and that only the worker has to do.

Everything else is left to the workflow, which makes the call as an activity of its own.
"""

from __future__ import annotations

from plansurvive.plans.execution.next_action import Call
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run


def reason_against(run: Run, step: Step, call: Call) -> str:
    """Why the call is made in no segment; empty if it may be made in one.

    The call is one that `next_action` returned: no approval is missing for it.
    """
    spec = run.facts.tools[step.tool]
    if not spec.quick:
        return f"{step.tool} is not declared quick"
    if spec.durable or spec.server:
        return f"{step.tool} is not a tool of the worker's own"
    if not (spec.repeatable if step.repeatable is None else step.repeatable):
        return "it must not be repeated"  # its only attempt would be that of the whole segment
    if run.queue_of(step) != run.plan.queue:
        return f"it is bound to the task queue {step.queue}"
    if call.filled.withheld:
        return "its arguments name values that only the worker has"
    if run.facts.own_files and spec.effect != "pure":
        return "it changes files, which belong to the plan's host"  # its checkpoint follows each call
    if run.literal:
        return "an agent makes the call"
    return ""
