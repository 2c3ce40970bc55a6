"""Releases on the real server with PostgreSQL: what the development server does with versions, it does as well."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from runtime.settings import Settings
from tests.client.releases.test_releases import Team
from tests.client.releases.test_releases import (
    test_a_plan_stays_with_its_version_until_it_is_moved_and_a_release_is_taken_back_in_one_call as releases,
)
from tests.driving import Plans


@pytest_asyncio.fixture
async def stack_team(stack_client: Client, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Team]:
    """A deployment on the stack."""
    environ = {"PLANS_TASK_QUEUE": queue, "PLANS_STATE_DIR": str(state_dir), "PLANS_GRACE": "0"}
    settings = Settings.read({**environ, "PLANS_WORKSPACES": str(workspace)})
    async with AsyncExitStack() as workers:
        plans = Plans(stack_client, queue, workspace)
        yield Team(stack_client, settings, plans, f"team-{uuid.uuid4().hex[:8]}", workers)


async def test_plans_stay_with_their_version_and_a_release_is_taken_back(stack_team: Team) -> None:
    await releases(stack_team)
