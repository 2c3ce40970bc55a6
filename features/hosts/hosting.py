"""What a worker does for the plans at its host: takes over a plan's files, and takes a checkpoint after each call."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.identity import identity_of
from plansurvive.activities.workspace.paths import shown
from plansurvive.features.hosts.checkpoints import Checkpoints
from plansurvive.features.hosts.homes import RECORDS, Home, Homes, Record
from plansurvive.features.hosts.settings import HostSettings
from plansurvive.plans.activity_io import Return
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.hosts.host import Checkpoint, Host, HostRequest, LeftFiles, queue_of_host
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.value_store import ValueStore

MEBIBYTE = 1024 * 1024
NO_HOST = "NO_HOST"


@dataclass(frozen=True)
class Hosting:
    """What a worker does for the plans at its host."""

    name: str
    """PLANS_HOST."""
    queues: frozenset[str]
    """Those of the host: what is called on them works in the directory of a plan."""
    patience: float
    seed: Path | None
    homes: Homes
    checkpoints: Checkpoints

    @classmethod
    def of(cls, settings: Settings, values: ValueStore, effects: Effects) -> Hosting | None:
        """That of a worker with these settings; None if its workspace is shared. Raises SettingError."""
        own = settings.of(HostSettings)
        if own.host is None:
            return None
        if settings.workspace is None:
            text = "each host has its own workspace: set PLANS_WORKSPACE to a directory that only this host uses"
            raise SettingError({"PLANS_WORKSPACE": text})
        homes = Homes(Path(os.path.realpath(settings.workspace)), settings.state_dir / RECORDS)
        checkpoints = Checkpoints(values, effects, own.checkpoint_mb * MEBIBYTE)
        queues = frozenset(queue_of_host(queue, own.host) for queue in (settings.task_queue, *settings.queues))
        return cls(own.host, queues, own.host_patience, own.host_seed, homes, checkpoints)

    async def take(self, request: HostRequest, queue: str) -> Host:
        """The plan's directory here: as it was, restored from its checkpoint, or new. Raises ToolError.

        `queue`: where the plan asked, its own task queue or the host's.
        """
        earlier = request.earlier
        if request.stay and earlier is not None and self.homes.of(earlier.workspace) is not None:
            return earlier
        home = self.homes.make(request.workflow_id)
        try:
            checkpoint = await self._filled(home, request)
        except BaseException:
            await asyncio.to_thread(self.homes.remove, home)
            raise
        await asyncio.to_thread(self.homes.remove_others, request.workflow_id, home)
        return Host(
            name=self.name, queue=queue if queue in self.queues else queue_of_host(queue, self.name),
            workspace=str(home.path), token=home.token, patience=self.patience, checkpoint=checkpoint,
            directory=identity_of(str(home.path)),
        )  # fmt: skip

    async def kept(self, tool: Tool, context: ToolContext, call: Callable[[], Awaitable[Return]]) -> Return:
        """Make a call, and take a checkpoint of what it left, also if it failed. Raises what the call raises.

        A call on the host's own queue works in the directory of a plan, whatever a message to its workflow has said.
        Raises ToolError NO_HOST for another one.
        """
        home = self.homes.of(context.call.workspace)
        if home is None and activity.info().task_queue in self.queues:
            text = f"{shown(context.call.workspace)} is not the directory of a plan at host '{self.name}'"
            raise ToolError(NO_HOST, f"{text}; was it removed? resume the plan, and it continues elsewhere")
        if home is None or tool.spec.effect == "pure":
            return await call()
        caller = context.call.key.partition("/")[0]
        try:
            done = await call()
        except Exception:
            with suppress(PlanError):  # what the call failed with says more
                context.left[LeftFiles.feature] = LeftFiles(checkpoint=await self.checkpoints.take(home, caller))
            raise
        left = LeftFiles(checkpoint=await self.checkpoints.take(home, caller))
        return done.model_copy(update={"parts": {**done.parts, LeftFiles.feature: left}})

    async def _filled(self, home: Home, request: HostRequest) -> Checkpoint | None:
        earlier = request.earlier
        if earlier is not None and earlier.checkpoint is not None:
            await self.checkpoints.restore(earlier.checkpoint, home, request.workflow_id)
            return earlier.checkpoint
        if self.seed is not None:
            await asyncio.to_thread(_copied, self.seed, home.path)
        self.checkpoints.open(home)
        home.write(Record(request.workflow_id))
        return await self.checkpoints.take(home)


def _copied(seed: Path, target: Path) -> None:
    shutil.copytree(seed, target, symlinks=True, dirs_exist_ok=True)
