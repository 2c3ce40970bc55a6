"""The child workflows of one Run that are in flight: starts them, signals them, cancels them.

A child is cancelled by its id, because cancelling its handle does not reach its later runs (continue-as-new); then its
step waits for its end, so that its last report is in the plan's record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import ApplicationError

from plansurvive.plans.run import Run

ENDING_SECONDS = 60.0
"""How long a cancelled plan waits for a child to end: what it reports until then is in the plan's record."""
Child = workflow.ChildWorkflowHandle[Any, dict[str, Any]]


class Handles:
    """By step, the child workflow that works on it."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self.starting = 0
        """Children that are being started: they have no handle yet."""
        self._sending: set[asyncio.Task[None]] = set()  # asyncio holds tasks weakly
        self._interrupted = False

    def __contains__(self, step_id: str) -> bool:
        return step_id in self._children

    async def start(
        self,
        step_id: str,
        kind: str,
        argument: Any,
        name: str,
        memo: dict[str, Any],
        index: TypedSearchAttributes | None,
        summary: str,
    ) -> Child:
        """Start a workflow of a type under an id; it is cancelled when this workflow ends before it."""
        self.starting += 1
        try:
            child: Child = await workflow.start_child_workflow(
                kind,
                argument,
                id=name,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                memo=memo,
                search_attributes=index,
                static_summary=summary[:150],
            )
        finally:
            self.starting -= 1
        self._children[step_id] = child
        return child

    def caught_up(self, step_id: str, run: Run) -> None:
        """Interrupt or pause a child that was starting when its plan was: there was no handle to signal yet."""
        if self._interrupted:
            self.signal(step_id, "interrupt", {"by": "its plan"})
        elif run.paused or run.held:
            self.signal(step_id, "pause", {"above": True})

    def interrupt(self, step_id: str) -> None:
        """Signal the child to stop at its next safe point; its step ends then."""
        self._interrupted = True
        self.signal(step_id, "interrupt", {"by": "its plan"})

    def signal(self, step_id: str, name: str, message: dict[str, Any]) -> None:
        """Send a signal to the step's child, if it has one, without waiting."""
        if step_id in self._children:
            self._send(_signal(self._children[step_id], name, message))

    async def send(self, step_id: str, name: str, message: dict[str, Any]) -> None:
        """Send a signal to the step's child, if it has one, and wait until the server has it."""
        if step_id in self._children:
            await _signal(self._children[step_id], name, message)

    def step_of(self, child: str) -> str | None:
        """The step that the child with this workflow id works on; None if there is no such child."""
        return next((name for name, each in self._children.items() if each.id == child), None)

    def forget(self, step_id: str) -> None:
        """The step's child has ended."""
        self._children.pop(step_id, None)

    async def ended(self, step_id: str) -> bool:
        """Wait until a cancelled child has ended; False if it has not within ENDING_SECONDS, or never began."""
        child = self._children.get(step_id)
        if child is None:
            return False
        done, _ = await workflow.wait([child], timeout=ENDING_SECONDS)
        return bool(done)

    def __iter__(self) -> Any:
        return iter(list(self._children))

    def _send(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


async def cancel(workflow_id: str) -> None:
    """Request cancellation of a child by its id."""
    with suppress(ApplicationError):  # it has already ended
        await workflow.get_external_workflow_handle(workflow_id).cancel()


async def _signal(child: Child, name: str, message: dict[str, Any]) -> None:
    with suppress(ApplicationError):  # it has already ended
        await child.signal(name, message)
