"""Per-worker services injected into tool calls: the sandbox, the file watcher and secret redaction.

The worker and `plan doctor` both build their sandbox here, from the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from pydantic import SecretStr

from plansurvive.activities.attempt.waiting import Lift, lift_attempts
from plansurvive.activities.feature import Layer, Onion
from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.network.own_servers import own_servers
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox.sandbox import Limits, Sandbox, choose
from plansurvive.activities.tools.tool import Tool, ToolContext, no_fault
from plansurvive.activities.values.redaction import Secrets, Seen, guard_logs
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.identity import check_path
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames
from plansurvive.runtime.settings import Settings

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class ToolEnvironment:
    """The services of one worker. The defaults have no sandbox and no watcher."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    watcher: Watcher | None = None
    secrets: Secrets = field(default_factory=lambda: Secrets([]))
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    """What HTTP requests may connect to."""
    output_bytes: int = 256 * MEBIBYTE
    """Maximum output of a command, stdout and stderr together, per attempt."""
    fault: Callable[[str], None] = no_fault
    """See `ToolContext.fault`."""
    names: ProtectedNames = DEFAULT
    """What file tools write with a person's approval only."""
    rules: WorkspaceRules | None = None
    """Which directories may be workspaces; None: any."""
    layers: Sequence[Layer] = ()
    """Those of the features around each call, the outermost first."""
    lift: Lift = lift_attempts
    """Has the server allow a waiting call any number of attempts."""

    @cached_property
    def onion(self) -> Onion:
        """What is around each call."""
        return Onion(self.layers)

    def workspace(self, path: str, directory: DirectoryIdentity | None = None, plan_id: str = "") -> Workspace:
        """A workspace, which can only be entered while it is that directory; None: whichever is there."""
        closed = self.rules.closed if self.rules else frozenset[tuple[int, int]]()
        return Workspace(path, self.names, closed, directory, plan_id)

    def check(self, workspace: str, directory: DirectoryIdentity | None = None, plan_id: str = "") -> None:
        """Raise ToolError WORKSPACE_MOVED if another directory is under its path than the one that the plan knows, and
        WORKSPACE_REFUSED if it may not be a workspace, or not any more.
        """
        check_path(workspace, directory, plan_id)
        if self.rules is not None:
            self.rules.check_recorded(workspace)

    async def around(
        self, tool: Tool, context: ToolContext, args: dict[str, Any], call: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Calls a tool: watches for file changes if the tool may make any, without cost if it cannot."""
        if self.watcher is None:
            return await call()
        if tool.spec.effect == "pure":
            value = await call()
            if context.files_read:
                await asyncio.to_thread(self.watcher.read, context)
            return value
        if not self.watcher.has_entered(context):
            await asyncio.to_thread(self.watcher.enter, context)
        if tool.is_opaque:
            async with self.watcher.watching(context, args):
                return await call()
        value = await call()
        await asyncio.to_thread(self.watcher.wrote, context)
        return value

    async def looked(self, tool: Tool, context: ToolContext) -> None:
        """The worker of an earlier attempt died in a call that is not made again: record what it had changed."""
        if self.watcher is not None and tool.is_opaque:
            async with self.watcher.watching(context, {}):  # the first snapshot has what its text names
                pass

    async def replaced(self, tool: Tool, context: ToolContext) -> None:
        """A layer gave the result instead of the tool: files it has written are the call's own, for undo and beside
        other calls."""
        if self.watcher is not None:
            await asyncio.to_thread(self.watcher.read if tool.spec.effect == "pure" else self.watcher.wrote, context)

    def ended(self, context: ToolContext) -> None:
        """Release what the watcher holds for a call that failed permanently: no further attempt will come."""
        if self.watcher is not None:
            self.watcher.forget(context.call.key)


def sandbox_of(settings: Settings) -> Sandbox:
    """The sandbox for commands that the settings ask for."""
    limits = Limits(
        cpu=settings.limit_cpu,
        file=settings.limit_file_mb and settings.limit_file_mb * MEBIBYTE,
        memory=settings.limit_memory_mb and settings.limit_memory_mb * MEBIBYTE,
        open_files=settings.limit_open_files,
        processes=settings.limit_processes,
        free=settings.limit_free_mb and settings.limit_free_mb * MEBIBYTE,
    )
    return choose(
        settings.sandbox,
        network=settings.sandbox_network,
        limits=limits,
        state=settings.state_dir,
        readable=settings.sandbox_read,
    )


def environment_of(
    settings: Settings, effects: Effects, fault: Callable[[str], None] = no_fault, temporal: str = "",
    masked: Sequence[Seen] = (),
) -> ToolEnvironment:  # fmt: skip
    """The environment of a worker with these settings, connected to the server at `temporal` (HOST:PORT).

    `masked`: what features have masked in texts. Also sets the quota of `effects` for undo contents.
    """
    from plansurvive.activities.tools.registry import source_files  # lazily: `plan doctor` needs only the sandbox

    effects.preimages.max_total = settings.undo_mb * MEBIBYTE
    token = settings.temporal.get("TEMPORAL_API_KEY")
    secrets = Secrets([settings.openai_api_key, SecretStr(token) if token else None], masked)
    guard_logs(secrets)
    addresses = AddressPolicy.of(settings.http_allow, partial(own_servers, settings, temporal))
    names = ProtectedNames(settings.protected, source_files(settings.tools))
    rules = WorkspaceRules.of(settings)
    watcher = Watcher(settings.state_dir, settings.undo, names=names, trace=settings.trace)
    output = settings.output_mb * MEBIBYTE
    return ToolEnvironment(sandbox_of(settings), watcher, secrets, addresses, output, fault, names, rules)
