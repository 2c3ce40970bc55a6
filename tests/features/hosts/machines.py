"""Hosts in the process of a test: workers with a workspace and a state directory each, with one storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.hosts.in_worker import queues_of_host
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.waiting import connected


@dataclass
class Machines:
    """Hosts with a workspace and a state directory each, on one server with one storage."""

    client: Client
    settings: Settings
    folder: Path
    tools: list[str] = field(default_factory=lambda: [LEDGER_TOOLS])
    """Of their workers, as PLANS_TOOLS names them."""

    def settings_of(self, name: str, **more: Any) -> Settings:
        own = self.folder / name
        for each in (own / "state", own / "workspace", self.folder / "values"):
            each.mkdir(parents=True, exist_ok=True)
        if not (own / "state" / "values").exists():
            (own / "state" / "values").symlink_to(self.folder / "values")
        return self.settings.with_flags(
            host=name, state_dir=own / "state", workspace=own / "workspace",
            host_patience=1.0, grace=0.0, **more,
        )  # fmt: skip

    @asynccontextmanager
    async def up(self, name: str, **more: Any) -> AsyncIterator[None]:
        """The workers of a host."""
        settings, tools = self.settings_of(name, **more), load_tools(self.tools)
        # A connection of its own: the SDK wants one worker per queue and connection.
        address = self.client.service_client.config.target_host
        client = await connected(address, data_converter=self.client.data_converter)
        # As many threads as the worker program has: file tools wait in them while a checkpoint is stored.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(108))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(build(client, settings, tools, indexed=True))
            for queue in queues_of_host(settings, settings.task_queue):
                worker = build(client, settings, tools, indexed=True, workflows=(), polls=queue)
                await stack.enter_async_context(worker)
            yield

    @asynccontextmanager
    async def up_without_steps(self, name: str) -> AsyncIterator[None]:
        """The workers of a host, but for the one that calls its steps."""
        settings, tools = self.settings_of(name), load_tools(self.tools)
        _, pulse = queues_of_host(settings, settings.task_queue)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(build(self.client, settings, tools, indexed=True))
            await stack.enter_async_context(
                build(self.client, settings, tools, indexed=True, workflows=(), polls=pulse)
            )
            yield

    @asynccontextmanager
    async def only_steps(self, name: str, at_once: int = 1) -> AsyncIterator[None]:
        """The worker of a host that calls its steps, so many at a time."""
        settings, tools = self.settings_of(name, max_activities=at_once), load_tools(self.tools)
        address = self.client.service_client.config.target_host
        client = await connected(address, data_converter=self.client.data_converter)
        steps, _ = queues_of_host(settings, settings.task_queue)
        async with build(client, settings, tools, indexed=True, workflows=(), polls=steps):
            yield

    @asynccontextmanager
    async def up_without_files(self) -> AsyncIterator[None]:
        """A worker of the queue that has no place for files."""
        async with build(self.client, self.settings, load_tools(self.tools), indexed=True):
            yield

    def files(self, name: str) -> dict[str, str]:
        """What a host's workspace holds, with directories named without what is unique about them."""
        root = self.folder / name / "workspace"
        found = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {"/".join(path.relative_to(root).parts[1:]): path.read_text() for path in found}
