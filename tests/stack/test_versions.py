"""Releases on the real server with PostgreSQL: what the development server does with versions, it does as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from tests.apps.releases.test_releases import Team, deployed
from tests.apps.releases.test_releases import (
    test_a_plan_stays_with_its_version_until_it_is_moved_and_a_release_is_taken_back_in_one_call as releases,
)


@pytest_asyncio.fixture
async def stack_team(stack_client: Client, queue: str, state_dir: Path, workspace: Path) -> AsyncIterator[Team]:
    """A deployment on the stack."""
    async with deployed(stack_client, queue, state_dir, workspace) as team:
        yield team


async def test_plans_stay_with_their_version_and_a_release_is_taken_back(stack_team: Team) -> None:
    await releases(stack_team)
