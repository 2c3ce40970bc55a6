"""Requests that are cancelled at any moment leave the development server answering.

The database driver of the oldest that is supported could be left interrupted for good: docs/temporal.md (0).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from tests.kit.servers import development_server, oldest_program
from tests.kit.waiting import connected

SIDE_BY_SIDE, IN_A_ROUND, ROUNDS = 16, 2_000, 20
LISTED = "WorkflowType = 'Nobody'"


async def cancelled(client: Client, chance: random.Random) -> None:
    """A request that has some milliseconds, which it often does not get by with."""
    has = timedelta(milliseconds=chance.uniform(0.2, 16))
    requests: list[Callable[[], Awaitable[object]]] = [
        lambda: client.count_workflows(LISTED, rpc_timeout=has),
        lambda: client.get_workflow_handle("known").describe(rpc_timeout=has),
        lambda: client.get_workflow_handle("known").signal("message", rpc_timeout=has),
        lambda: client.start_workflow("Nobody", id=f"{chance.random()}", task_queue="nobody", rpc_timeout=has),
    ]
    with suppress(RPCError):
        await chance.choice(requests)()


async def rounds_until_it_is_stuck(program: Path, folder: Path) -> int | None:
    """Rounds of cancelled requests after which the server does not answer any more; None: it always does."""
    async with development_server(program, folder, database=folder / "temporal.db") as server:
        client = await connected(server.address)
        await client.start_workflow("Nobody", id="known", task_queue="nobody")

        async def one_after_another(seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(IN_A_ROUND // SIDE_BY_SIDE):
                await cancelled(client, chance)

        for number in range(ROUNDS):
            await asyncio.gather(*(one_after_another(100 * number + each) for each in range(SIDE_BY_SIDE)))
            try:
                await client.count_workflows(LISTED, rpc_timeout=timedelta(seconds=20))
            except RPCError:
                return number
    return None


@pytest.mark.slow
async def test_the_server_answers_after_forty_thousand_cancelled_requests(
    temporal_binary: Path, tmp_path: Path
) -> None:
    assert await rounds_until_it_is_stuck(temporal_binary, tmp_path) is None


@pytest.mark.slow
async def test_the_oldest_server_does_not_which_is_why_another_is_installed(tmp_path: Path) -> None:
    assert await rounds_until_it_is_stuck(await oldest_program(), tmp_path) is not None
