"""Which calls a segment makes: those of quick tools that nobody need be asked about and that only the worker has to do.

Everything else is left to the workflow, which makes the call as an activity of its own.
"""

from __future__ import annotations

from plansurvive.features.express.model import ExpressFact
from plansurvive.plans.execution.next_action import Call
from plansurvive.plans.model import Step
from plansurvive.plans.model.express import Express
from plansurvive.plans.run import Run


def bounds_of(run: Run, step_id: str) -> Express | None:
    """What is asked for the step, as the block or loop around it says it, the plan, or else its workers; None: not."""
    outline = run.outline
    for node in (outline.nodes[step_id], *outline.ancestors(step_id)):
        if node.step.express is not None:
            return _bounds(node.step.express)
    if run.plan.express is not None:
        return _bounds(run.plan.express)
    return _bounds(ExpressFact.feature in run.facts.parts and run.facts.part(ExpressFact).on)


def reason_against(run: Run, step: Step, call: Call) -> str:
    """Why the call is made in no segment; empty if it may be made in one.

    The call is one that `next_action` returned: no approval is missing for it.
    """
    spec = run.facts.tools[step.tool]
    if not spec.quick:
        return f"{step.tool} is not declared quick"
    if bounds_of(run, step.id) is None:
        return "nothing asks for it"
    if spec.durable or spec.server:
        return f"{step.tool} is not a tool of the worker's own"
    if not (spec.repeatable if step.repeatable is None else step.repeatable):
        return "it must not be repeated"  # its only attempt would be that of the whole segment
    if spec.sends:
        return "it sends what it is given, and whether that asks follows from the whole plan"
    if run.queue_of(step) != run.plan.queue:
        return f"it is bound to the task queue {step.queue}"
    if call.filled.withheld:
        return "its arguments name values that only the worker has"
    if run.facts.own_files and spec.effect != "pure":
        return "it changes files, which belong to the plan's host"  # its checkpoint follows each call
    if run.literal:
        return "an agent makes the call"
    return ""


def _bounds(said: bool | Express) -> Express | None:
    return said if isinstance(said, Express) else _USUAL if said else None


_USUAL = Express()
