"""Fixtures of the fuzzers. They print their seed; PLANS_FUZZ_SEED repeats a run. At night the seed is a new one."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.fuzz.carry import Carry
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans

NOWHERE = "http://127.0.0.1:9/v1"
"""An LLM that never answers."""

Serving = Callable[..., AbstractAsyncContextManager[Worker]]


@pytest.fixture
def fuzz_seed(pytestconfig: pytest.Config) -> int:
    """Seed of this run, printed with the captured output and in every failure."""
    given = os.environ.get("PLANS_FUZZ_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(10**6) if _is_night(pytestconfig) else 12
    print(f"PLANS_FUZZ_SEED={seed}")
    return seed


def _is_night(config: pytest.Config) -> bool:
    return bool(config.getoption("nightly") or config.getoption("markexpr"))


@pytest.fixture
def plans(temporal_client: Client, queue: str, workspace: Path) -> Plans:
    """Starts plans on the test's queue."""
    return Plans(temporal_client, queue, workspace)


@pytest.fixture
def serving(temporal_client: Client, settings: Settings) -> Serving:
    """Runs a worker; with another client for a control."""

    @asynccontextmanager
    async def run(client: Client = temporal_client) -> AsyncIterator[Worker]:
        changed = settings.with_flags(openai_base_url=NOWHERE, openai_api_key="none")
        worker = build(client, changed, load_tools([LEDGER_TOOLS]), indexed=True, workflows=(*WORKFLOWS, Carry))
        async with worker:
            yield worker

    return run
