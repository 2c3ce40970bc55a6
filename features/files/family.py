"""Reads a plan's set from the server: all workflows whose work is the plan's (`plans.children.family`), in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from temporalio.client import Client

from plansurvive.client.children.naming import run_of
from plansurvive.client.children.resuming import GONE
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import plan_id, recorded_id
from plansurvive.client.later_runs import later_runs
from plansurvive.client.rpc import describe, memo_of
from plansurvive.client.undone import undo_plans
from plansurvive.plans.child_state import MAX_NESTING
from plansurvive.plans.children.family import members
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.resume import base_id
from plansurvive.plans.run import Run

MAX_RUNS = 1_000
"""Runs of one plan, as in `client.verbs.resume`."""


class Relative(NamedTuple):
    """A workflow of the set."""

    id: str
    """Its plan id; of an agent, the id of its workflow."""
    prefix: str
    """What its steps' ids have in front in the plan: `deploy/`, `each[a].research.`; empty for the plan's own runs."""
    run: Run | None
    """Its Run, an agent's with a step for each call; None if the server has forgotten it."""


async def family(client: Client, plan: str) -> list[Relative]:
    """The plan's set: its earlier runs, the first one first, and the plan; after each of them the agents and plans that
    its steps began, and the plans that undid it. Also of an agent. Asks each workflow once.

    Raises PlanNotFound, NotConnected, NoWorker.
    """
    runs: list[tuple[str, Run | None]] = [(plan_id(plan), await run_of(client, plan))]
    while (run := runs[-1][1]) and (earlier := recorded_id(run.resumes)) and len(runs) < MAX_RUNS:
        runs.append((earlier, await _known(client, earlier)))
    found = dict[str, Relative]()
    for name, run in reversed(runs):
        await _add(client, found, Relative(name, "", run))
        for undoing in [other async for other, _ in undo_plans(client, name)]:
            await _add(client, found, Relative(undoing, "", await _known(client, undoing)))
    return list(found.values())


async def undone_with(client: Client, plan: str) -> AsyncIterator[str]:
    """The plans whose undo undoes this one's files: itself, the runs that resumed it, and those that it is a child of,
    with theirs."""
    for _ in range(MAX_NESTING + 1):
        yield plan
        async for name, _ in later_runs(client, base_id(plan)):
            if name != plan:
                yield name
        try:
            above = recorded_id((await memo_of(await describe(client, plan))).get("planId"))
        except PlanNotFound:
            return
        if not above or above == plan:
            return
        plan = above


async def _add(client: Client, found: dict[str, Relative], relative: Relative) -> None:
    """Add a workflow, and all that its steps began. Each once: a later run has taken over the steps of earlier ones."""
    if relative.id in found:
        return
    found[relative.id] = relative
    for member in members(relative.run) if relative.run else ():
        name = recorded_id(member.id)
        if name is not None and name not in found:
            await _add(client, found, Relative(name, relative.prefix + member.prefix, await _known(client, name)))


async def _known(client: Client, name: str) -> Run | None:
    """The Run of a workflow; None if the server has forgotten it."""
    try:
        return await run_of(client, name)
    except PlanError as error:
        if error.code not in GONE:
            raise
        return None
