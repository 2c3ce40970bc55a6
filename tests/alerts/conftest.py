"""A stand whose parts may be killed: a server with its data on disk, workers with metrics, and a real Prometheus."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.features.telemetry.instruments import free_address
from plansurvive.runtime.settings import Settings
from tests.alerts.prometheus import Prometheus, scraping
from tests.chaos.conftest import Chaos, ServerProcess, WorkerProcess, chaos, chaos_server, chaos_worker
from tests.kit.driving import Plans
from tests.kit.waiting import until
from tests.workflows.agents import says

__all__ = ["chaos", "chaos_server", "chaos_worker"]

ANSWERS = [
    {"when": "unheard", "reply": {"status": 500, "error": "overloaded"}, "times": 0},
    says({"answer": "done", "confidence": "high"}, times=0),
]
"""An LLM that answers, except to what has this word."""


@dataclass
class Stand:
    """All of it. The workers differ in nothing but the address of their metrics."""

    server: ServerProcess
    workers: tuple[WorkerProcess, WorkerProcess]
    plans: Plans
    prometheus: Prometheus

    async def until_fired(self, *names: str) -> None:
        """Wait until each of these alerts fires or has fired."""

        async def missing() -> set[str]:
            return set(names) - await self.prometheus.fired()

        async def all_did() -> bool:
            return not await missing()

        try:
            await until(all_did, f"{', '.join(sorted(names))} fire", every=0.5)
        except AssertionError as error:
            raise AssertionError(f"missing: {await missing()}") from error

    async def until_silent(self, *names: str) -> None:
        """Wait until none of these alerts fires any more."""

        async def silent() -> bool:
            return not set(names) & await self.prometheus.firing()

        await until(silent, f"{', '.join(names)} no longer", every=0.5)


@pytest_asyncio.fixture(loop_scope="session")
async def stand(chaos: Chaos, caches: dict[str, str], tmp_path: Path) -> AsyncIterator[Stand]:
    """Two workers that run, and Prometheus, which has seen both."""
    addresses = [free_address(), free_address()]
    async with AsyncExitStack() as stack:
        llm = stack.enter_context(ScriptedLlm(Script.of(ANSWERS)))
        given = {"PLANS_MODEL": "demo", "OPENAI_BASE_URL": llm.url, "PLANS_MAX_ACTIVITIES": "4"}
        workers = tuple(
            WorkerProcess(
                [sys.executable, "worker.py"],
                chaos.worker.environ | given | {"PLANS_METRICS": address},
                tmp_path / f"worker-{number}.log",
            )
            for number, address in enumerate(addresses)
        )
        for worker in workers:
            stack.callback(worker.kill)
        for worker in workers:
            await worker.up()
        settings = Settings.read(caches | {"HOME": os.environ["HOME"]})
        prometheus = await stack.enter_async_context(scraping(addresses, tmp_path / "prometheus", settings))
        prometheus = await prometheus.counts_from_now(len(workers))
        yield Stand(chaos.server, (workers[0], workers[1]), chaos.plans, prometheus)
