"""The side of a child plan: it reports to its parent, as it goes on and when it asks for an LLM request.

Nothing here happens in a plan that a person started. Whether a request is granted: `workflows.parent`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from plansurvive.features.children import reports
from plansurvive.plans.child_state import ChildReport
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.usage import ANSWER_TOKENS
from plansurvive.workflows.parent import has_parent


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


async def _signal(parent: str, message: dict[str, Any]) -> None:
    with suppress(ApplicationError):  # the plan has already ended
        await workflow.get_external_workflow_handle(parent).signal("agent_progress", message)
