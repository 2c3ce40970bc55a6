"""Whether a plan has a parent, and whether that grants its next LLM request, if something above limits them.

Nothing here happens in a plan that a person started. A request is asked for by number; grants come in that order, and
several may be under way at the same time. The question itself is in the plan's next report to its parent.
"""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow

from plansurvive.plans.child_state import ParentLink
from plansurvive.plans.errors import Refused, Unanswered
from plansurvive.plans.execution.messages import BudgetAnswer
from plansurvive.plans.run import Run
from plansurvive.plans.usage import OVERRUN_CODE

INTERRUPTED = "INTERRUPTED"
"""Code of a request that was not sent, because the plan was interrupted while it waited."""


def take_grant(run: Run) -> str | None:
    """Take the grant of a plan's next LLM request.

    Returns why it is refused; empty if it is granted, None if the parent has not answered yet. All that is known of it
    is in the Run: a grant that a run of the workflow did not use is good for the next one.
    """
    link = run.parent
    if link is None or not link.asks or not has_parent(run):
        return ""
    if link.permitted > link.used:
        run.parent = link.model_copy(update={"used": link.used + 1})
        return ""
    if link.refusal:
        return link.refusal
    if link.asked <= link.permitted:
        run.parent = link.model_copy(update={"asked": link.permitted + 1})
        run.next_seq()
    return None


async def granted(run: Run) -> None:
    """Wait until the parent grants the plan's own next LLM request. Raises Unanswered if it refuses."""

    def has_news_since(seen: ParentLink | None) -> Callable[[], bool]:
        return lambda: run.parent != seen or bool(run.stopped)

    while (refusal := take_grant(run)) is None:  # a child of the plan may take a grant before this looks
        await workflow.wait_condition(has_news_since(run.parent))
        if run.stopped:
            raise Unanswered(run.stopped, INTERRUPTED)
    if refusal:
        raise Unanswered(refusal, OVERRUN_CODE)


def answered(run: Run, message: BudgetAnswer) -> None:
    """Take over the parent's answer to a request. Raises Refused if nothing was asked."""
    link = run.parent
    if link is None or not has_parent(run):
        raise Refused("this plan is not a step of another one, so it asked for no LLM request", "NOT_ASKED")
    if message.number == 0:
        run.parent = link.model_copy(update={"asks": True})
    elif not link.asks or message.number != link.permitted + 1:
        raise Refused(f"LLM request {message.number} was not asked for", "NOT_ASKED")
    elif message.granted:
        run.parent = link.model_copy(update={"permitted": message.number})
    else:
        run.parent = link.model_copy(update={"refusal": message.reason or "the LLM budget of its plan is used up"})
    run.next_seq()


def has_parent(run: Run) -> bool:
    """Whether the plan runs as a step of another one now; a run that was resumed by itself does not."""
    link = run.parent
    if link is None:
        return False
    parent = workflow.info().parent
    return parent is not None and parent.workflow_id == f"plan-{link.plan_id}"
