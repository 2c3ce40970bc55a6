"""Keeps a plan's steps with the host that has its files, and moves the plan when that host is lost.

The steps go to a task queue that only the host's workers poll. A step that none of them takes within the host's
patience is not lost yet: they may be busy. If the host does not answer on its other queue either, another one restores
the last checkpoint, and the step is called there. The checkpoints come with the results of the steps, so what counts
is what history has, and a worker that comes back can change nothing about it.

A call that must not be repeated and whose worker was lost with its host has an unknown outcome: it is not made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception
from temporalio.workflow import ActivityHandle

from plansurvive.features.hosts.model import arrived, newest
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition.checks.validation import errors
from plansurvive.plans.errors import MAY_HAVE_HAPPENED
from plansurvive.plans.hosts.host import MOVED, Checkpoint, Host, HostRequest, LeftFiles
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Retry, Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run
from plansurvive.workflows import policies
from plansurvive.workflows.outcomes import left_behind
from plansurvive.workflows.payloads import of_json
from plansurvive.workflows.place import Destination, Place
from plansurvive.workflows.policies import Policy

AGAIN = timedelta(seconds=1)
"""Before a call whose worker was lost is looked up again at its host."""
_LOST = (TimeoutType.HEARTBEAT, TimeoutType.START_TO_CLOSE)
_SHUT_DOWN = ("CancelledError", "KEY_MISSING", "WorkerShutdown")
"""Types of the failure of an attempt that ended with its worker's shutdown, or before it could read its arguments. The
last one is of the SDK's core: the attempt had not ended when its worker was gone."""
TAKE_HOST = Policy(1_800.0, Retry(attempts=100, delay=1.0, factor=1.5))
"""take_host: restores a checkpoint. It may come to workers that cannot, and waits for one that can, as CHECK does."""
T = TypeVar("T")


async def at_home(run: Run, facts: Facts) -> Facts:
    """The facts for a run that has a place at a host, if its workers have a workspace each: in that place.

    A plan that continues an earlier one stays where its files are; if that host does not answer, another takes over.
    What works on a step is where its plan is. If it is resumed by itself, it gets a copy of these files: they are
    still those of the plan.
    """
    if not facts.own_files or errors(facts.problems):
        return facts
    if run.is_guest and run.host is not None and workflow.info().parent is not None:
        return facts.model_copy(update={"workspace": run.host.workspace})
    earlier = newest(run.host, run.agents) if run.host is not None else None
    host = await _stayed(earlier) if earlier is not None and not earlier.guest else None
    run.host = host or await _taken(earlier)
    return facts.model_copy(update={"workspace": run.host.workspace})


class HostPlace(Place):
    """The host of one Run's files: moves them when it is lost."""

    def call(self, step: Step, policy: Policy, begin: Callable[[Destination], ActivityHandle[T]]) -> asyncio.Future[T]:
        """Call at the plan's host, and at the next if that is lost; a step bound to another queue, there."""
        if self.run.host is None or self.run.host_of(step) is None:
            return super().call(step, policy, begin)
        return asyncio.create_task(self._call(step, policy, begin))

    async def _call(self, step: Step, policy: Policy, begin: Callable[[Destination], ActivityHandle[T]]) -> T:
        """The result of the call.

        An attempt that must not be repeated has only one on the server, and is counted here: the effect log of the
        host knows whether it ended.
        """
        run, step_id, deaths, begun = self.run, step.id, 0, False
        while (host := run.host) is not None:
            if host.left:
                await workflow.wait_condition(lambda: run.host is None or not run.host.left)
                continue
            try:
                result = await begin(Destination(host.queue, host.wait))
            except ActivityError as error:
                _keep(run, _checkpoint(left_behind(error)))
                if _is(error, (TimeoutType.SCHEDULE_TO_START,)):
                    if await self.moved(host.token, step_id) and begun and not policy.repeatable:
                        raise _unknown(host) from None
                    continue
                if _has_left(run, host) and not is_cancelled_exception(error):
                    if not policy.repeatable:
                        raise _unknown(host) from None
                    continue  # its directory may be gone: what failed there says nothing about the files that count
                if policy.repeatable or not _is_lost(error) or deaths >= policies.WORKER_DEATHS:
                    raise
                deaths, begun = deaths + 1, True
                await workflow.sleep(AGAIN, summary=f"look up {step_id} at its host")
                continue
            taken = _checkpoint(_returned(result))
            _keep(run, taken)
            if taken is None or run.host is None or (taken.token == run.host.token and not run.host.left):
                return result
            if not policy.repeatable:  # it ended at a host that the plan has left
                raise _unknown(host)
            run.note(LogKind.WARNING, f"its files are at host '{host.name}': it is run again", workflow.now(), step_id)
        raise ApplicationError("the plan has no host", type=MOVED)  # never: a plan that has one keeps having one

    async def moved(self, token: str, step_id: str) -> bool:
        """Move the files, unless the host is only busy or they have been moved already; whether they are elsewhere now.

        Raises what taking another place raises.
        """
        run = self.run
        await workflow.wait_condition(lambda: not run.moving)
        while run.moving:  # all who waited go on in the same moment, and one of them has begun to move
            await workflow.wait_condition(lambda: not run.moving)
        if run.host is None or run.host.token != token:
            return True
        lost = run.host
        return await self.sharer.move(token, lambda: self._move(lost, step_id))

    async def _move(self, lost: Host, step_id: str) -> bool:
        run = self.run
        run.moving = True
        try:
            if await answers(lost):
                return False
            try:
                await self.sharer.before_move(lost.token)
                run.host = await elsewhere(run)
            except ActivityError as error:
                await self.sharer.after_move(error)
                raise
            arrived(run, lost, step_id, workflow.now())
            await self.sharer.after_move(None)
        finally:
            run.moving = False
        return True


