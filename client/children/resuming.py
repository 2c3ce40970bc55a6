"""The runs that the steps of a resumed plan continue: those of its unfinished agents and child plans, and of theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus

from plansurvive.client.errors import PlanNotFound
from plansurvive.client.feature import read_run
from plansurvive.client.files_since import files_since
from plansurvive.client.ids import recorded_id
from plansurvive.client.rpc import ask, describe
from plansurvive.client.undone import undone_since
from plansurvive.plans.children.family import present
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.run import Run, Status
from plansurvive.runtime.base.wait import until

ENDING_SECONDS = 20.0
"""Seconds to wait for the children of a cancelled plan to end."""
GONE = frozenset((PlanNotFound.code, "QUERY_FAILED"))
"""Error codes that mean a child's state is unavailable; its step starts over."""


async def unfinished(client: Client, run: Run) -> dict[str, dict[str, Any]]:
    """State by step id of each unfinished child, and of child plans that were undone in part.

    Children that can no longer be queried are omitted and start over.

    Raises Refused (NOT_ENDED) if one of them has not ended.
    """
    states: dict[str, dict[str, Any]] = {}
    restored = frozenset(run.closing.restored if run.closing is not None else ())
    for step_id, name in _children(run, restored):
        try:
            await _until_ended(client, name)
            found = await ask(client, name, "state")
        except PlanError as error:
            if error.code not in GONE:
                raise
            continue
        if run.steps[step_id].child is None and step_id in restored:
            continue  # an agent, which would not know that its work is gone
        if run.steps[step_id].child is not None:
            child = await undone_since(client, read_run(found))
            child = (await files_since(client, child, (await describe(client, name)).task_queue)).run
            child.agents = child.agents | await unfinished(client, child)
            found = child.model_dump(mode="json", exclude_defaults=True)
        states[step_id] = found
    return states


def _children(run: Run, restored: Collection[str]) -> Iterator[tuple[str, str]]:
    """The steps with an unfinished child, or with one of which files were restored since, and its id."""
    for step_id, state in run.steps.items():
        if not state.calls or (state.status is Status.COMPLETED and step_id not in restored):
            continue
        if name := recorded_id(present(run, run.outline.step(step_id), state)):
            yield step_id, name


async def _until_ended(client: Client, name: str) -> None:
    """Wait for a child, which ends a moment after its cancelled plan. Raises Refused (NOT_ENDED) if it does not."""

    async def has_ended() -> bool:
        return (await describe(client, name)).status is not WorkflowExecutionStatus.RUNNING

    try:
        await until(has_ended, ENDING_SECONDS, every=0.2)
    except TimeoutError:
        kind = "agent" if name.startswith("agent-") else "plan"
        text = f"{kind} '{name}' has not ended yet; try again, or cancel it: plan cancel {name}"
        raise Refused(text, "NOT_ENDED") from None
