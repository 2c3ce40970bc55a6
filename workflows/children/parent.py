"""The side of a child plan: it reports to its parent, and asks it before each LLM request that something limits.

Nothing here happens in a plan that a person started. A request is asked for by number; grants come in that order, and
several may be under way at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.plans.children import reports
from plansurvive.plans.children.state import ChildReport, ParentLink
from plansurvive.plans.errors import Refused, Unanswered
from plansurvive.plans.execution.messages import BudgetAnswer
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import Run
from plansurvive.plans.usage import ANSWER_TOKENS, OVERRUN_CODE

INTERRUPTED = "INTERRUPTED"
"""Code of a request that was not sent, because the plan was interrupted while it waited."""


class Reporter:
    """Reports to the parent plan in the course of a child's run, and remembers what was said last."""

    def __init__(self) -> None:
        self._told: ChildReport | None = None
        self._ended = 0
        self._number = 0
        self._sending: asyncio.Task[None] | None = None
        self._next: dict[str, Any] | None = None

    def report(self, schedule: Schedule) -> None:
        """Signal the parent, if there is one, when something has changed that it should know; without waiting."""
        run = schedule.run
        if not has_parent(run) or run.parent is None:
            return
        now, ended = reports.report_of(run, schedule), reports.finished_requests(run)
        wanted = reports.wanted_request(run.parent)
        if wanted > self._number or reports.is_due(run, self._told, now, ended > self._ended):
            more = {"request": wanted, "estimate": ANSWER_TOKENS} if wanted > self._number else {}
            self._told, self._ended, self._number = now, ended, max(wanted, self._number)
            kept = {name: each for name, each in (self._next or {}).items() if name in ("request", "estimate")}
            self._next = reports.message_of(run, now, **{**kept, **more})
            if self._sending is None or self._sending.done():
                self._sending = asyncio.create_task(self._send(run.parent.plan_id))

    async def sent(self) -> None:
        """Wait until the last report is on its way: a workflow that ends sends nothing more."""
        if self._sending is not None:
            await asyncio.shield(self._sending)

    async def _send(self, plan_id: str) -> None:
        """Send the newest report; those that came meanwhile are replaced by the last of them."""
        while self._next is not None:
            message, self._next = self._next, None
            # A task of its own: the SDK swallows a cancellation that arrives while a signal is on its way.
            await asyncio.shield(asyncio.create_task(_signal(f"plan-{plan_id}", message)))


def permit(run: Run) -> str | None:
    """Why a plan's next LLM request is refused; empty if it is granted, None if the parent has not answered yet.

    All that is known of it is in the Run: a grant that a run of the workflow did not use is good for the next one.
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


async def permitted(run: Run) -> None:
    """Wait until the parent grants the plan's own next LLM request. Raises Unanswered if it refuses."""

    def has_news_since(seen: ParentLink | None) -> Callable[[], bool]:
        return lambda: run.parent != seen or bool(run.stopped)

    while (refusal := permit(run)) is None:  # a child of the plan may take a grant before this looks
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
    parent = workflow.info().parent
    return run.parent is not None and parent is not None and parent.workflow_id == f"plan-{run.parent.plan_id}"


async def _signal(parent: str, message: dict[str, Any]) -> None:
    with suppress(ApplicationError):  # the plan has already ended
        await workflow.get_external_workflow_handle(parent).signal("agent_progress", message)
