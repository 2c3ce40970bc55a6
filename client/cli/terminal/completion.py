"""Ids for the shell's completion: silent and quick, whatever is wrong.

A server that does not run is not started, a plan that does not answer is left out, and after SECONDS there is nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from temporalio.client import Client

from plansurvive.client.cli.terminal import environment
from plansurvive.client.listing import list_plans
from plansurvive.client.rpc import ask_view
from plansurvive.plans.views.models import BriefStep, BriefView, listed_steps
from plansurvive.plans.views.queries import BRIEF
from plansurvive.runtime.connect import find

SECONDS = 1.5
"""How long a person waits for completion at most."""
MOST = 200
"""Ids that are offered."""


def plan_ids(incomplete: str) -> list[str]:
    """Ids of plans that begin so, those that run first."""

    async def found(client: Client) -> list[str]:
        plans = [each async for each in list_plans(client, limit=5 * MOST)]
        plans.sort(key=lambda each: not each.is_open)  # stable: the newest stay first
        return [each.plan_id for each in plans]

    return fitting_names(_asked(found), incomplete)


def step_ids(plan: str, incomplete: str) -> list[str]:
    """Ids of a plan's steps that begin so; those that await a decision first, with items: `resize[cat.png]`."""

    async def found(client: Client) -> list[str]:
        view = await ask_view(client, plan, BriefView, "plan", BRIEF, patience=SECONDS)
        return [*(item.step_id for item in view.pending), *view.more_pending, *_of(view.steps)]

    return fitting_names(_asked(found), incomplete)


def _of(steps: Iterable[BriefStep]) -> Iterable[str]:
    """The steps, what is listed of the inside of each, and what is asked in the plan that one runs."""
    for step in steps:
        listed = [*listed_steps([step])]
        yield from (each.id for each in listed)
        for each in listed:
            below = [asked.path for asked in each.child.pending] if each.child else []
            below += each.agent_asks.step_ids if each.agent_asks else []
            yield from (f"{each.id}/{path}" for path in below)


def _asked(action: Callable[[Client], Awaitable[list[str]]]) -> list[str]:
    async def ask() -> list[str]:
        async with asyncio.timeout(SECONDS):
            connection = await find(environment.settings())
            return await action(connection.client) if connection is not None else []

    with suppress(Exception):  # a shell that waits for names shows nothing else
        return asyncio.run(ask())
    return []


def fitting_names(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that fit, each once, without what a shell or a terminal would take for more than a name."""
    fitting = dict.fromkeys(name for name in names if name.startswith(incomplete) and name.isprintable())
    return list(fitting)[:MOST]
