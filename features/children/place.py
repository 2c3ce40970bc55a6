"""Where the files of a Run are, when workers have a workspace each: its agents and child plans share its place.

Only the outermost plan moves. When its host is lost, it asks its agents and child plans to leave; each answers with the
newest checkpoint of what it has counted as done, and counts nothing more that ends there. The newest of all is
restored, as a later checkpoint of a directory has all that an earlier one has, and everybody is told where the files
are now. A child plan does the same between the plan above and its own children.

A plan with children in flight does not continue as new, so none of this outlives a run of the workflow but what a child
knows: that it has left.

A child is asked when the plan moves, instead of telling each checkpoint: no message while nothing moves, and no answer
to lose. Rejected: an answer for each step (two signals and four workflow tasks per change of a file), handing the place
to the child (steps beside it wait), a directory for each child (merges).
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.features.children.handles import Handles
from plansurvive.features.children.messages import PlaceNews, PlaceReport
from plansurvive.features.hosts.model import arrived, left_behind
from plansurvive.plans.errors import Refused
from plansurvive.plans.hosts.host import UNSUPPORTED, Checkpoint
from plansurvive.plans.hosts.host import elsewhere as unsupported_workspace
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.place import Sharer

NEWS, REPORT = "place", "place_report"
"""Signals: of a plan to its children, and of a child to its plan."""
NO_HOST = "NO_HOST"


class SharedPlace(Sharer):
    """The place of one Run's files: it is moved with its children, or the plan above does that."""

    @classmethod
    def of(cls, execution: Execution) -> SharedPlace:
        """That of the run; there is one from the first news of it on, which may come before the run is checked."""
        place = execution.place
        if not isinstance(place.sharer, cls):
            place.sharer = cls(execution)
        return place.sharer

    def __init__(self, execution: Execution) -> None:
        self.execution, self.run, self.handles = execution, execution.run, Handles()
        self._left = set[str]()
        self._news, self._failure = 0, PlaceNews()
        self._saying = set[asyncio.Task[None]]()  # asyncio holds tasks weakly
        self._looking = set[asyncio.Task[None]]()

    async def move(self, token: str, move: Callable[[], Awaitable[bool]]) -> bool:
        """Move the files now, or have the plan above do that. Raises ApplicationError if that could not move."""
        if self.run.is_guest:
            return await self._asked_above(token)
        if not self._guests() and not self.handles.starting:
            return await move()
        self.run.moving = True  # before the task begins: whoever looks meanwhile must not move as well
        # Not the step's own task: it may be cancelled, and the children have left then.
        return await asyncio.shield(asyncio.ensure_future(move()))

    async def before_move(self, token: str) -> None:
        """Have all children leave."""
        await self._leave_below(token)

    async def after_move(self, error: ActivityError | None) -> None:
        """Tell all children where the files are now, or why they could not be moved."""
        await self._tell(PlaceNews(host=self.run.host) if error is None else _failed(error))

    async def settled(self, step: Step) -> None:
        """Wait until the files are not being moved: a child that is begun then is told of every move."""
        run = self.run
        if run.host_of(step) is not None and self._is_moving():
            await workflow.wait_condition(lambda: not self._is_moving())

    def give(self, step: Step, child: Run) -> None:
        """Let a child work at the place, if the step does. Raises Refused if it names a directory of its own."""
        host = self.run.host_of(step)
        if host is None:
            child.host = None if child.is_guest else child.host
            return
        if posixpath.normpath(child.plan.workspace or ".") != ".":
            raise Refused(unsupported_workspace(child.plan.workspace or ""), UNSUPPORTED)
        child.host = host.for_child()

    def told(self, news: PlaceNews) -> None:
        """Take over what the plan above says. Raises Refused if the place is the plan's own."""
        run = self.run
        host = run.host
        if host is None or not host.guest:
            raise Refused("the files of this plan are on another host, or where all workers see them", "NOT_ASKED")
        if news.leave:
            run.host = host.model_copy(update={"left": True})
            self._say(self._leave(news.leave))
            return
        self._news += 1
        self._failure = news
        if news.host is None or news.host.token == host.token:
            run.host = host.model_copy(update={"left": False})
        else:
            run.host = news.host.for_child()
            arrived(run, host, None, workflow.now())
        run.next_seq()
        self._say(self._tell(news))

    def reported(self, message: PlaceReport) -> None:
        """Take over what a child says. Raises Refused if it is not the one that works on the step."""
        run, host, step_id = self.run, self.run.host, self.handles.step_of(message.child)
        if host is None or step_id is None:
            raise Refused(f"'{message.child[:200]}' does not work at this plan's place", "NOT_ASKED")
        run.host = host.after(message.checkpoint)
        if message.left == host.token:
            self._left.add(step_id)
        if message.lost:
            looking = asyncio.create_task(self._look(message.lost, step_id))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)

    def ended(self, result: Mapping[str, Any]) -> None:
        """Take over the newest checkpoint of a child that has ended."""
        if self.run.host is not None and result.get("checkpoint"):
            self.run.host = self.run.host.after(Checkpoint.model_validate(result["checkpoint"]))

    async def said(self) -> None:
        """Wait until all is said that must be said: a run of a workflow that ends says nothing more."""
        while self._saying:
            await workflow.wait([*self._saying])

    async def cut_short(self) -> None:
        """Tell the plan above what the last steps have left: who is cancelled returns no result."""
        left = left_behind(self.run.host)
        if left and workflow.info().parent is not None:
            with suppress(ApplicationError):
                await self._report(**left)
        await self.said()

    async def _look(self, token: str, step_id: str) -> None:
        """A child's steps wait for the host: move, or say that it lives."""
        try:
            is_elsewhere = await self.execution.place.moved(token, step_id)
        except (ActivityError, ApplicationError):
            return  # it has been told with all the others
        if not is_elsewhere:
            await self.handles.send(step_id, NEWS, _json(PlaceNews(host=self.run.host)))

    async def _asked_above(self, token: str) -> bool:
        """Have the plan above look after the host, and wait for what it says."""
        run, seen = self.run, self._news
        run.moving = True
        try:
            await self._report(lost=token)
            await workflow.wait_condition(lambda: self._news > seen)
        finally:
            run.moving = False
        if self._failure.error:
            raise ApplicationError(self._failure.error, type=self._failure.code or NO_HOST)
        return run.host is None or run.host.token != token

    async def _leave(self, token: str) -> None:
        """Leave a place, after those below, and say so."""
        await self._leave_below(token)
        with suppress(ApplicationError):
            await self._report(left=token, **left_behind(self.run.host))

    async def _leave_below(self, token: str) -> None:
        """Have all children leave; those that end instead have said what they have left."""
        handles = self.handles
        if not handles.starting and not self._guests():
            return
        self._left.clear()
        await workflow.wait_condition(lambda: not handles.starting)
        for step_id in self._guests():
            await handles.send(step_id, NEWS, _json(PlaceNews(leave=token)))
        await workflow.wait_condition(lambda: self._left.issuperset(self._guests()))

    async def _tell(self, news: PlaceNews) -> None:
        """Tell all children, and wait until the server has it: what is told next is told after it."""
        for step_id in self._guests():
            await self.handles.send(step_id, NEWS, _json(news))

    async def _report(self, **fields: Any) -> None:
        """Signal the plan above. Raises ApplicationError if it has ended."""
        above = workflow.info().parent
        if above is None:
            raise ApplicationError("the plan above has ended", type=NO_HOST)
        message = {"child": workflow.info().workflow_id, **fields}
        # A task of its own: the SDK swallows a cancellation that arrives while a signal is on its way.
        sending = workflow.get_external_workflow_handle(above.workflow_id).signal(REPORT, message)
        await asyncio.shield(asyncio.ensure_future(sending))

    def _guests(self) -> list[str]:
        """The steps whose children work at the place."""
        return [name for name in self.handles if self.run.host_of(self.execution.schedule.step(name)) is not None]

    def _is_moving(self) -> bool:
        run = self.run
        return run.moving or (run.host is not None and run.host.left)

    def _say(self, words: Coroutine[Any, Any, None]) -> None:
        """Say it without waiting, after what was to be said before."""
        before = [*self._saying]

        async def later() -> None:
            if before:
                await workflow.wait(before)
            await words

        task = asyncio.create_task(later())
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)


def _failed(error: ActivityError) -> PlaceNews:
    cause = error.cause or error
    text = str(getattr(cause, "message", None) or cause)
    return PlaceNews(code=(getattr(cause, "type", None) or NO_HOST)[:200], error=text[:4_000] or NO_HOST)


def _json(message: PlaceNews) -> dict[str, Any]:
    return message.model_dump(mode="json", exclude_defaults=True)