async def elsewhere(run: Run) -> Host:
    """A place at any host with the newest files.

    A step may end at the lost host while its last checkpoint is being restored: then there is a newer one to restore.
    """
    while True:
        asked = run.host
        found = await _taken(asked)
        if run.host == asked:
            return found


async def answers(host: Host) -> bool:
    """Whether a worker of the host lives, however busy it is."""
    try:
        await workflow.execute_activity(
            "host_pulse",
            result_type=str,
            task_queue=host.pulse,
            summary=f"does host {host.name} live"[:200],
            schedule_to_start_timeout=host.wait,
            start_to_close_timeout=host.wait,
            schedule_to_close_timeout=2 * host.wait,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        return False
    return True


async def _stayed(host: Host) -> Host | None:
    """The same place, from its own host; None if that does not answer."""
    try:
        return await _asked(HostRequest(workflow_id=_name(), earlier=host, stay=True), host.queue, host.wait)
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        return None


async def _taken(earlier: Host | None) -> Host:
    """A place at any host, with the files of the earlier one."""
    return await _asked(HostRequest(workflow_id=_name(), earlier=earlier), None, None)


async def _asked(request: HostRequest, queue: str | None, patience: timedelta | None) -> Host:
    found: Host = await workflow.execute_activity(
        "take_host",
        of_json(request.model_dump_json(exclude_defaults=True)),
        result_type=Host,
        task_queue=queue,
        summary="a place for the plan's files",
        schedule_to_start_timeout=patience,
        start_to_close_timeout=TAKE_HOST.start_to_close,
        retry_policy=TAKE_HOST.retry_policy,
    )
    return found


def _has_left(run: Run, host: Host) -> bool:
    """Whether the plan's files are elsewhere than at that host, or about to be."""
    return run.host is not None and (run.host.token != host.token or run.host.left)


def _keep(run: Run, checkpoint: Checkpoint | None) -> None:
    """Note the newest checkpoint of where the plan is now. Of a place that is left, the plan above has been told."""
    if run.host is not None and not run.host.left:
        run.host = run.host.after(checkpoint)


def _name() -> str:
    return workflow.info().workflow_id


def _returned(result: Any) -> Parted:
    parts = result.get("parts") if isinstance(result, dict) else None
    return Parted(parts=parts if isinstance(parts, dict) else {})


def _checkpoint(left: Parted) -> Checkpoint | None:
    try:
        return left.part(LeftFiles).checkpoint
    except ValidationError:  # whoever completes an activity by hand may write anything
        return None


def _is(error: ActivityError, kinds: tuple[TimeoutType, ...]) -> bool:
    return isinstance(error.cause, TimeoutError) and error.cause.type in kinds


def _is_lost(error: ActivityError) -> bool:
    """Whether the attempt ended with its worker, so that only the effect log knows what became of it."""
    kind = error.cause.type if isinstance(error.cause, ApplicationError) else None
    return _is(error, _LOST) or kind in _SHUT_DOWN


def _unknown(host: Host) -> ApplicationError:
    return ApplicationError(
        f"host '{host.name}' was lost while the tool was running, and the call is declared not repeatable: "
        f"{MAY_HAVE_HAPPENED}",
        type=MOVED,
    )
